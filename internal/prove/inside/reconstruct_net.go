//go:build linux

package inside

import (
	"bytes"
	"context"
	"net"
	"strings"

	"golang.org/x/sys/unix"
)

// reconstructRequests looks up names and makes requests.
func reconstructRequests(p *Probe) {
	deeds := append(queryDeeds(), requestDeeds()...)
	tellAll(p, append(deeds, smuggledDeeds()...))
}

// queryDeeds look up names.
func queryDeeds() []Deed {
	// A resolver queries two types at once, and is satisfied with one refusal.
	query := func(what, name, kind string, denied bool, do func() error) Deed {
		by := map[string]string{"type": kind}
		if kind == "" {
			by = nil
		}
		return Deed{Kind: "name", What: what, Action: "net.query", Object: name, Denied: denied, Answered: denied, Quiet: true, By: by, do: do}
	}
	by := func(network, name, kind string) func() error {
		return func() error {
			_, err := ask(network, configuredResolver(), question(name, recordTypes[kind], ""), netPatience)
			return err
		}
	}
	resolver := func(name string) func() error {
		return func() error {
			r := net.Resolver{PreferGo: true}
			_, err := r.LookupHost(context.Background(), name)
			return denial(err)
		}
	}
	long := strings.Repeat("4a", 25) + ".denied.test"
	return []Deed{
		query("a name", "n1.wild.test", "A", false, by("udp", "n1.wild.test", "A")),
		query("a name over TCP", "n2.wild.test", "A", false, by("tcp", "n2.wild.test", "A")),
		query("a name by a resolver", "n3.wild.test", "", false, resolver("n3.wild.test")),
		query("a name in other letters", "n4.wild.test", "A", false, by("udp", "N4.Wild.TEST", "A")),
		query("a name that no rule has", "n5.denied.test", "A", true, by("udp", "n5.denied.test", "A")),
		query("a name that no rule has, over TCP", "n6.denied.test", "A", true, by("tcp", "n6.denied.test", "A")),
		query("a name that no rule has, by a resolver", "n7.denied.test", "", true, resolver("n7.denied.test")),
		query("a text", "n8.denied.test", "TXT", true, by("udp", "n8.denied.test", "TXT")),
		query("a name that carries bytes", long, "A", true, by("udp", long, "A")),
		query("a name of a domain that ends like another", "n9wild.test", "A", true, by("udp", "n9wild.test", "A")),
		query("a metadata service", "n10.metadata.internal", "A", true, by("udp", "n10.metadata.internal", "A")),
		query("a name, of another server", "n11.denied.test", "A", true, func() error {
			_, err := ask("tcp", "8.8.8.8:53", question("n11.denied.test", 1, ""), netPatience)
			return err
		}),
		query("a name, of another server by a datagram", "n12.denied.test", "A", true, func() error {
			_, err := ask("udp", "8.8.8.8:53", question("n12.denied.test", 1, ""), netPatience)
			return err
		}),
		{Kind: "name", What: "another server of names", Action: "sock.connect", Object: "8.8.8.8:53", do: func() error { return reach(unix.AF_INET, &unix.SockaddrInet4{Port: 53, Addr: [4]byte{8, 8, 8, 8}}) }},
		{Kind: "name", What: "a datagram that is no question", Action: "sock.send", Object: "8.8.4.4:9", Denied: true, Layer: "egress", do: func() error {
			return withSocket(unix.AF_INET, unix.SOCK_DGRAM, 0, func(fd int) error {
				return unix.Sendto(fd, []byte("x"), 0, &unix.SockaddrInet4{Port: 9, Addr: [4]byte{8, 8, 4, 4}})
			})
		}},
	}
}

// checkGreeting reports whether an allowed server answered.
func checkGreeting(reply []byte, err error) error {
	if err := judgeControl(reply, err); err != nil {
		return denial(err)
	}
	return nil
}

