//go:build linux

package supervise

import "testing"

func TestSmoke(t *testing.T) {
	dir := t.TempDir()
	r := start(t, []string{"sh", "-c", "echo hi > file; mkdir sub; mv file sub/file; ln -s sub link; cat link/file > /dev/null; rm -r sub link; (exit 3)"}, in(dir), level(Full))
	if status := r.wait(); status != 3 {
		t.Error(status, r.out.String(), r.dump())
	}
}
