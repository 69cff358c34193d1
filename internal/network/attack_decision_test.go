package network

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"net/textproto"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"holdfast.dev/holdfast/internal/policy"
)

// TestPathsOfOneRule requests paths outside the allowed one, in spellings that servers
// interpret in different ways.
func TestPathsOfOneRule(t *testing.T) {
	var seen atomic.Value
	seen.Store("")
	s := newShop(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen.Store(r.RequestURI) }),
		shopConfig{secure: true, old: true, rule: func(r *policy.HostRule) { r.Methods, r.Paths = []string{"GET"}, []string{"/repos/acme/**"} }})
	ask := func(line string, more ...string) string {
		c := tls.Client(connect(t, s.at), &tls.Config{InsecureSkipVerify: true, ServerName: apiName})
		fmt.Fprintf(c, "%s\r\nHost: %s\r\nConnection: close\r\n%s\r\n", line, apiName, strings.Join(more, ""))
		b, _ := io.ReadAll(c)
		return string(b)
	}
	if got := ask("GET /repos/acme/x HTTP/1.1"); !strings.HasPrefix(got, "HTTP/1.1 200") {
		t.Fatalf("what is allowed is answered %q", got)
	}
	seen.Store("")
	for _, path := range []string{
		"/repos/acme/../../user", "/repos/acme/%2e%2e/%2e%2e/user", "/repos/acme/..%2f..%2fuser", "/repos/acme/..;/..;/user",
		"/repos/acme/%252e%252e/user", "/repos/acme/..%5c..%5cuser", "/repos/acme/..\\..\\user", "/repos/acme/%c0%ae%c0%ae/user",
		"/repos/acme/%e0%80%ae/user", "/repos/acme/.%00./user", "/repos/acme/%20../user", "/repos/acme//../user", "//repos/acme/x",
		"/REPOS/acme/x", "/repos/Acme/x", "/repos/acme", "/repos/acme;x/y", "/user?/repos/acme/x", "/user#/repos/acme/x", "/user%3f/repos/acme/x",
		"/user%23/repos/acme/x", "/./repos/acme/x", "http://api.example.org/repos/acme/x", "https://api.example.org/repos/acme/x", "*", "repos/acme/x",
		"/repos/acme/x%", "/repos/acme/x%2", "/repos/acme/%u002e%u002e/user", "/repos%2facme/x", "/repos/acme/x/%2e", "/repos/acme/...", "/repos/acme/%09../user",
	} {
		if got := ask("GET " + path + " HTTP/1.1"); strings.HasPrefix(got, "HTTP/1.1 2") || seen.Load() != "" {
			t.Errorf("%s is answered %q, upstream saw %q", path, got, seen.Swap(""))
		}
	}
	for _, method := range []string{"get", "Get", "GET\t", "POST", "HEAD", "GETX", "CONNECT", "PRI", "TRACE", "OPTIONS", "QUERY", " GET", "GET/**/"} {
		if got := ask(method + " /repos/acme/x HTTP/1.1"); strings.HasPrefix(got, "HTTP/1.1 2") || seen.Load() != "" {
			t.Errorf("%q is answered %q, upstream saw %q", method, got, seen.Swap(""))
		}
	}
	for _, version := range []string{"HTTP/1.2", "HTTP/0.9", "HTTP/2.0", "HTTP/3", "http/1.1", "HTTP/1.1 ", "HTTPS/1.1", ""} {
		if got := ask("GET /repos/acme/x " + version); strings.HasPrefix(got, "HTTP/1.1 2") || seen.Load() != "" {
			t.Errorf("%q is answered %q, upstream saw %q", version, got, seen.Swap(""))
		}
	}
}

