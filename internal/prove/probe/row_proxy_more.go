//go:build linux

package probe

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// openReach lets requests to one tree through, so that a request that was
// hidden in another is seen.
var openReach = []Reach{
	{Host: "allowed.test", Ports: []int{80, 8081, 8082}, Kind: "http", Methods: []string{"GET", "POST"}, Paths: []string{"/open", "/open/**", "/"}},
	{Host: "allowed.test", Ports: []int{443}, Kind: "tls", Methods: []string{"GET", "POST"}, Paths: []string{"/open", "/open/**", "/"}},
}

// proxyBodies hide one request in another.
func proxyBodies() []Row {
	hidden := "GET /admin HTTP/1.1\r\nHost: allowed.test\r\n\r\n"
	chunk := "0\r\n\r\n" + hidden
	post := func(headers, body string) string {
		return "POST /open HTTP/1.1\r\nHost: allowed.test\r\n" + headers + "\r\n" + body
	}
	var shapes []string
	for _, s := range []string{
		post("Content-Length: "+decimal(len(chunk))+"\r\nTransfer-Encoding: chunked\r\n", chunk),
		post("Transfer-Encoding: chunked\r\nContent-Length: 4\r\n", "5c\r\n"+hidden+strings.Repeat("x", 0x5c-len(hidden))+"\r\n0\r\n\r\n"),
		post("Content-Length: "+decimal(len(chunk))+"\r\nTransfer-Encoding: xchunked\r\n", chunk),
		post("Content-Length: "+decimal(len(chunk))+"\r\nTransfer-Encoding : chunked\r\n", chunk),
		post("Content-Length: "+decimal(len(chunk))+"\r\nTransfer-Encoding:\tchunked\r\n", chunk),
		post("Content-Length: "+decimal(len(chunk))+"\r\nTransfer-Encoding: identity, chunked\r\n", chunk),
		post("Content-Length: "+decimal(len(chunk))+"\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", chunk),
		post("Content-Length: "+decimal(len(chunk))+"\r\nX: y\r\n Transfer-Encoding: chunked\r\n", chunk),
		post("Content-Length: "+decimal(len(chunk))+"\r\nX: y\nTransfer-Encoding: chunked\r\n", chunk),
		post("Content-Length: "+decimal(len(chunk))+"\r\nTransfer-Encoding: \"chunked\"\r\n", chunk),
		post("Content-Length: 0\r\nContent-Length: "+decimal(len(hidden))+"\r\n", hidden),
		post("Content-Length: "+decimal(len(hidden))+"\r\nContent-Length: 0\r\n", hidden),
		post("Content-Length: "+decimal(len(hidden))+", 0\r\n", hidden),
		post("Content-Length: +0\r\n", hidden), post("Content-Length: 0x0\r\n", hidden), post("Content-Length: -1\r\n", hidden),
		post("Transfer-Encoding: chunked\r\n", "0;a=\n\r\n\r\n"+hidden), post("Transfer-Encoding: chunked\r\n", "00000000000000000\r\n\r\n"+hidden),
		post("Transfer-Encoding: chunked\r\n", "0x0\r\n\r\n"+hidden), post("Transfer-Encoding: chunked\r\n", "0\n\n"+hidden),
		"POST /open HTTP/1.1\nHost: allowed.test\nContent-Length: 0\n\n" + hidden,
		"POST /open HTTP/1.0\r\nHost: allowed.test\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk,
	} {
		for _, to := range []string{"allowed.test:8081", "allowed.test:8082", "connect!allowed.test:8082"} {
			shapes = append(shapes, say(to, strings.ReplaceAll(s, "Host: allowed.test\r\n", "Host: "+strings.TrimPrefix(to, "connect!")+"\r\n")))
		}
		absolute := strings.Replace(s, "POST /open", "POST http://allowed.test:8082/open", 1)
		shapes = append(shapes, say(proxyAddr, strings.ReplaceAll(absolute, "Host: allowed.test\r\n", "Host: allowed.test:8082\r\n")))
	}
	good := "ok=" + rowsOf(say("allowed.test:8081", post("Content-Length: 2\r\n", "ab")), say("allowed.test:8082", "POST /open HTTP/1.1\r\nHost: allowed.test:8082\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n"))
	good = strings.ReplaceAll(good, `Host: allowed.test\r\n`, `Host: allowed.test:8081\r\n`)
	return []Row{
		{ID: "PXY-010", Core: true, Title: "a request hides in the body of another, for a server that measures bodies in another way",
			Refs: []string{"RFC 9112, 6.3", "CVE-2025-32094"}, Action: "net-say", Options: Options{Reach: openReach}, Timeout: 60 * time.Second,
			Args: []string{good, "say=" + rowsOf(shapes...)}},
		{ID: "PXY-011", Title: "a request hides in the body of one that has no body by custom",
			Refs: []string{"RFC 9110, 9.3.1"}, Action: "net-say", Options: Options{Reach: withHead(openReach)},
			Bare: "a server that reads bodies as it should finds one request in one",
			Args: []string{"ok=" + say("allowed.test:80", "GET /open HTTP/1.1\r\nHost: allowed.test\r\n\r\n"), "say=" + rowsOf(
				say("allowed.test:80", "GET /open HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: "+decimal(len(hidden))+"\r\n\r\n"+hidden),
				say("allowed.test:80", "HEAD /open HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: "+decimal(len(hidden))+"\r\n\r\n"+hidden),
				say("allowed.test:80", "GET /open HTTP/1.1\r\nHost: allowed.test\r\nTransfer-Encoding: chunked\r\n\r\n2b\r\n"+hidden+"\r\n0\r\n\r\n"))}},
		bodiesUnread(),
	}
}