// requestDeeds make requests, and connections whose requests are not seen.
func requestDeeds() []Deed {
	seen := func(what, place, method, path, status string, do func() error) Deed {
		d := Deed{Kind: "request", What: what, Action: "net.request", Object: place, Quiet: true, By: map[string]string{"method": method, "path": path}, do: do}
		if d.Denied = status == ""; !d.Denied {
			d.Says = map[string]string{"status": status}
		}
		return d
	}
	gets := func(door, url string) func() error { return func() error { return checkGreeting(fetch(door, url)) } }
	sends := func(line string) func() error { return func() error { return checkGreeting(sayLine(line)) } }
	tls := func(line string) func() error { return func() error { return checkGreeting(overTLS(line)) } }
	raw := func(place, method, path string) string {
		return place + ` "` + method + " " + path + ` HTTP/1.1\r\nHost: ` + strings.TrimSuffix(place, ":80") + `\r\nConnection: close\r\n\r\n"`
	}
	connect := func(what, place string, denied bool, do func() error) Deed {
		return Deed{Kind: "connection", What: what, Action: "net.connect", Object: place, Denied: denied, Quiet: true, do: do}
	}
	const some = "b.allowed.test"
	return []Deed{
		seen("a request", "allowed.test:80", "GET", "/q1", "200", gets("direct", "http://allowed.test/q1")),
		seen("a request in a tunnel", "allowed.test:80", "GET", "/q2", "200", gets("connect", "http://allowed.test/q2")),
		seen("a request by the proxy", "allowed.test:80", "GET", "/q3", "200", gets("forward", "http://allowed.test/q3")),
		seen("a request by SOCKS", "allowed.test:80", "GET", "/q4", "200", gets("socks", "http://allowed.test/q4")),
		seen("a request of another method", "allowed.test:80", "POST", "/q5", "200", sends(raw("allowed.test:80", "POST", "/q5"))),
		seen("a request with a query", "allowed.test:80", "GET", "/q6", "200", gets("direct", "http://allowed.test/q6?token=x")),
		seen("a request in TLS", "q7.wild.test:443", "GET", "/q7", "200", tls("direct q7.wild.test:443 path=q7")),
		seen("a request in TLS, in a tunnel", "q8.wild.test:443", "GET", "/q8", "200", tls("connect q8.wild.test:443 path=q8")),
		seen("a request of HTTP/2", "q9.wild.test:443", "GET", "/q9", "200", tls("direct q9.wild.test:443 path=q9 alpn=h2")),
		seen("a path that is allowed", some+":80", "GET", "/may/q10", "200", gets("direct", "http://"+some+"/may/q10")),
		seen("a path that is not", some+":80", "GET", "/q11", "", gets("direct", "http://"+some+"/q11")),
		seen("a method that is not allowed", some+":80", "DELETE", "/may/q12", "", sends(raw(some+":80", "DELETE", "/may/q12"))),
		seen("a path that is not, in TLS", some+":443", "GET", "/q13", "", tls("direct "+some+":443 path=q13")),
		seen("a path that is not, by HTTP/2", some+":443", "GET", "/q14", "", tls("direct "+some+":443 path=q14 alpn=h2")),
		seen("a path that is not, by the proxy", some+":80", "GET", "/q15", "", gets("forward", "http://"+some+"/q15")),
		connect("TLS whose requests are not seen", "allowed.test:443", false, tls("direct allowed.test:443 path=c1")),
		connect("a host that no rule has", "c2.denied.test:80", true, gets("connect", "http://c2.denied.test/")),
		connect("a host that no rule has, by SOCKS", "c3.denied.test:80", true, gets("socks", "http://c3.denied.test/")),
		connect("a host that no rule has, by the proxy", "c4.denied.test:80", true, gets("forward", "http://c4.denied.test/")),
		connect("an address", "1.2.3.4:80", true, gets("direct", "http://1.2.3.4/")),
		connect("an address of version 6", "[2001:db8::1]:443", true, tls("direct [2001:db8::1]:443")),
		connect("the metadata service", "169.254.169.254:80", true, gets("direct", "http://169.254.169.254/latest/meta-data/")),
		connect("a port that no rule has", "allowed.test:8443", true, gets("connect", "http://allowed.test:8443/")),
		connect("a port that no rule has, directly", "allowed.test:22", true, gets("direct", "tcp://allowed.test:22/")),
	}
}

// smuggledDeeds are requests that can be read in two ways, or name two hosts.
func smuggledDeeds() []Deed {
	smuggled := func(what, action, place string, by map[string]string, line string) Deed {
		return Deed{Kind: "smuggled", What: what, Action: action, Object: place, Denied: true, Quiet: true, By: by, do: func() error {
			reply, err := sayLine(line)
			if i := bytes.LastIndex(reply, []byte("HTTP/")); i > 0 { // the answer to the last request counts
				reply = reply[i:]
			}
			return checkGreeting(reply, err)
		}}
	}
	request := func(what, path, line string) Deed {
		return smuggled(what, "net.request", "allowed.test:80", map[string]string{"path": path}, "allowed.test:80 "+line)
	}
	return []Deed{
		request("two lengths", "/s1", `"POST /s1 HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"`),
		request("two lengths that differ", "/s2", `"POST /s2 HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcd"`),
		request("two hosts", "/s3", `"GET /s3 HTTP/1.1\r\nHost: allowed.test\r\nHost: denied.test\r\n\r\n"`),
		request("another host", "/s4", `"GET /s4 HTTP/1.1\r\nHost: denied.test\r\n\r\n"`),
		request("a folded line", "/s5", `"GET /s5 HTTP/1.1\r\nHost: allowed.test\r\nX: y\r\n z\r\n\r\n"`),
		request("another host in the line", "/s6", `"GET http://denied.test/s6 HTTP/1.1\r\nHost: allowed.test\r\n\r\n"`),
		smuggled("another server in the handshake", "net.connect", "s7.wild.test:443", nil, `s7.wild.test:443 "GET /s7 HTTP/1.1\r\nHost: s7.wild.test\r\n\r\n"`),
		smuggled("a path with dots", "net.request", "b.allowed.test:80", map[string]string{"path": "/may/../s8"}, `b.allowed.test:80 "GET /may/../s8 HTTP/1.1\r\nHost: b.allowed.test\r\n\r\n"`),
		smuggled("an encoded path with dots", "net.request", "b.allowed.test:80", map[string]string{"path": "/may/%2e%2e/s9"}, `b.allowed.test:80 "GET /may/%2e%2e/s9 HTTP/1.1\r\nHost: b.allowed.test\r\n\r\n"`),
		smuggled("another host in a later request", "net.request", "allowed.test:80", map[string]string{"path": "/s10"},
			`allowed.test:80 "GET /s10a HTTP/1.1\r\nHost: allowed.test\r\n\r\n" "?" "GET /s10 HTTP/1.1\r\nHost: denied.test\r\nConnection: close\r\n\r\n"`),
	}
}