// TestOtherPaths sends headers that name a path other than that of the request.
func TestOtherPaths(t *testing.T) {
	handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {})
	limited := newShop(t, handler, shopConfig{secure: true, rule: func(r *policy.HostRule) { r.Paths = []string{"/repos/acme/**"} }})
	free := newShop(t, handler, shopConfig{secure: true})
	both := newShop(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Header.Get("Authorization")) }),
		shopConfig{secure: true, credentials: newVault(nil), rule: func(r *policy.HostRule) { bindForge(r); r.Paths = []string{"/repos/acme/**"} }, config: func(c *Config) {
			c.Allow = append(c.Allow, policy.HostRule{Host: apiName, Ports: []int{443}, Kind: policy.TLS})
		}})
	if _, got := both.ask("PUT", "/repos/acme/x", nil, "Authorization", "Bearer "+testPlaceholder); !strings.Contains(got, "***") {
		t.Fatalf("what is allowed is answered %q", got)
	}
	for _, name := range []string{"Destination", "X-Amz-Copy-Source", "x_amz_copy_source", "X-Ms-Copy-Source", "X-Goog-Copy-Source", "X-Copy-From"} {
		if r, got := limited.ask("PUT", "/repos/acme/x", nil, name, "/user/x"); r.StatusCode != 403 || !strings.Contains(got, "another path") {
			t.Errorf("%s where there are paths: %d %q", name, r.StatusCode, got)
		}
		if r, got := free.ask("PUT", "/repos/acme/x", nil, name, "/user/x"); r.StatusCode != 200 {
			t.Errorf("%s where there are none: %d %q", name, r.StatusCode, got)
		}
		if r, got := both.ask("PUT", "/repos/acme/x", nil, name, "/user/x", "Authorization", "Bearer "+testPlaceholder); r.StatusCode != 403 {
			t.Errorf("%s with what is lent for some paths: %d %q", name, r.StatusCode, got)
		}
	}
}

// TestBodiesThatAreNotExpected sends a body where some servers take it for the
// next request.
func TestBodiesThatAreNotExpected(t *testing.T) {
	ends := make(chan bool, 1)
	s := newShop(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { ends <- r.Close }), shopConfig{secure: true, old: true})
	for method, want := range map[string]bool{"GET": true, "HEAD": true, "OPTIONS": true, "DELETE": true, "POST": true} {
		s.ask(method, "/x", strings.NewReader("GET /admin HTTP/1.1\r\nX: "))
		if got := <-ends; got != want {
			t.Errorf("%s with a body: the connection ends: %v", method, got)
		}
	}
	s.ask("GET", "/x", nil)
	if <-ends {
		t.Error("a GET without a body ends the connection")
	}
}

// TestBodiesThatAreNotRead has a server that reads no body, and so takes one for the
// next request, where rules say what may be asked.
func TestBodiesThatAreNotRead(t *testing.T) {
	for name, row := range map[string]struct {
		rule func(*policy.HostRule)
		want string
	}{
		"paths":    {func(r *policy.HostRule) { r.Paths = []string{"/x"} }, "POST /x HTTP/1.1"},
		"methods":  {func(r *policy.HostRule) { r.Methods = []string{"GET", "POST"} }, "POST /x HTTP/1.1"},
		"no limit": {nil, "POST /x HTTP/1.1"},
	} {
		t.Run(name, func(t *testing.T) {
			asked := make(chan string, 1)
			defer log.SetOutput(log.Writer())
			var logged lockedBuffer
			s := newShop(t, http.NotFoundHandler(), shopConfig{rule: row.rule, config: func(*Config) { log.SetOutput(&logged) }})
			s.server(apiName+":80", func(c *net.TCPConn) {
				var lines []string
				for in := textproto.NewReader(bufio.NewReader(c)); ; {
					line, err := in.ReadLine()
					header, herr := in.ReadMIMEHeader()
					if err != nil || herr != nil {
						break
					}
					lines = append(lines, line)
					io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
					if header.Get("Connection") == "close" {
						break
					}
				}
				asked <- strings.Join(lines, ", ")
			})
			s.ask("POST", "/x", strings.NewReader("DELETE /admin HTTP/1.1\r\nHost: "+apiName+"\r\n\r\n"))
			s.web.forget()
			if got := <-asked; got != row.want {
				t.Errorf("the server is asked %q, want %q", got, row.want)
			}
			s.Close()
			if got := logged.String(); got != "" || log.Writer() != io.Discard {
				t.Errorf("the terminal shows %q", got)
			}
		})
	}
}

// TestOverridesDoNotPass sends every header by which frameworks change what was
// decided on, in both versions.
func TestOverridesDoNotPass(t *testing.T) {
	names := []string{
		"X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "X_HTTP_METHOD_OVERRIDE", "X-Original-URL", "X-Rewrite-URL", "X-Original-Host",
		"X-Forwarded-Host", "X_Forwarded_Host", "X-Forwarded-Server", "X-Host", "X-Forwarded-Proto", "Forwarded", "X-Real-IP", "True-Client-IP", "Via",
		"X-Original-Method", "X-Forwarded-Method", "X-Forwarded-Uri", "X-Forwarded-Prefix", "Proxy", "Proxy-Authorization", "Alt-Used", "X-Envoy-Original-Path",
	}
	for _, old := range []bool{true, false} {
		var left atomic.Value
		s := newShop(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			for _, name := range names {
				if r.Header.Get(name) != "" || len(r.Header[name]) > 0 {
					left.Store(name)
				}
			}
		}), shopConfig{secure: true, old: old})
		for _, name := range names {
			s.ask("GET", "/", nil, name, "evil")
			if got := left.Swap(""); got != nil && got != "" {
				t.Errorf("%v passes (HTTP/1: %v)", got, old)
			}
		}
	}
}

