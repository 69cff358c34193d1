//go:build linux

package probe

import (
	"crypto/tls"
	"fmt"
	"slices"
	"strings"
)

const classProxy = "net.proxy-parsing"

var bothProxies = []string{"connect", "socks"}

func proxyRows() []Row {
	return slices.Concat(public(classProxy, proxyNames()...), public(classProxy, proxyHosts()...), public(classProxy, proxyTLS()...),
		public(classProxy, proxyBodies()...), public(classProxy, proxyRequests()...), public(classProxy, proxyPolicies()...), public(classProxy, proxySecrets()...), public(classProxy, proxyEchoes()...), public(classProxy, proxyH2()...), public(classProxy, baitedTrailers()...))
}

// proxyNames are names that two programs read differently.
func proxyNames() []Row {
	long := strings.Repeat(strings.Repeat("a", 63)+".", 4) + "a"
	return []Row{
		{ID: "PXY-001", Core: true, Title: "a name that ends early for whoever resolves it, in SOCKS5",
			Refs: []string{"Claude Code 2.0.24 to 2.1.89", "npm @anthropic-ai/sandbox-runtime"}, Action: "net-get",
			Args: []string{"try=" + by([]string{"socks"}, "http://denied.test\x00.allowed.test/", "http://denied.test\x00.wild.test/", "https://denied.test\x00.wild.test/", "http://denied.test\x00allowed.test/")}},
		{ID: "PXY-001b", Title: "a name with a control character, a blank, or an escape of one",
			Refs: []string{"RFC 1035, 2.3.1", "RFC 3986, 3.2.2"}, Action: "net-get", Setup: network(quietNames),
			Args: []string{"ok=" + by(bothProxies, "http://allowed.test/"), "try=" + by(append([]string{"forward"}, bothProxies...), "http://denied.test\x00.wild.test/", "http://denied.test\t.wild.test/", "http://denied.test .wild.test/", "http://denied.test#.wild.test/",
				"http://denied.test%00.wild.test/", "http://denied.test%2f.wild.test/", "http://denied.test\n.wild.test/", "http://denied.test\r\n.wild.test/", "http://denied.test\x7f.wild.test/", "http://denied.test\\.wild.test/",
				"http://.wild.test/", "http://..wild.test/", "http://*.wild.test/", "http://a..wild.test/", "http://-.wild.test/", "http://"+long+".wild.test/", "http://"+strings.Repeat("d", 64)+".wild.test/")}},
		{ID: "PXY-003", Title: "SOCKS4, SOCKS4a, BIND and UDP ASSOCIATE are relayed",
			Refs: []string{"RFC 1928"}, Action: "net-socks",
			Args: []string{"try=" + rowsOf("socks4 1.2.3.4:80", "socks4a denied.test:80", "bind denied.test:80", "associate 1.2.3.4:9", "associate denied.test:9", "bind 0.0.0.0:0")}},
		{ID: "PXY-017", Title: "a host with a final dot or in capitals is another one for the server than for the policy",
			Refs: []string{"srt canonical-host-routing.test.ts"}, Action: "net-get",
			Args: []string{"try=" + by(allDoors, "http://allowed.test./", "http://allowed.test../", "http://ALLOWED.test:080/", "http://allowed.test.:80/")}},
		{ID: "PXY-018", Core: true, Title: "a name that only begins or ends as an allowed one does",
			Refs: []string{"CVE-2026-24052"}, Action: "net-get",
			Args: []string{"try=" + by(allDoors, confused("http://%s/")...) + "\n" + by(allDoors, confused("https://%s/")...)}},
		{ID: "PXY-019", Title: "the name that a wildcard stands below is reached, or one at no depth",
			Refs: []string{"fence TestMatchesHost"}, Action: "net-get",
			Args: []string{"ok=" + by(allDoors, "http://a.wild.test/", "http://a.b.wild.test/"), "try=" + by(allDoors, "http://wild.test/", "https://wild.test/", "http://.wild.test/", "http://test/", "http://sub.allowed.test/")}},
		{ID: "PXY-021", Title: "a name in another script looks like an allowed one, or becomes one",
			Refs: []string{"UTS #46", "RFC 5891"}, Action: "net-get",
			Args: []string{"ok=" + by(bothProxies, "http://allowed.test/"), "try=" + by(append([]string{"forward"}, bothProxies...), "http://\u0430llowed.test/", "http://xn--llowed-2of.test/", "http://allow\u0435d.test/",
				"http://denied.test\uff0fallowed.test/", "http://denied.test\u3002wild.test/", "http://allowed.te\u017ft.denied.test/", "http://\u212allowed.test/", "http://allowed\u200b.test/", "http://xn--.wild.test/", "http://denied.test\u2100.wild.test/")}},
	}
}

