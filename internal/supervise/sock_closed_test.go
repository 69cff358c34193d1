//go:build linux

package supervise

import "testing"

func TestAbroad(t *testing.T) {
	for address, want := range map[string]bool{
		"1.2.3.4:80": true, "[2001:db8::1]:443": true, "[::ffff:8.8.8.8]:53": true, "169.254.169.254:80": true, "[fe80::1%2]:22": true,
		"127.0.0.1:80": false, "127.77.0.1:1": false, "[::1]:443": false, "[::ffff:127.0.0.1]:53": false, "0.0.0.0:80": false, "[::]:80": false,
		"unix:/run/x": false, "unspec:": false, "": false,
	} {
		if got := isInternet(address); got != want {
			t.Errorf("%q abroad: %v, want %v", address, got, want)
		}
	}
}
