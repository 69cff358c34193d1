package network

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"holdfast.dev/holdfast/internal/policy"
)

// TestInterimAnswersCarryNothing has an upstream put the secret into what comes
// before its answer.
func TestInterimAnswersCarryNothing(t *testing.T) {
	for _, old := range []bool{true, false} {
		s := newShop(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Echo", r.Header.Get("Authorization"))
			w.Header().Set("Link", "</"+r.Header.Get("Authorization")+">")
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusProcessing)
			w.Header().Del("X-Echo")
			w.Header().Del("Link")
			io.WriteString(w, "done")
		}), shopConfig{secure: true, old: old, rule: bindForge, credentials: newVault(nil)})
		resp, got := s.ask("GET", "/", nil, "Authorization", "Bearer "+testPlaceholder)
		if got != "done" || resp.Header.Get("X-Echo") != "" || resp.Header.Get("Link") != "" {
			t.Errorf("the answer is %q with %v", got, resp.Header)
		}
	}
}

// TestObservingAsksNobody tries every door while a policy is learned by looking:
// no name is looked up, and nothing is dialled.
func TestObservingAsksNobody(t *testing.T) {
	var asked atomic.Int64
	authority, err := NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	w := start(t, func(c *Config) { c.Learn, c.Authority = Observe, authority })
	lookup := func(context.Context, string) ([]netip.Addr, error) {
		asked.Add(1)
		return nil, fmt.Errorf("asked")
	}
	w.Engine.dial = observing{newDialer(lookup, newNameGuard(w.limits), w.limits)}
	for _, words := range []string{
		"CONNECT a.example.org:443 HTTP/1.1\r\nHost: a.example.org:443\r\n\r\n",
		"CONNECT a.example.org:22 HTTP/1.1\r\nHost: a.example.org:22\r\n\r\n",
		"GET http://a.example.org/x HTTP/1.1\r\nHost: a.example.org\r\nConnection: close\r\n\r\n",
		"\x05\x01\x00\x05\x01\x00\x03\x0da.example.org\x00\x16",
		"\x05\x01\x00\x05\x01\x00\x03\x0da.example.org\x01\xbb",
	} {
		c := connect(t, w.proxy)
		send(t, c, words)
		c.CloseWrite()
		io.Copy(io.Discard, c)
	}
	for _, port := range []int{22, 80, 443} {
		c := connect(t, w.doorTo("b.example.org", port))
		if port == 443 {
			tc := tls.Client(c, &tls.Config{InsecureSkipVerify: true, ServerName: "b.example.org"})
			fmt.Fprintf(tc, "GET /y HTTP/1.1\r\nHost: b.example.org\r\nConnection: close\r\n\r\n")
			io.Copy(io.Discard, tc)
			continue
		}
		io.WriteString(c, "GET /y HTTP/1.1\r\nHost: b.example.org\r\nConnection: close\r\n\r\n")
		c.CloseWrite()
		io.Copy(io.Discard, c)
	}
	if n := asked.Load(); n > 0 {
		t.Errorf("%d names were looked up", n)
	}
	if n := len(w.Observations()); n < 4 {
		t.Errorf("observed only %v", w.Observations())
	}
}

// TestNoSecretInDebugging runs a request with the debugging of net/http on, which
// writes headers to the standard log.
func TestNoSecretInDebugging(t *testing.T) {
	const again = "EGRESS_DEBUGGED"
	if os.Getenv(again) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestNoSecretInDebugging$")
		cmd.Env = append(os.Environ(), again+"=1", "GODEBUG=http2debug=2")
		out, err := cmd.CombinedOutput()
		if err != nil || bytes.Contains(out, []byte(testSecret)) {
			at := max(bytes.Index(out, []byte(testSecret)), 0)
			t.Errorf("%v: %d bytes, among them %q", err, len(out), out[at:min(len(out), at+300)])
		}
		return
	}
	s := newShop(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), shopConfig{secure: true, rule: bindForge, credentials: newVault(nil)})
	s.ask("GET", "/", nil, "Authorization", "Bearer "+testPlaceholder)
}

// TestStrangeSocks sends what is next to SOCKS5.
func TestStrangeSocks(t *testing.T) {
	w := start(t, nil, permits("a.example.org", 22, policy.TCP), permits("10.1.2.3", 22, policy.TCP))
	w.out.do["a.example.org:22"] = func() (net.Conn, error) { t.Error("a.example.org was dialled"); return nil, io.EOF }
	for name, words := range map[string]string{
		"SOCKS4":                          "\x04\x01\x00\x16\x0a\x01\x02\x03\x00",
		"SOCKS4a":                         "\x04\x01\x00\x16\x00\x00\x00\x01\x00a.example.org\x00",
		"no method":                       "\x05\x00",
		"password alone":                  "\x05\x01\x02",
		"BIND":                            "\x05\x01\x00\x05\x02\x00\x03\x0da.example.org\x00\x16",
		"UDP ASSOCIATE":                   "\x05\x01\x00\x05\x03\x00\x03\x0da.example.org\x00\x16",
		"version 4 in the request":        "\x05\x01\x00\x04\x01\x00\x03\x0da.example.org\x00\x16",
		"a reserved byte that is set":     "\x05\x01\x00\x05\x01\x01\x03\x0da.example.org\x00\x16",
		"an address of kind 2":            "\x05\x01\x00\x05\x01\x00\x02\x0da.example.org\x00\x16",
		"a name of no bytes":              "\x05\x01\x00\x05\x01\x00\x03\x00\x00\x16",
		"a name with NUL":                 "\x05\x01\x00\x05\x01\x00\x03\x0ea.example.org\x00\x00\x16",
		"a name with userinfo":            "\x05\x01\x00\x05\x01\x00\x03\x0fx@a.example.org\x00\x16",
		"a name with a port":              "\x05\x01\x00\x05\x01\x00\x03\x10a.example.org:22\x00\x16",
		"port 0":                          "\x05\x01\x00\x05\x01\x00\x03\x0da.example.org\x00\x00",
		"another port":                    "\x05\x01\x00\x05\x01\x00\x03\x0da.example.org\x00\x19",
		"the metadata service as a name":  "\x05\x01\x00\x05\x01\x00\x03\x0f169.254.169.254\x00\x16",
		"the same as a number":            "\x05\x01\x00\x05\x01\x00\x03\x0a2852039166\x00\x16",
		"the same as hexadecimal":         "\x05\x01\x00\x05\x01\x00\x03\x0a0xa9fea9fe\x00\x16",
		"loopback":                        "\x05\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x16",
		"loopback in IPv6":                "\x05\x01\x00\x05\x01\x00\x04" + strings.Repeat("\x00", 15) + "\x01\x00\x16",
		"loopback mapped":                 "\x05\x01\x00\x05\x01\x00\x04" + strings.Repeat("\x00", 10) + "\xff\xff\x7f\x00\x00\x01\x00\x16",
		"an address that no name maps to": "\x05\x01\x00\x05\x01\x00\x01\xc6\x12\x00\x01\x00\x16",
	} {
		got, err := roundTrip(t, w.proxy, words)
		if err == nil && len(got) > 3 && got[2] == 5 && got[3] == 0 {
			t.Errorf("%s: answered %x", name, got)
		}
	}
}