// TestDialNeverLeavesTheRules looks names up that lead to where nothing may, with
// and without internal: true.
func TestDialNeverLeavesTheRules(t *testing.T) {
	for _, at := range []string{
		"0.0.0.0", "::", "127.0.0.1", "::1", "::ffff:127.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::a9fe:a9fe", "2002:7f00:1::",
		"2001:0:0:0:0:0:80ff:fffe", "169.254.169.254", "::ffff:169.254.169.254", "fe80::1", "fe80::a9fe:a9fe", "fd00:ec2::254", "100.100.100.200", "224.0.0.1",
		"255.255.255.255", "ff02::1", "10.0.0.1", "fd00::1", "100.64.0.1", "0.1.2.3", "240.0.0.1", "192.0.0.8", "::ffff:0:127.0.0.1", "fe80::5efe:7f00:1", "2606:4700::5efe:7f00:1",
	} {
		d := newDialer(func(context.Context, string) ([]netip.Addr, error) { return []netip.Addr{netip.MustParseAddr(at)}, nil }, newNameGuard(Limits{}.withDefaults()), Limits{}.withDefaults())
		c, err := d.Dial(t.Context(), Destination{Name: apiName, Port: 443}, Permit{Kind: policy.TCP})
		if err == nil {
			c.Close()
			t.Errorf("%s was dialled", at)
			continue
		}
		if !isDecision(err) {
			t.Errorf("%s: %v", at, err)
		}
	}
	for _, at := range []string{"0.0.0.0", "::", "169.254.169.254", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "fd00:ec2::254", "100.100.100.200", "fe80::1", "224.0.0.1", "168.63.129.16"} {
		d := newDialer(func(context.Context, string) ([]netip.Addr, error) { return []netip.Addr{netip.MustParseAddr(at)}, nil }, newNameGuard(Limits{}.withDefaults()), Limits{}.withDefaults())
		if _, err := d.Dial(t.Context(), Destination{Name: apiName, Port: 443}, Permit{Kind: policy.TCP, Internal: true}); err == nil || !isDecision(err) {
			t.Errorf("%s with internal: true: %v", at, err)
		}
	}
}

// TestPriorKnowledgeInTheClear speaks HTTP/2 where requests of HTTP/1 are decided on.
func TestPriorKnowledgeInTheClear(t *testing.T) {
	s := newShop(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Error("upstream saw a request") }), shopConfig{})
	c := connect(t, s.at)
	send(t, c, http2.ClientPreface)
	got, _ := io.ReadAll(c)
	if !strings.HasPrefix(string(got), "HTTP/1.1 400") {
		t.Errorf("answered %q", got)
	}
}

// TestHelloInPieces cuts a hello into records and segments of a byte each.
func TestHelloInPieces(t *testing.T) {
	for _, server := range []string{apiName, "evil.example.org"} {
		near, far := net.Pipe()
		go tls.Client(near, &tls.Config{ServerName: server, InsecureSkipVerify: true}).Handshake()
		far.SetDeadline(time.Now().Add(patience))
		head := make([]byte, 5)
		io.ReadFull(far, head)
		body := make([]byte, int(head[3])<<8|int(head[4]))
		io.ReadFull(far, body)
		near.Close()
		o := newOrigin(t, http.NotFoundHandler(), apiName)
		w := start(t, nil, permits(apiName, 443, policy.TLS))
		w.out.at[apiName+":443"] = o.Listener.Addr().String()
		c := connect(t, w.doorTo(apiName, 443))
		for _, b := range body {
			c.Write([]byte{head[0], head[1], head[2], 0, 1, b})
		}
		first := make([]byte, 1)
		n, _ := io.ReadFull(c, first)
		// Go's server takes the pieces, as others do: it answers with a hello.
		if server == apiName && (n == 0 || first[0] != recordHandshake) {
			t.Errorf("the right name in pieces is answered %x", first[:n])
		}
		if server != apiName {
			if n > 0 && first[0] == recordHandshake {
				t.Error("another name in pieces was passed on")
			}
			if r := w.refused(apiName); !r.High {
				t.Errorf("it is refused as %+v", r)
			}
		}
	}
}

func isDecision(err error) bool {
	var a *AddressError
	return errors.As(err, &a)
}