// quietNames lets no query leave at all but those of the control: none of the
// names of the row is one.
func quietNames(n *internet) {
	n.reach = slices.DeleteFunc(slices.Clone(n.reach), func(r Reach) bool { return strings.HasPrefix(r.Host, "*") })
}

func confused(format string) []string {
	var out []string
	for _, name := range []string{
		"evil-allowed.test", "xallowed.test", "allowed.test.denied.test", "allowedxtest", "allowed.test-denied.test", "allowed.testing", "allowed.tes", "llowed.test",
		"allowed_test", "xwild.test", "wild.test.denied.test", "a.wild.test.denied.test", "awild.test", "a.wildxtest", "test.allowed",
	} {
		out = append(out, fmt.Sprintf(format, name))
	}
	return out
}

// proxyHosts are requests that name two hosts.
func proxyHosts() []Row {
	get := func(line, rest string) string { return line + " HTTP/1.1\r\n" + rest + "Connection: close\r\n\r\n" }
	inner := get("GET /", "Host: denied.test\r\n")
	good := "ok=" + rowsOf(say("allowed.test:80", get("GET /", "Host: allowed.test\r\n")), say(proxyAddr, get("GET http://allowed.test/", "Host: allowed.test\r\n")))
	return []Row{
		{ID: "PXY-005", Core: true, Title: "CONNECT names one host and its Host another",
			Refs: []string{"httpjail test_host_header_security"}, Action: "net-say",
			Args: []string{good, "say=" + rowsOf(
				say(proxyAddr, "CONNECT denied.test:80 HTTP/1.1\r\nHost: allowed.test:80\r\n\r\n", "?", inner),
				say(proxyAddr, "CONNECT denied.test:443 HTTP/1.1\r\nHost: allowed.test:443\r\n\r\n", "?", inner),
				say(proxyAddr, "CONNECT allowed.test:80 HTTP/1.1\r\nHost: denied.test:80\r\n\r\n", "?", inner),
				say(proxyAddr, "CONNECT allowed.test@denied.test:80 HTTP/1.1\r\nHost: allowed.test\r\n\r\n", "?", inner),
				say(proxyAddr, "CONNECT http://denied.test:80/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n", "?", inner),
				say(proxyAddr, "CONNECT allowed.test:80@denied.test:80 HTTP/1.1\r\n\r\n", "?", inner),
				say(proxyAddr, "CONNECT denied.test:80 HTTP/1.1\r\nHost: denied.test:80\r\nHost: allowed.test:80\r\n\r\n", "?", inner))}},
		{ID: "PXY-005b", Title: "CONNECT writes its port, its host or its line in a way of its own",
			Refs: []string{"RFC 9110, 9.3.6", "RFC 3986, 3.2.3"}, Action: "net-say",
			Args: []string{good, "say=" + rowsOf(oddConnects(inner)...)}},
		{ID: "PXY-004", Title: "SOCKS5 is spoken in one breath, or by values that it does not have",
			Refs: []string{"RFC 1928", "RFC 1929"}, Action: "net-say",
			Args: []string{good, "say=" + rowsOf(oddSocks("GET / HTTP/1.0\r\nHost: denied.test\r\n\r\n")...)}},
		{ID: "PXY-006", Title: "a request line names one host and its Host another",
			Refs: []string{"RFC 9112, 3.2.2", "srt host-header-proxy.test.ts"}, Action: "net-say",
			Args: []string{good, "say=" + rowsOf(
				say(proxyAddr, get("GET http://denied.test/", "Host: allowed.test\r\n")),
				say(proxyAddr, get("GET http://allowed.test/", "Host: denied.test\r\n")),
				say(proxyAddr, get("GET http://allowed.test@denied.test/", "Host: allowed.test\r\n")),
				say(proxyAddr, get("GET /", "Host: denied.test\r\n")), say(proxyAddr, get("GET https://denied.test/", "Host: denied.test\r\n")), say(proxyAddr, get("GET ftp://denied.test/", "Host: denied.test\r\n")),
				say(proxyAddr, get("GET //denied.test/", "Host: denied.test\r\n")), say(proxyAddr, get("GET http:/denied.test/", "Host: denied.test\r\n")), say(proxyAddr, get("GET http:\\\\denied.test/", "Host: allowed.test\r\n")),
				say(proxyAddr, get("GET http://allowed.test:80:80@denied.test/", "Host: allowed.test\r\n")), say(proxyAddr, get("GET http://allowed.test:22/", "Host: allowed.test:80\r\n")),
				say("allowed.test:80", get("GET http://denied.test/", "Host: allowed.test\r\n")),
				say("allowed.test:80", get("GET http://denied.test/", "Host: denied.test\r\n")),
				say("allowed.test:80", get("GET http://allowed.test/", "Host: denied.test\r\n")),
				say("allowed.test:80", get("GET //denied.test/", "Host: denied.test\r\n")))}},
		{ID: "PXY-006b", Title: "a request has two Hosts, none, or one that is read in two ways",
			Refs: []string{"RFC 9112, 3.2", "RFC 9110, 7.2"}, Action: "net-say",
			Args: []string{good, "say=" + rowsOf(
				say("allowed.test:80", get("GET /", "Host: allowed.test\r\nHost: denied.test\r\n")),
				say("allowed.test:80", get("GET /", "Host: denied.test\r\nHost: allowed.test\r\n")),
				say("allowed.test:80", get("GET /", "Host:\tdenied.test\r\n")), say("allowed.test:80", get("GET /", "Host : denied.test\r\nHost: allowed.test\r\n")),
				say("allowed.test:80", get("GET /", " Host: denied.test\r\nHost: allowed.test\r\n")), say("allowed.test:80", get("GET /", "Host: allowed.test\r\n Host: denied.test\r\n")),
				say("allowed.test:80", get("GET /", "Host: user@denied.test\r\n")), say("allowed.test:80", get("GET /", "Host: allowed.test@denied.test\r\n")),
				say("allowed.test:80", get("GET /", "Host: denied.test\x00.allowed.test\r\n")), say("allowed.test:80", get("GET /", "Host: allowed.test denied.test\r\n")),
				say("allowed.test:80", get("GET /", "Host: allowed.test, denied.test\r\n")), say("allowed.test:80", get("GET /", "Host: allowed.test:8080\r\n")),
				say("allowed.test:80", get("GET /", "Host: allowed.test:80:443\r\n")), say("allowed.test:80", get("GET /", "X: y\r\n")), say("allowed.test:80", get("GET /", "Host:\r\n")),
				say("allowed.test:80", "GET / HTTP/1.1\nHost: denied.test\n\n"), say("allowed.test:80", "GET / HTTP/1.1\r\nX: y\rHost: denied.test\r\nHost: allowed.test\r\n\r\n"),
				say("allowed.test:80", "GET / HTTP/1.1\r\nX: y\nHost: denied.test\r\nHost: allowed.test\r\n\r\n"), say("allowed.test:80", "GET /\r\n\r\n"), say("allowed.test:80", "GET / HTTP/1.0\r\n\r\n"),
				say(proxyAddr, get("GET http://allowed.test/", "Host: allowed.test\r\nHost: denied.test\r\n")))}},
		{ID: "PXY-006c", Title: "a later request of a connection is for another host than the first",
			Refs: []string{"RFC 9112, 9.3"}, Action: "net-say",
			Args: []string{good, "say=" + rowsOf(
				say("allowed.test:80", "GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n", "?", get("GET /", "Host: denied.test\r\n")),
				say("allowed.test:80", "GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n"+get("GET /", "Host: denied.test\r\n")),
				say(proxyAddr, "GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n", "?", get("GET http://denied.test/", "Host: denied.test\r\n")),
				say(proxyAddr, "GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n", "?", "CONNECT denied.test:80 HTTP/1.1\r\nHost: denied.test\r\n\r\n", "?", inner),
				say(proxyAddr, "GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n\r\n"+get("GET http://denied.test/", "Host: denied.test\r\n")))}},
	}
}