// bodiesUnread sends requests that are as they should be to a server that believes
// another header about how long a body is.
func bodiesUnread() Row {
	const hidden = "GET /admin HTTP/1.1\r\nHost: allowed.test:8082\r\n\r\n"
	request := func(method, body string) string {
		return say("allowed.test:8082", method+" /open HTTP/1.1\r\nHost: allowed.test:8082\r\nContent-Length: "+decimal(len(body))+"\r\n\r\n"+body)
	}
	return Row{
		ID: "PXY-011b", Title: "a request hides in the body of another, for a server that reads no body",
		Refs: []string{"RFC 9112, 11.2", "CL.0 2022"}, Action: "net-say", Options: Options{Reach: openReach},
		Args: []string{"ok=" + request("POST", ""), "say=" + rowsOf(request("GET", hidden), request("POST", hidden))},
	}
}

func withHead(reach []Reach) []Reach {
	reach = slices.Clone(reach)
	for i := range reach {
		reach[i].Methods = append(slices.Clone(reach[i].Methods), "HEAD")
	}
	return reach
}

func decimal(n int) string { return big.NewInt(int64(n)).String() }

// proxyRequests are requests that an allowed host gets and should not.
func proxyRequests() []Row {
	get := func(line, rest string) string { return line + " HTTP/1.1\r\nHost: allowed.test\r\n" + rest + "\r\n" }
	const ask = "GET /open"
	secret := "X-Forwarded-For: 1.2.3.4\r\nX-Forwarded-Host: denied.test\r\nForwarded: host=denied.test\r\nX-Real-IP: 1.2.3.4\r\nX-Original-URL: /admin\r\nX-Rewrite-URL: /admin\r\nVia: 1.1 x\r\n"
	hops := "Proxy-Authorization: Basic eDp5\r\nProxy-Connection: keep-alive\r\nConnection: close, X-Filter\r\nX-Filter: on\r\nKeep-Alive: timeout=5\r\nTE: trailers\r\n"
	return []Row{
		{ID: "PXY-013", Title: "a header that only the way there is for, or that names another host or path, arrives",
			Refs: []string{"RFC 9110, 7.6.1", "RFC 7239"}, Action: "net-say",
			Setup: network(func(n *internet) {
				n.never = []string{"proxy-authorization", "proxy-connection", "x-filter", "x-forwarded", "forwarded:", "x-real-ip", "x-original", "x-rewrite", "via:", "keep-alive:"}
			}),
			Args: []string{"ok=" + say("allowed.test:80", get("GET /", "")), "say=" + rowsOf(
				say("allowed.test:80", get("GET /", secret)), say("allowed.test:80", get("GET /", hops)),
				say(proxyAddr, get("GET http://allowed.test/", secret)), say(proxyAddr, get("GET http://allowed.test/", hops)),
				say("allowed.test:80", get("GET /", "x_forwarded_host: denied.test\r\nX-Forwarded-For : 1\r\n")), say("allowed.test:80", get("GET /", "X-ORIGINAL-url: /admin\r\nX-Original_Host: x\r\n")))}},
		{ID: "PXY-015", Title: "a path outside the allowed tree is reached by a spelling",
			Refs: []string{"github.com/NVIDIA/OpenShell regression_dotdot_with_path_parameter", "RFC 3986, 6.2.2"}, Action: "net-say", Options: Options{Reach: openReach},
			Args: []string{"ok=" + rowsOf(say("allowed.test:80", get("GET /open/a/b?c=d/../e", "")), say(proxyAddr, get("GET http://allowed.test/open/x", ""))), "say=" + pathTricks()}},
		{ID: "PXY-015b", Title: "a path outside the allowed tree is reached over TLS",
			Refs: []string{"RFC 3986, 6.2.2"}, Action: "net-tls", Options: Options{Reach: openReach},
			Args: []string{"ok=direct allowed.test:443 path=/open/x\nconnect allowed.test:443 path=/open/x alpn=h2", "try=" + rowsOf("direct allowed.test:443 path=/admin", "connect allowed.test:443 path=/admin alpn=h2",
				"direct allowed.test:443 path=/open/../admin", "direct allowed.test:443 path=/open/%2e%2e/admin alpn=h2", "direct allowed.test:443 path=/open/..%2fadmin", "direct allowed.test:443 path=/open/..;/admin alpn=h2", "direct allowed.test:443 path=/opened")}},
		{ID: "PXY-016", Title: "a method that is not allowed is used, by its name or by another header",
			Refs: []string{"RFC 9110, 9.1"}, Action: "net-say",
			Options: Options{Reach: []Reach{{Host: "allowed.test", Ports: []int{80}, Kind: "http", Methods: []string{"GET"}}}},
			Setup:   network(func(n *internet) { n.never = []string{"x-http-method", "x-method-override"} }),
			Args: []string{"ok=" + say("allowed.test:80", get("GET /", "")), "say=" + rowsOf(
				say("allowed.test:80", get("POST /", "Content-Length: 0\r\n")), say("allowed.test:80", get("get /", "")), say("allowed.test:80", get("GETX /", "")), say("allowed.test:80", get("DELETE /", "")),
				say("allowed.test:80", get("GET\tPOST /", "")), say("allowed.test:80", get("CONNECT denied.test:80", "")), say("allowed.test:80", get("TRACE /", "")),
				say("allowed.test:80", get("GET /", "X-HTTP-Method-Override: DELETE\r\n")), say("allowed.test:80", get("GET /", "X-HTTP-Method: DELETE\r\n")), say("allowed.test:80", get("GET /", "X-Method-Override: DELETE\r\n")),
				say(proxyAddr, get("POST http://allowed.test/", "Content-Length: 0\r\n")))}},
		{ID: "PXY-028", Title: "an upgrade turns an allowed request into a tunnel to what is not allowed",
			Refs: []string{"RFC 9110, 7.8", "RFC 6455", "RFC 9113, 3.3"}, Action: "net-say", Options: Options{Reach: openReach},
			Args: []string{"ok=" + say("allowed.test:80", get("GET /open/x", "")), "say=" + rowsOf(
				say("allowed.test:80", get(ask, "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: eHh4eHh4eHh4eHh4eHh4eA==\r\n")+get("GET /admin", "")),
				say("allowed.test:80", get(ask, "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: eHh4eHh4eHh4eHh4eHh4eA==\r\n"), "?", get("GET /admin", "")),
				say("allowed.test:80", get(ask, "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"), "?", get("GET /admin", "")),
				say("allowed.test:80", get("GET /ws", "Connection: Upgrade\r\nUpgrade: websocket\r\n")),
				say("allowed.test:80", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"),
				say("allowed.test:80", get("CONNECT allowed.test:80", ""), "?", get("GET /admin", "")))}},
		{ID: "PXY-030", Title: "a head without an end is kept and passed on",
			Refs: []string{"CVE-2023-44487", "RFC 6585, 5"}, Action: "net-say",
			Setup: network(func(n *internet) { n.never = []string{"x-bulk-last"} }),
			Args: []string{"ok=" + say("allowed.test:80", get("GET /", "")), "say=" + rowsOf(
				say("allowed.test:80", "GET / HTTP/1.1\r\nHost: allowed.test\r\n", "X-Bulk: ", "*98304 x", "\r\nX-Bulk-Last: 1\r\n\r\n"),
				say("allowed.test:80", "GET / HTTP/1.1\r\nHost: allowed.test\r\n", "*8192 X-Bulk: xxxx\r\n", "X-Bulk-Last: 1\r\n\r\n"))}},
	}
}

func pathTricks() string {
	var out []string
	for _, p := range []string{
		"/admin", "/opened", "/open/../admin", "/open/./../admin", "/open/%2e%2e/admin", "/open/..%2fadmin", "/open/..%2Fadmin", "/open/%2e%2e%2fadmin", "/open/..;/admin", "/open/..;a=b/admin",
		"//evil/x", "/open//../admin", "/open/..\\admin", "/open\\..\\admin", "/open/..%5cadmin", "/open/%252e%252e/admin", "/open/.%2e/admin", "/OPEN/x", "/%6fpen/../admin",
		"/open/..%00/admin", "/open/x/../../admin", "/admin?/open/", "/admin#/open/", "/admin;/open/", "/open%2f..%2fadmin", "/open/%c0%ae%c0%ae/admin", "/open/..", "*", "open/x", "/open/\u2025/admin", "/open/\t../admin",
	} {
		out = append(out, say("allowed.test:80", "GET "+p+" HTTP/1.1\r\nHost: allowed.test\r\n\r\n"))
		if strings.HasPrefix(p, "/") {
			out = append(out, say(proxyAddr, "GET http://allowed.test"+p+" HTTP/1.1\r\nHost: allowed.test\r\n\r\n"))
		}
	}
	return rowsOf(out...)
}

// proxyPolicies are policies that allow nothing, or somebody else.
func proxyPolicies() []Row {
	everywhere := []string{"http://allowed.test/", "http://denied.test/", "https://allowed.test/", "http://1.2.3.4/", "http://93.184.215.14/", "tcp://allowed.test:22"}
	return []Row{
		{ID: "PXY-022", Core: true, Title: "a list of destinations that is empty allows all of them",
			Refs: []string{"CVE-2025-66479"}, Options: Options{Reach: []Reach{}}, Action: "net-get", Args: []string{"ok=none", "try=" + by(allDoors, everywhere...)}},
		{ID: "PXY-025", Title: "another run with a narrower policy uses the doors of this one",
			Refs: []string{"srt socks-unauthenticated-probe.test.ts"}, Action: "net-wait", Drive: secondRun},
	}
}

// secondRun starts one run that may reach a host, and while it runs another
// that may not.
func secondRun(s *Session) {
	there, until := filepath.Join(s.World.W, "there"), filepath.Join(s.World.W, "until")
	wait := s.Start(Command{Action: "net-wait", Args: []string{"ok=" + by(allDoors, "http://allowed.test/first"), "there=" + there, "until=" + until, "resolve=allowed.test"}, Options: s.Row.Options})
	for end := time.Now().Add(20 * time.Second); !exists(there) && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
	}
	s.World.net.reachOnly("/first")
	urls := []string{"http://allowed.test/second", "http://denied.test/"}
	found, err := os.ReadFile(there + ".found")
	if err != nil {
		s.Fail(err)
	}
	for _, a := range strings.Fields(string(found)) {
		if strings.Contains(a, ":") {
			a = "[" + a + "]"
		}
		urls = append(urls, "http://"+a+"/second", "https://"+a+"/second")
	}
	for _, reach := range [][]Reach{{}, {{Host: "b.allowed.test", Ports: []int{80, 443}, Kind: "tcp"}}} {
		s.Run(Command{Action: "net-get", Args: []string{"ok=none", "try=" + by(allDoors, urls...)}, Options: Options{Reach: reach}})
	}
	if err := s.World.File("W/until", ""); err != nil {
		s.Fail(err)
	}
	wait()
}

// reachOnly narrows what allowed hosts may be asked for.
func (n *internet) reachOnly(target string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i := range n.reach {
		n.reach[i].Paths = []string{target}
	}
}

// selfSigned is a certificate that nobody vouches for.
func selfSigned(name string) tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
