package network

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
)

const apiName = "api.example.org"

// origin is an upstream server of the test.
type origin struct {
	*httptest.Server
	pem []byte
}

// newOrigin serves TLS for names with a certificate of its own authority.
func newOrigin(t testing.TB, h http.Handler, names ...string) *origin {
	t.Helper()
	return newOriginOf(t, h, true, names...)
}

// newOriginOf is newOrigin, with HTTP/2 or without.
func newOriginOf(t testing.TB, h http.Handler, http2 bool, names ...string) *origin {
	t.Helper()
	a, err := NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	o := &origin{Server: httptest.NewUnstartedServer(h), pem: a.PEM()}
	o.Config.ErrorLog = silent
	o.EnableHTTP2 = http2
	cert, err := a.certificate(names[0])
	if err != nil {
		t.Fatal(err)
	}
	o.TLS = &tls.Config{Certificates: []tls.Certificate{*cert}}
	o.StartTLS()
	t.Cleanup(o.Close)
	return o
}

// shop is an engine that terminates TLS for apiName, and a client inside.
type shop struct {
	*world
	at     string // the door to apiName
	client *http.Client
}

type shopConfig struct {
	port        int
	secure      bool
	old         bool // the client speaks HTTP/1.1 only
	older       bool // so does the server
	rule        func(*policy.HostRule)
	config      func(*Config)
	credentials Credentials
}

// newShop makes apiName reachable through an engine, with h behind it.
func newShop(t testing.TB, h http.Handler, s shopConfig) *shop {
	t.Helper()
	rule := permits(apiName, 80, policy.HTTP)
	if s.secure {
		rule = permits(apiName, 443, policy.TLS)
		rule.Inspect = true
	}
	if s.port != 0 {
		rule.Ports[0] = s.port
	}
	if s.rule != nil {
		s.rule(&rule)
	}
	authority, err := NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	var upstream string
	roots := []byte{}
	if s.secure {
		o := newOriginOf(t, h, !s.older, apiName)
		upstream, roots = o.Listener.Addr().String(), o.pem
	} else {
		o := httptest.NewServer(h)
		o.Config.ErrorLog = silent
		t.Cleanup(o.Close)
		upstream = o.Listener.Addr().String()
	}
	out := &shop{}
	out.world = start(t, func(c *Config) {
		c.Authority = authority
		if s.credentials != nil {
			c.Credentials = s.credentials
		}
		if len(roots) > 0 {
			c.Roots = rootsOf(t, roots)
		}
		if s.config != nil {
			s.config(c)
		}
	}, rule)
	out.out.at[Destination{Name: apiName, Port: rule.Ports[0]}.String()] = upstream
	out.at = out.doorTo(apiName, rule.Ports[0])
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority.PEM())
	tr := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", out.at)
		},
		TLSClientConfig:    &tls.Config{RootCAs: pool},
		ForceAttemptHTTP2:  !s.old,
		DisableCompression: true,
	}
	t.Cleanup(tr.CloseIdleConnections)
	out.client = &http.Client{Transport: tr, Timeout: patience, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return out
}

func (s *shop) url(path string) string {
	if s.Engine.rules.Load().exact[apiName][0].Kind == policy.TLS {
		return "https://" + apiName + path
	}
	return "http://" + apiName + path
}

// ask makes a request and returns the answer and its body.
func (s *shop) ask(method, path string, body io.Reader, header ...string) (*http.Response, string) {
	s.t.Helper()
	r, err := http.NewRequest(method, s.url(path), body)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	resp, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp, string(b)
}

func TestPassThrough(t *testing.T) {
	o := newOrigin(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Proto, " ", r.Host) }), apiName)
	w := start(t, nil, permits(apiName, 443, policy.TLS))
	w.out.at[apiName+":443"] = o.Listener.Addr().String()
	at := w.doorTo(apiName, 443)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(o.pem)

	get := func(server string, roots *x509.CertPool) (string, error) {
		c := connect(t, at)
		tc := tls.Client(c, &tls.Config{RootCAs: roots, ServerName: server, InsecureSkipVerify: roots == nil})
		if err := tc.Handshake(); err != nil {
			return "", err
		}
		fmt.Fprintf(tc, "GET / HTTP/1.1\r\nHost: front.example.org\r\nConnection: close\r\n\r\n")
		b, err := io.ReadAll(tc)
		return string(b), err
	}
	if got, err := get(apiName, pool); err != nil || !strings.Contains(got, "front.example.org") {
		t.Errorf("through a connection that is not terminated came %q (%v)", got, err)
	}
	for _, server := range []string{"evil.example.org", ""} {
		if got, err := get(server, nil); err == nil {
			t.Errorf("server name %q was passed on: %q", server, got)
		} else if !strings.Contains(err.Error(), "unrecognized name") {
			t.Errorf("server name %q: the client is told %v", server, err)
		}
	}
	if r := w.refused(apiName); !r.High {
		t.Errorf("another server name is refused as %+v", r)
	}
}