// oddConnects are requests of which a lenient proxy understands more than it
// should.
func oddConnects(inner string) []string {
	var out []string
	for _, target := range []string{
		"allowed.test:22", "allowed.test:25", "allowed.test:65558", "allowed.test:65616", "allowed.test:+22", "allowed.test:022", "allowed.test:0x16", "allowed.test:\u0662\u0662", "allowed.test:80:22", "allowed.test:", "allowed.test",
		":80", "*:80", "[allowed.test]:22", "1.2.3.4:80", "[::ffff:1.2.3.4]:80", "[::ffff:102:304]:80", "016909060:80", "denied.test:80/", "denied.test:80?allowed.test:80", "denied.test:80#allowed.test:80", "//denied.test:80", "allowed.test:ssh", "localhost:8080", "127.0.0.1:3128",
	} {
		out = append(out, say(proxyAddr, "CONNECT "+target+" HTTP/1.1\r\nHost: allowed.test\r\n\r\n", "?", inner))
	}
	for _, head := range []string{
		"connect denied.test:80 HTTP/1.1\r\n\r\n", "CONNECT\tdenied.test:80\tHTTP/1.1\r\n\r\n", "CONNECT  denied.test:80 HTTP/1.1\r\n\r\n", "CONNECT denied.test:80\r\n\r\n", "CONNECT denied.test:80 HTTP/1.1\n\n", "CONNECT denied.test:80 HTTP/0.9\r\n\r\n",
		"\r\nCONNECT denied.test:80 HTTP/1.1\r\n\r\n", "CONNECT allowed.test:80 denied.test:80 HTTP/1.1\r\n\r\n", "CONNECT denied.test:80 HTTP/1.1\r\nHost: denied.test\r\nContent-Length: 0\r\n\r\n", "CONNECT denied.test:80 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	} {
		out = append(out, say(proxyAddr, head, "?", inner))
	}
	return append(out,
		say(proxyAddr, "CONNECT allowed.test:80 HTTP/1.1\r\nHost: allowed.test:80\r\nContent-Length: 5\r\n\r\n"+inner),
		say(proxyAddr, "CONNECT allowed.test:80 HTTP/1.1\r\nHost: allowed.test:80\r\n\r\nCONNECT denied.test:80 HTTP/1.1\r\nHost: denied.test:80\r\n\r\n"+inner),
		say(proxyAddr, "CONNECT allowed.test:80 HTTP/1.1\r\nHost: allowed.test:80\r\n\r\nGET http://denied.test/ HTTP/1.1\r\nHost: denied.test\r\n\r\n"))
}

