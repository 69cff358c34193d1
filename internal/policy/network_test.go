package policy

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestDestinationsInFull(t *testing.T) {
	for _, row := range []struct {
		name, text string
		want       []string // the rules of the plan
	}{
		{"a host alone is TLS and HTTP", "example.org", []string{"example.org:443/tls", "example.org:80/http"}},
		{"port 443 is TLS", "example.org:443", []string{"example.org:443/tls"}},
		{"port 80 is HTTP", "example.org:80", []string{"example.org:80/http"}},
		{"another port is bytes", "example.org:22", []string{"example.org:22/tcp"}},
		{"a kind can be said", "example.org:8443/tls", []string{"example.org:8443/tls"}},
		{"upper case and a final dot mean nothing", "Example.ORG.", []string{"example.org:443/tls", "example.org:80/http"}},
		{"a wildcard", "'*.example.org:443'", []string{"*.example.org:443/tls"}},
		{"a name of one label", "registry:5000/http", []string{"registry:5000/http"}},
		{"a name in other letters as DNS has it", "xn--exmple-cua.org:443", []string{"xn--exmple-cua.org:443/tls"}},
		{"an address", "192.0.2.1", []string{"192.0.2.1:443/tls", "192.0.2.1:80/http"}},
		{"an IPv6 address", "'2001:DB8::1'", []string{"[2001:db8::1]:443/tls", "[2001:db8::1]:80/http"}},
		{"an IPv6 address with a port", "'[2001:db8::1]:22'", []string{"[2001:db8::1]:22/tcp"}},
		{"an IPv4 address in IPv6 is that address", "'[::ffff:192.0.2.1]:22'", []string{"192.0.2.1:22/tcp"}},
		{"a mapping of the host alone is the same", "{host: example.org}", []string{"example.org:443/tls", "example.org:80/http"}},
		{"ports of different kinds are different rules", "{host: example.org, ports: [80, 443, 22, 8022]}", []string{"example.org:443/tls", "example.org:80/http", "example.org:22,8022/tcp"}},
		{"one kind for all ports", "{host: example.org, ports: [80, 22], kind: tls}", []string{"example.org:80,22/tls"}},
		{"methods mean TLS only, which is terminated", "{host: example.org, methods: [get, POST]}", []string{"example.org:443/tls GET,POST"}},
		{"paths mean the same", "{host: example.org, paths: [/a/*/b, /c/**]}", []string{"example.org:443/tls /a/*/b,/c/**"}},
		{"methods can be said of HTTP", "{host: example.org, ports: [80], methods: [GET]}", []string{"example.org:80/http GET"}},
		{"kind http without ports is port 80", "{host: example.org, kind: http, methods: [GET]}", []string{"example.org:80/http GET"}},
		{"inspect without methods", "{host: example.org, inspect: true}", []string{"example.org:443/tls inspect"}},
		{"internal", "{host: db.corp, ports: [5432], internal: true}", []string{"db.corp:5432/tcp internal"}},
		{"loopback by name, when it is said", "{host: localhost, ports: [5432], internal: true}", []string{"localhost:5432/tcp internal"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t)
			w.write(userFile, "version: 1\nnetwork:\n  allow:\n    - "+row.text+"\n", 0o644)
			var got []string
			for _, r := range w.plan(w.options()).Allow {
				got = append(got, r.String())
				if r.Kind == "" || len(r.Ports) == 0 || r.Origin.Line != 4 {
					t.Errorf("a rule is not complete: %+v", r)
				}
				if r.Inspect != (r.Kind == TLS && (r.requests() || strings.Contains(row.text, "inspect: true"))) {
					t.Errorf("inspect is %v: %+v", r.Inspect, r)
				}
			}
			if !slices.Equal(got, row.want) {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
}

func TestDestinationsAreRefused(t *testing.T) {
	for _, row := range []struct{ name, text, want string }{
		{"a URL", "https://example.org/", "is a URL"},
		{"a path", "example.org/x", "is not a kind"},
		{"a kind without a port", "example.org/tls", "without a port"},
		{"a kind that does not exist", "example.org:53/udp", "is not a kind"},
		{"a port of 0", "example.org:0", "not a port"},
		{"an empty port", "'example.org:'", "not a port"},
		{"a port with a sign", "example.org:+443", "not a port"},
		{"an empty label", "a..b", "label is empty"},
		{"two final dots", "example.org..", "label is empty"},
		{"a long label", strings.Repeat("a", 64) + ".org", "64 bytes"},
		{"a long name", strings.Repeat("a.", 127) + "aa", "not a host name"},
		{"a label that begins with -", "-a.org", "begins or ends"},
		{"other letters", "exämple.org", "xn--"},
		{"letters that look like others", "ex\u0430mple.org", "xn--"},
		{"a dot of another script", "example。org", "xn--"},
		{"a sign that no name has", "exam+ple.org", "it contains"},
		{"a space", "'example.org '", "not a host name"},
		{"user and password", "'user@example.org'", "not a host name"},
		{"everything", "'*'", "only at the beginning"},
		{"all below a top-level domain", "'*.org'", "two labels"},
		{"a star in a label", "'*a.example.org'", "only at the beginning"},
		{"a star in the middle", "'a.*.example.org'", "only at the beginning"},
		{"a short address", "'127.1'", "its last label is a number"},
		{"an address as a number", "'2130706433'", "its last label is a number"},
		{"an address in hexadecimal", "'0x7f000001'", "its last label is a number"},
		{"an address in parts of hexadecimal", "0x7f.0.0.0x1", "its last label is a number"},
		{"an octal address", "0177.0.0.1", "its last label is a number"},
		{"an address with a leading zero", "127.0.0.01", "its last label is a number"},
		{"an address with a final dot", "192.0.2.1.", "its last label is a number"},
		{"an address with a part too many", "192.0.2.1.5", "its last label is a number"},
		{"everything below an address", "'*.0.2.1'", "its last label is a number"},
		{"an address with a zone", "'fe80::1%eth0'", "zone"},
		{"brackets around a name", "'[example.org]:443'", "is not [ADDRESS]:PORT"},
		{"brackets that do not close", "'[::1'", "is not [ADDRESS]:PORT"},
		{"loopback", "127.0.0.1:5432", "host-port"},
		{"loopback by name", "localhost:5432", "host-port"},
		{"loopback below its name", "db.localhost", "host-port"},
		{"loopback in IPv6", "'[::1]:5432'", "host-port"},
		{"loopback in IPv4 in IPv6", "'::ffff:127.0.0.1'", "host-port"},
		{"an address of no host", "0.0.0.0:80", "host-port"},
		{"a mapping without host", "{ports: [443]}", "has no host"},
		{"an unknown key", "{host: a.b, method: [GET]}", `unknown key "method" in a destination of network.allow, did you mean "methods"?`},
		{"a key given twice", "{host: a.b, host: c.d}", "is repeated"},
		{"no ports", "{host: a.b, ports: []}", "empty list"},
		{"no methods", "{host: a.b, methods: []}", "empty list"},
		{"no paths", "{host: a.b, paths: []}", "empty list"},
		{"no credential", "{host: a.b, credential: []}", "empty list"},
		{"a port as it stands", "{host: a.b, ports: 443}", "a list is expected"},
		{"a port twice", "{host: a.b, ports: [443, 443]}", "twice"},
		{"a port that is a list", "{host: a.b, ports: [[443]]}", "text is expected"},
		{"a method that is a star", "{host: a.b, methods: ['*']}", "not a method"},
		{"a tunnel", "{host: a.b, methods: [CONNECT]}", "tunnel"},
		{"a method with a line break", `{host: a.b, methods: ["GET\n"]}`, "not a method"},
		{"methods of bytes", "{host: a.b, ports: [8080], methods: [GET]}", "methods and paths need kind"},
		{"paths of bytes", "{host: a.b, ports: [443], kind: tcp, paths: [/]}", "methods and paths need kind"},
		{"a credential in the clear", "{host: a.b, ports: [80], credential: c}", "over tls only"},
		{"a credential in bytes", "{host: a.b, ports: [22], credential: c}", "over tls only"},
		{"bytes to be inspected", "{host: a.b, ports: [22], inspect: true}", "cannot be inspected"},
		{"methods without inspection", "{host: a.b, methods: [GET], inspect: false}", "inspect: false"},
		{"a truth value that is text", "{host: a.b, internal: 'true'}", "true or false is expected"},
		{"a path without /", "{host: a.b, paths: [a]}", "does not begin with /"},
		{"a path that goes up", "{host: a.b, paths: [/a/../b]}", "has a segment .."},
		{"a path that goes nowhere", "{host: a.b, paths: [/./b]}", "has a segment ."},
		{"a path with an escape", "{host: a.b, paths: [/a%2fb]}", "contains"},
		{"a path with an empty segment", "{host: a.b, paths: [/a//b]}", "empty segment"},
		{"a path that begins with //", "{host: a.b, paths: [//b]}", "empty segment"},
		{"a path with an empty segment before all below", "{host: a.b, paths: [/a//**]}", "empty segment"},
		{"a path with a parameter", "{host: a.b, paths: [/a;b]}", "contains"},
		{"a path with a query", "{host: a.b, paths: ['/a?b']}", "contains"},
		{"a path with a fragment", "{host: a.b, paths: ['/a#b']}", "contains"},
		{"a path with a backslash", `{host: a.b, paths: ['/a\b']}`, "contains"},
		{"a path with a control character", `{host: a.b, paths: ["/a\x01"]}`, "contains"},
		{"all below in the middle", "{host: a.b, paths: [/a/**/b]}", "other than as"},
		{"two stars in a segment", "{host: a.b, paths: [/a**]}", "other than as"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := Parse("p.yaml", "/", []byte("version: 1\nnetwork:\n  allow:\n    - "+row.text+"\n"))
			if err == nil || !strings.Contains(err.Error(), row.want) || !strings.Contains(err.Error(), "p.yaml:4: ") {
				t.Fatalf("got %v, want %q", err, row.want)
			}
		})
	}
}

func TestProductionWantsMethodsAndPaths(t *testing.T) {
	for _, row := range []struct{ name, text, want string }{
		{"a host alone is too wide", "example.org", "only with methods and paths"},
		{"methods alone are too wide", "{host: example.org, methods: [GET]}", "only with methods and paths"},
		{"paths alone are too wide", "{host: example.org, paths: [/a]}", "only with methods and paths"},
		{"both are taken", "{host: example.org, methods: [GET], paths: [/a]}", ""},
		{"bytes must be said", "example.org:22", "only with kind: tcp"},
		{"bytes that are said are taken", "example.org:22/tcp", ""},
		{"so are they in a mapping", "{host: example.org, ports: [22], kind: tcp}", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t)
			w.write(userFile, "version: 1\nextends: production\nnetwork:\n  allow:\n    - "+row.text+"\n", 0o644)
			_, err := w.compile(w.options())
			if row.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), row.want) || !strings.Contains(err.Error(), w.at(userFile)+":5: ") {
				t.Fatalf("got %v, want %q", err, row.want)
			}
		})
	}
}