func TestTerminated(t *testing.T) {
	for _, old := range []bool{false, true} {
		proto := map[bool]string{false: "HTTP/2.0", true: "HTTP/1.1"}[old]
		t.Run(proto, func(t *testing.T) {
			s := newShop(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				b, _ := io.ReadAll(r.Body)
				fmt.Fprintf(w, "%s %s %s %s %s", r.Proto, r.Method, r.Host, r.RequestURI, b)
			}), shopConfig{secure: true, old: old, rule: func(r *policy.HostRule) { r.Methods = []string{"GET", "PUT"} }})
			if resp, got := s.ask("PUT", "/a%2Fb/c?d=e;f&%zz", strings.NewReader("hello")); got != proto+" PUT api.example.org /a%2Fb/c?d=e;f&%zz hello" {
				t.Errorf("upstream got %q (%s)", got, resp.Status)
			}
			resp, got := s.ask("DELETE", "/a", nil)
			if resp.StatusCode != http.StatusForbidden || !strings.Contains(got, "holdfast.yaml:443") || strings.Count(got, "\n") != 1 {
				t.Errorf("a method that is not allowed is answered %d %q", resp.StatusCode, got)
			}
			s.countsBytes()
		})
	}
}

// countsBytes ends the client's connection, and checks the byte counts recorded for it.
func (s *shop) countsBytes() {
	s.t.Helper()
	s.client.CloseIdleConnections()
	var ended event.Event
	until(s.t, "net.close", func() bool {
		all := s.sink.all()
		i := slices.IndexFunc(all, func(e event.Event) bool { return e.Action == "net.close" })
		if i >= 0 {
			ended = all[i]
		}
		return i >= 0
	})
	if in, out := ended.Detail["in"], ended.Detail["out"]; in == "" || in == "0" || out == "" || out == "0" {
		s.t.Errorf("%q bytes came and %q went", in, out)
	}
}

func TestClearHTTP(t *testing.T) {
	s := newShop(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s", r.Host, r.RequestURI)
	}), shopConfig{})
	for range 3 {
		if _, got := s.ask("GET", "/x//y/../z?q", nil); got != "api.example.org /x//y/../z?q" {
			t.Errorf("upstream got %q", got)
		}
	}
	c := connect(t, s.at)
	send(t, c, "GET / HTTP/1.1\r\nHost: api.example.org\r\n\r\nGET /two HTTP/1.1\r\nHost: API.example.org.:80\r\n\r\nGET / HTTP/1.1\r\nHost: evil.example.org\r\n\r\n")
	in := bufio.NewReader(c)
	for i, want := range []string{"api.example.org /", "api.example.org /two", "holdfast refused api.example.org:80: request smuggling: the request is for another host\n"} {
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatalf("answer %d: %v", i, err)
		}
		if b, _ := io.ReadAll(resp.Body); string(b) != want {
			t.Errorf("answer %d is %q, want %q", i, b, want)
		}
	}
	if r := s.refused(apiName); !r.High {
		t.Errorf("another host is refused as %+v", r)
	}
}

func eventually(t testing.TB, what string, within time.Duration, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(within):
		t.Fatalf("%s: not within %v", what, within)
	}
}

// TestClientWithItsOwnRoots is a program that does not take the session's
// certificates: the user must learn which.
func TestClientWithItsOwnRoots(t *testing.T) {
	for _, most := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		s := newShop(t, http.NotFoundHandler(), shopConfig{secure: true})
		c := tls.Client(connect(t, s.at), &tls.Config{RootCAs: x509.NewCertPool(), ServerName: apiName, MaxVersion: most})
		if err := c.Handshake(); err == nil {
			t.Fatal("the handshake succeeded")
		}
		if r := s.refused(apiName); !strings.Contains(r.Reason, "does not accept the session's certificate") || r.High {
			t.Errorf("recorded as %+v", r)
		}
	}
}

// TestUpstreamWantsAnotherClient is an upstream that ends the handshake.
func TestUpstreamWantsAnotherClient(t *testing.T) {
	s := newShop(t, http.NotFoundHandler(), shopConfig{secure: true, old: true})
	s.server(apiName+":443", func(c *net.TCPConn) { alert(c, alertHandshakeFailure); io.Copy(io.Discard, c) })
	if resp, got := s.ask("GET", "/", nil); resp.StatusCode != 502 || !strings.Contains(got, "handshake failure") {
		t.Errorf("answered %d %q", resp.StatusCode, got)
	}
}