// oddSocks are the same for SOCKS5.
func oddSocks(inner string) []string {
	denied := "\x0bdenied.test\x00\x50"
	return []string{
		say(proxyAddr, "\x05\x01\x00\x05\x01\x00\x03"+denied+inner), say(proxyAddr, "\x05\x01\x00", "?", "\x05\x01\x00\x03"+denied+inner), say(proxyAddr, "\x05\x01\x00", "?", "\x05", "\x01", "\x00", "\x03", denied, "?", inner),
		say(proxyAddr, "\x05\x01\x02", "?", "\x01\x01a\x01b", "?", "\x05\x01\x00\x03"+denied, "?", inner), say(proxyAddr, "\x05\x02\x02\x80", "?", "\x05\x01\x00\x03"+denied, "?", inner), say(proxyAddr, "\x05\x00", "?", "\x05\x01\x00\x03"+denied, "?", inner),
		say(proxyAddr, "\x05\x01\x00", "?", "\x05\x01\x01\x03"+denied, "?", inner), say(proxyAddr, "\x05\x01\x00", "?", "\x05\x01\x00\x02"+denied, "?", inner), say(proxyAddr, "\x05\x01\x00", "?", "\x04\x01\x00\x03"+denied, "?", inner), say(proxyAddr, "\x05\x01\x00", "?", "\x05\x04\x00\x03"+denied, "?", inner),
		say(proxyAddr, "\x05\x01\x00", "?", "\x05\x01\x00\x03\x00\x00\x50", "?", inner), say(proxyAddr, "\x05\x01\x00", "?", "\x05\x01\x00\x03\x0cdenied.test.\x00\x50", "?", inner), say(proxyAddr, "\x05\x01\x00", "?", "\x05\x01\x00\x03\x0callowed.test\x00\x00", "?", inner),
		say(proxyAddr, "\x05\x01\x00", "?", "\x05\x01\x00\x01\x01\x02\x03\x04\x00\x50", "?", inner), say(proxyAddr, "\x05\x01\x00", "?", "\x05\x01\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\x01\x02\x03\x04\x00\x50", "?", inner),
		say(proxyAddr, "\x05\x01\x00", "?", "\x05\x01\x00\x03\x071.2.3.4\x00\x50", "?", inner), say(proxyAddr, "\x05\x01\x00", "?", "\x05\x01\x00\x03\x090x1020304\x00\x50", "?", inner), say(proxyAddr, "\x05\x01\x00", "?", "\x05\x01\x00\x03\x0callowed.test\x00\x50", "?", inner),
	}
}

