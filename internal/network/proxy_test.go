package network

import (
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/testenv"
)

func TestTheProxyDecidesAsInterceptionDoes(t *testing.T) {
	w := start(t, nil, permits("a.example.org", 22, policy.TCP), permits("203.0.113.9", 22, policy.TCP))
	w.server("a.example.org:22", echo)
	w.server("203.0.113.9:22", echo)
	pool, err := w.names.Address("a.example.org", wildName)
	if err != nil {
		t.Fatal(err)
	}
	for name, input := range map[string]string{
		"CONNECT":                          "CONNECT a.example.org:22 HTTP/1.1\r\nHost: a.example.org:22\r\n\r\n",
		"CONNECT without Host":             "CONNECT a.example.org:22 HTTP/1.0\r\n\r\n",
		"CONNECT with a Host without port": "CONNECT a.example.org:22 HTTP/1.1\r\nHost: a.example.org\r\n\r\n",
		"CONNECT in other spelling":        "CONNECT A.Example.ORG.:22 HTTP/1.1\r\nHost: a.EXAMPLE.org:22\r\nProxy-Authorization: Basic eDp5\r\n\r\n",
		"CONNECT to the name's address":    "CONNECT " + pool.String() + ":22 HTTP/1.1\r\n\r\n",
		"CONNECT to an allowed address":    "CONNECT 203.0.113.9:22 HTTP/1.1\r\n\r\n",
	} {
		c := connect(t, w.proxy)
		send(t, c, input+"early ")
		expect(t, c, "HTTP/1.1 200 Connection established\r\n\r\nearly ")
		send(t, c, "late")
		expect(t, c, "late")
		if rs := w.Refusals(); len(rs) > 0 {
			t.Errorf("%s: %+v", name, rs)
		}
		c.Close()
	}
	for name, address := range map[string]string{
		"a name":                       "\x03\x0da.example.org",
		"a name in other spelling":     "\x03\x0eA.EXAMPLE.org.",
		"the name's address":           "\x01" + string(pool.AsSlice()),
		"an allowed address":           "\x01\xcb\x00\x71\x09",
		"an allowed address mapped":    "\x04" + string(netip.MustParseAddr("::ffff:203.0.113.9").AsSlice()),
		"an allowed address as a name": "\x03\x0b203.0.113.9",
	} {
		c := connect(t, w.proxy)
		send(t, c, "\x05\x02\x02\x00\x05\x01\x00"+address+"\x00\x16early ")
		expect(t, c, "\x05\x00\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00early ")
		if rs := w.Refusals(); len(rs) > 0 {
			t.Errorf("%s: %+v", name, rs)
		}
		c.Close()
	}
}