func TestKindsOfOnePort(t *testing.T) {
	w := newWorld(t)
	_, err := w.compile(w.options("network.allow", "example.org", "network.allow", "example.org:443/tcp"))
	if err == nil || !strings.Contains(err.Error(), "port 443 of example.org is tcp here and tls at --network.allow") {
		t.Errorf("got %v", err)
	}
	w.plan(w.options("network.allow", "*.example.org", "network.allow", "git.example.org:443/tcp"))
}

func TestHostPorts(t *testing.T) {
	w := newWorld(t)
	p := w.plan(w.options("network.host-ports", "5432", "network.host-ports", "5432", "network.publish", "5432:80"))
	if len(p.HostPorts) != 1 || p.HostPorts[0].Host != 5432 || p.HostPorts[0].Inside != 5432 {
		t.Errorf("got %+v", p.HostPorts)
	}
	for _, row := range []struct{ name, key, port, want string }{
		{"a port that is published cannot lead to the host", "network.publish", "5432", "leads to the host's (--network.host-ports)"},
		{"nor can one inside that another port of the host shows", "network.publish", "8080:5432", "leads to the host's"},
		{"the proxy's port is taken", "network.host-ports", "3128", "belongs to the proxy"},
		{"it cannot be published either", "network.publish", "80:3128", "belongs to the proxy"},
		{"a pair of ports", "network.host-ports", "1:2", "not a port"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := w.compile(w.options("network.host-ports", "5432", row.key, row.port))
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// looksLikeAddress is what inet_aton(3) takes, written a second time: up to
// four parts, each decimal, octal or hexadecimal.
var looksLikeAddress = regexp.MustCompile(`(?i)^(0x[0-9a-f]*|[0-9]+)(\.(0x[0-9a-f]*|[0-9]+)){0,3}$`)

func FuzzHostName(f *testing.F) {
	for _, seed := range []string{
		"example.org", "*.Example.ORG.", "127.1", "0x7f.1", "017700000001", "::ffff:1.2.3.4", "fe80::1%1", "1.2.3.4.", "a_b-c.d",
		"xn--a.b", "exämple.org", "*.a.b", "a.0x", "[::1]:22", "a.b:443/tls", "a:1/tcp", "1e3", "0b1.0o7",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if r, _, err := destination(text); err == nil {
			again, _, err := destination(r.String())
			if err != nil || again.String() != r.String() {
				t.Errorf("%q became %q, and that %q: %v", text, r, again, err)
			}
		}
		name, err := hostName(text)
		if err != nil {
			return
		}
		if again, err := hostName(name); err != nil || again != name {
			t.Errorf("%q became %q, and that %q: %v", text, name, again, err)
		}
		address, bad := netip.ParseAddr(name)
		literal, _ := netip.ParseAddr(text)
		if bad == nil && (address.Unmap() != literal.Unmap() || address.Is4In6() || address.Zone() != "") {
			t.Errorf("%q became the address %s", text, name)
		}
		if bad != nil && looksLikeAddress.MatchString(name) {
			t.Errorf("%q is an address to some", name)
		}
		if len(name) > MaxName || name != strings.ToLower(name) || strings.HasSuffix(name, ".") || strings.ContainsAny(name, " \x00\n/@[]") {
			t.Errorf("%q became %q", text, name)
		}
	})
}