// proxyTLS are handshakes that name two hosts, or none that can be read.
func proxyTLS() []Row {
	good := "ok=" + rowsOf("direct allowed.test:443", "connect allowed.test:443", "socks allowed.test:443", "direct a.wild.test:443", "direct allowed.test:443 segment=1", "connect allowed.test:443 record=16", "direct allowed.test:443 alpn=h2", "direct allowed.test:443 max=1.2")
	each := func(how ...string) string {
		var out []string
		for _, h := range how {
			for _, door := range []string{"direct", "connect", "socks"} {
				out = append(out, door+" allowed.test:443 "+h)
			}
		}
		return "try=" + rowsOf(out...)
	}
	inspected := []Reach{{Host: "allowed.test", Ports: []int{443}, Kind: "tls", Inspect: true}, {Host: "allowed.test", Ports: []int{80}, Kind: "http"}}
	return []Row{
		{ID: "PXY-007", Core: true, Title: "a handshake names another host than the connection",
			Refs: []string{"github.com/github/gh-aw-firewall/pull/8878"}, Action: "net-tls",
			Args: []string{good, each("sni=denied.test", "sni=denied.test host=denied.test", "sni=b.allowed.test", "sni=a.wild.test", "sni=denied.test segment=1", "sni=denied.test record=8", "sni=denied.test max=1.2", "sni=denied.test alpn=h2")}},
		{ID: "PXY-007b", Title: "a request in an inspected connection is for another host",
			Refs: []string{"RFC 9110, 7.4", "RFC 9113, 8.3.1"}, Action: "net-tls", Options: Options{Reach: inspected},
			Args: []string{"ok=" + rowsOf("direct allowed.test:443", "connect allowed.test:443 alpn=h2"),
				each("host=denied.test", "host=denied.test alpn=h2", "host=allowed.test@denied.test alpn=h2", "host=user@allowed.test alpn=h2", "host=allowed.test:8443 alpn=h2", "host=allowed.test:8443", "host=1.2.3.4 alpn=h2")}},
		{ID: "PXY-007c", Title: "a request in a connection that is passed on untouched is for another host of the same server",
			Refs: []string{"RFC 9110, 7.4"}, Action: "net-tls",
			Residual: "TLS that is not terminated hides which host of a shared server a request is for; inspect: true for that destination closes it",
			Args:     []string{good, "try=direct allowed.test:443 host=denied.test"}},
		{ID: "PXY-008", Title: "a handshake has no name, or it cannot be read",
			Refs: []string{"RFC 6066, 3", "RFC 9001", "gh-aw-firewall #8878"}, Action: "net-tls",
			Setup: network(func(n *internet) { n.namesOnly = true }),
			Args: []string{good, each("sni=", "sni=1.2.3.4", "sni=allowed.testX patch=allowed.testX>allowed.test.", "sni=denied.test.allowed.test patch=denied.test.allowed>denied.test\\x00allowed",
				"sni= segment=1", `first="SSH-2.0-x\r\n"`, `first="\x16\x03\x01\x00\x00"`, `first="\x80\x2e\x01\x03\x01"`, `first="GET\x20/\x20HTTP/1.0\r\n\r\n"`)}},
		{ID: "PXY-031", Title: "the certificate of a server is not one that is trusted, and inspection hides that",
			Refs: []string{"RFC 9110, 4.3.4"}, Action: "net-tls", Options: Options{Reach: []Reach{{Host: "allowed.test", Ports: []int{443}, Kind: "tls", Paths: []string{"/nothing"}}, {Host: "b.allowed.test", Ports: []int{443}, Kind: "tls", Paths: []string{"/nothing"}}, {Host: "*.wild.test", Ports: []int{443}, Kind: "tls", Inspect: true}}},
			Oracle: arrived("/nothing"), Proof: true,
			Setup: network(func(n *internet) {
				good := n.certs
				n.choose = func(name string) tls.Certificate {
					switch name {
					case "allowed.test":
						return selfSigned(name)
					case "b.allowed.test":
						return n.w.outside.Certificate("denied.test")
					}
					return good
				}
			}),
			Args: []string{"ok=direct a.wild.test:443", "try=" + rowsOf("direct allowed.test:443 path=/nothing", "direct allowed.test:443 path=/nothing alpn=h2", "direct b.allowed.test:443 path=/nothing", "direct allowed.test:443 path=/nothing/at/all", "connect allowed.test:443 path=/nothing/at/all", "direct allowed.test:443 path=/nothing/at/all alpn=h2")},
		},
	}
}