func TestTheProxyRefuses(t *testing.T) {
	testenv.NoGoroutines(t)
	w := start(t, nil, permits("a.example.org", 22, policy.TCP), permits("tls.example.org", 443, policy.TLS))
	refuses := []struct {
		name, input string
		answer      string // what the answer begins with; "" for none
		reason      string // what it holds
		high        bool
	}{
		{"a name that no rule allows", "CONNECT b.test:443 HTTP/1.1\r\n\r\n", "HTTP/1.1 403 ", "no rule allows it", false},
		{"a metadata service", "CONNECT metadata.google.internal:80 HTTP/1.1\r\n\r\n", "HTTP/1.1 403 ", policy.NoMetadata, false},
		{"one below", "CONNECT x.metadata.google.internal:8080 HTTP/1.1\r\n\r\n", "HTTP/1.1 403 ", policy.NoMetadata, false},
		{"another port", "CONNECT a.example.org:23 HTTP/1.1\r\n\r\n", "HTTP/1.1 403 ", "port 23 is not allowed", false},
		{"an upstream that is not there", "CONNECT a.example.org:22 HTTP/1.1\r\n\r\n", "HTTP/1.1 502 ", "", false},
		{"the host's loopback", "CONNECT 127.0.0.1:5432 HTTP/1.1\r\n\r\n", "HTTP/1.1 403 ", "host ports", false},
		{"the host's loopback in IPv6", "CONNECT [::1]:5432 HTTP/1.1\r\n\r\n", "HTTP/1.1 403 ", "host ports", false},
		{"the host's loopback by a number", "CONNECT 2130706433:80 HTTP/1.1\r\n\r\n", "HTTP/1.1 400 ", "is a number", true},
		{"the host's loopback in hexadecimal", "CONNECT 0x7f.1:80 HTTP/1.1\r\n\r\n", "HTTP/1.1 400 ", "is a number", true},
		{"the metadata service in IPv6", "CONNECT [::ffff:169.254.169.254]:80 HTTP/1.1\r\n\r\n", "HTTP/1.1 403 ", "no name maps", false},
		{"an address that no name maps to", "CONNECT 198.18.0.77:443 HTTP/1.1\r\n\r\n", "HTTP/1.1 403 ", "no name maps", false},
		{"another name in Host", "CONNECT a.example.org:22 HTTP/1.1\r\nHost: b.test:22\r\n\r\n", "HTTP/1.1 400 ", "another", true},
		{"another port in Host", "CONNECT a.example.org:22 HTTP/1.1\r\nHost: a.example.org:23\r\n\r\n", "HTTP/1.1 400 ", "another", true},
		{"two Hosts", "CONNECT a.example.org:22 HTTP/1.1\r\nHost: a.example.org\r\nhost: a.example.org\r\n\r\n", "HTTP/1.1 400 ", "two Host", true},
		{"userinfo", "CONNECT a.example.org@b.test:22 HTTP/1.1\r\n\r\n", "HTTP/1.1 400 ", "different hosts", true},
		{"a NUL in the name", "CONNECT b.test\x00.a.example.org:22 HTTP/1.1\r\n\r\n", "HTTP/1.1 400 ", "not allowed in one", true},
		{"a body", "CONNECT a.example.org:22 HTTP/1.1\r\nContent-Length: 5\r\n\r\n", "HTTP/1.1 400 ", "body", true},
		{"a chunked body", "CONNECT a.example.org:22 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", "HTTP/1.1 400 ", "body", true},
		{"no port", "CONNECT a.example.org HTTP/1.1\r\n\r\n", "HTTP/1.1 400 ", "no port", false},
		{"port 0", "CONNECT a.example.org:0 HTTP/1.1\r\n\r\n", "HTTP/1.1 400 ", "port", false},
		{"a port with a sign", "CONNECT a.example.org:+22 HTTP/1.1\r\n\r\n", "HTTP/1.1 400 ", "port", false},
		{"a bare LF", "CONNECT a.example.org:22 HTTP/1.1\nHost: a.example.org\r\n\r\n", "HTTP/1.1 400 ", "bare line feed", true},
		{"a folded header", "CONNECT a.example.org:22 HTTP/1.1\r\nHost: a.example.org\r\n b.test\r\n\r\n", "HTTP/1.1 400 ", "", true},
		{"a blank before the colon", "CONNECT a.example.org:22 HTTP/1.1\r\nHost : a.example.org\r\n\r\n", "HTTP/1.1 400 ", "not a token", true},
		{"two blanks in the request line", "CONNECT  a.example.org:22 HTTP/1.1\r\n\r\n", "HTTP/1.1 400 ", "request line", false},
		{"HTTP/2 without TLS", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "HTTP/1.1 400 ", "HTTP/1.1", false},
		{"a target without a host", "GET / HTTP/1.1\r\nHost: a.example.org\r\n\r\n", "HTTP/1.1 400 ", "this is a proxy", false},
		{"an absolute target with another Host", "GET http://a.example.org/ HTTP/1.1\r\nHost: b.test\r\n\r\n", "HTTP/1.1 400 ", "another", true},
		{"an absolute target without Host", "GET http://a.example.org/ HTTP/1.1\r\n\r\n", "HTTP/1.1 400 ", "no Host", false},
		{"an absolute target with userinfo", "GET http://a.example.org@169.254.169.254/ HTTP/1.1\r\nHost: a.example.org\r\n\r\n", "HTTP/1.1 400 ", "different hosts", true},
		{"an absolute target with a fragment", "GET http://169.254.169.254#a.example.org/ HTTP/1.1\r\nHost: a.example.org\r\n\r\n", "HTTP/1.1 400 ", "fragment", true},
		{"an absolute target with a backslash", "GET http://b.test\\a.example.org/ HTTP/1.1\r\nHost: a.example.org\r\n\r\n", "HTTP/1.1 400 ", "different hosts", true},
		{"https as an absolute target", "GET https://tls.example.org/ HTTP/1.1\r\nHost: tls.example.org\r\n\r\n", "HTTP/1.1 400 ", "http://", false},
		{"HTTP in the clear to what is TLS", "GET http://tls.example.org:443/ HTTP/1.1\r\nHost: tls.example.org:443\r\n\r\n", "HTTP/1.1 403 ", "not HTTP in the clear", false},
		{"SOCKS4", "\x04\x01\x00\x50\x7f\x00\x00\x01\x00", "", "SOCKS4", false},
		{"TLS to the proxy", "\x16\x03\x01\x00\x05hello", "", "0x16", false},
		{"SOCKS5 with authentication only", "\x05\x01\x02", "\x05\xff", "authentication", false},
		{"SOCKS5 BIND", "\x05\x01\x00\x05\x02\x00\x01\x01\x01\x01\x01\x00\x16", "\x05\x00\x05\x07", "BIND", false},
		{"SOCKS5 UDP ASSOCIATE", "\x05\x01\x00\x05\x03\x00\x01\x00\x00\x00\x00\x00\x00", "\x05\x00\x05\x07", "UDP ASSOCIATE", false},
		{"SOCKS5 with another kind of address", "\x05\x01\x00\x05\x01\x00\x02\x00\x00\x00\x00\x00\x00", "\x05\x00\x05\x08", "kind", false},
		{"SOCKS5 to a name that no rule allows", "\x05\x01\x00\x05\x01\x00\x03\x06b.test\x01\xbb", "\x05\x00\x05\x02", "no rule", false},
		{"SOCKS5 to loopback", "\x05\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x50", "\x05\x00\x05\x02", "host ports", false},
		{"SOCKS5 with a NUL in the name", "\x05\x01\x00\x05\x01\x00\x03\x14b.test\x00.a.example.org\x00\x16", "\x05\x00\x05\x01", "0x00", true},
		{"SOCKS5 with an empty name", "\x05\x01\x00\x05\x01\x00\x03\x00\x00\x16", "\x05\x00\x05\x01", "empty", true},
		{"SOCKS5 to port 0", "\x05\x01\x00\x05\x01\x00\x03\x0da.example.org\x00\x00", "\x05\x00\x05\x01", "port 0", false},
		{"SOCKS5 to an upstream that is not there", "\x05\x01\x00\x05\x01\x00\x03\x0da.example.org\x00\x16", "\x05\x00\x05\x04", "", false},
	}
	for _, tt := range refuses {
		t.Run(tt.name, func(t *testing.T) {
			w.ledger.mu.Lock()
			w.ledger.refusals, w.ledger.grave = counted[refusalKey, Refusal]{}, counted[refusalKey, Refusal]{}
			w.ledger.mu.Unlock()
			got, err := roundTrip(t, w.proxy, tt.input)
			if !strings.HasPrefix(string(got), tt.answer) || tt.answer == "" && len(got) > 0 {
				t.Errorf("answer %q (%v), want %q", got, err, tt.answer)
			}
			rs := w.Refusals()
			if strings.Contains(tt.name, "upstream") {
				if len(rs) > 0 {
					t.Errorf("a failure was recorded as a refusal: %+v", rs)
				}
				return
			}
			if len(rs) != 1 || !strings.Contains(rs[0].Reason, tt.reason) || rs[0].High != tt.high || (tt.high || tt.reason == policy.NoMetadata) && rs[0].Flag != "" {
				t.Errorf("refusals %+v, want %q, high %v", rs, tt.reason, tt.high)
			}
		})
	}
}

func TestAHeadThatComesTooSlowlyOrIsTooLongIsRefused(t *testing.T) {
	w := start(t, func(c *Config) { c.Limits.HeadTime = 300 * time.Millisecond; c.Limits.HeadBytes = 16 << 10 })
	t.Run("a header a moment", func(t *testing.T) {
		c := connect(t, w.proxy)
		send(t, c, "CONNECT a.example.org:443 HTTP/1.1\r\n")
		go func() {
			for {
				if _, err := io.WriteString(c, "X: y\r\n"); err != nil {
					return
				}
				time.Sleep(20 * time.Millisecond)
			}
		}()
		expect(t, c, "HTTP/1.1 408 ")
	})
	t.Run("nothing at all", func(t *testing.T) {
		wantReset(t, w.proxy)
	})
	t.Run("half a SOCKS5 greeting", func(t *testing.T) {
		if got, err := roundTrip(t, w.proxy, "\x05\x03\x00"); err == nil {
			t.Errorf("read %q and the end", got)
		}
	})
	t.Run("a head without an end", func(t *testing.T) {
		c := connect(t, w.proxy)
		sent := make(chan int64, 1)
		go func() {
			n, _ := io.CopyN(c, endless{}, 1<<30)
			sent <- n
		}()
		expect(t, c, "HTTP/1.1 431 ")
		c.Close()
		if n := <-sent; n > 64<<20 {
			t.Errorf("%d bytes were taken", n)
		}
	})
}

// endless is the head of a request that never ends.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	return copy(p, strings.Repeat("A", len(p))), nil
}

func TestAbsoluteRequestsAreForwarded(t *testing.T) {
	w := start(t, nil, permits("a.example.org", 80, policy.HTTP))
	asked := make(chan string, 1)
	w.server("a.example.org:80", func(c *net.TCPConn) {
		b := make([]byte, 4096)
		n, _ := c.Read(b)
		asked <- string(b[:n])
		io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi")
	})
	got, err := roundTrip(t, w.proxy, "GET http://a.example.org/x?y HTTP/1.1\r\nHost: a.example.org\r\nProxy-Authorization: Basic eDp5\r\nProxy-Connection: keep-alive\r\nConnection: close\r\n\r\n")
	if err != nil || !strings.HasPrefix(string(got), "HTTP/1.1 200 ") || !strings.HasSuffix(string(got), "hi") {
		t.Fatalf("%q, %v", got, err)
	}
	if q := <-asked; !strings.HasPrefix(q, "GET /x?y HTTP/1.1\r\n") || strings.Contains(q, "Proxy-") {
		t.Errorf("upstream was asked %q", q)
	}
}
