//go:build linux

package probe

import (
	"fmt"
	"strings"
)

const classDNS = "net.dns"

// withNames are publicNet and what a row names besides, at ports 80 and 8080.
func withNames(names ...string) []Reach {
	reach := []Reach{{Host: "allowed.test", Ports: []int{80, 8080}, Kind: "http"}, {Host: "allowed.test", Ports: []int{443}, Kind: "tls"}}
	for _, n := range names {
		reach = append(reach, Reach{Host: n, Ports: []int{80, 8080}, Kind: "http"})
	}
	return reach
}

// quiet are the destinations of rows in which no query may leave but that of
// the control.
var quietReach = append([]Reach{{Host: "b.allowed.test", Ports: []int{80}, Kind: "http"}}, publicNet...)

func quiet(n *internet) { n.silent = true }

const (
	quietControl = "ok=direct http://b.allowed.test/"
	supervisors  = "an answer that was made on the spot carries nothing out"
	everyType    = "types=A AAAA NS CNAME SOA NULL PTR MX TXT SRV NAPTR DS DNSKEY SVCB HTTPS ANY PRIVATE"
)

func dnsRows() []Row {
	return append(public(classDNS, dnsQueries()...), public(classDNS, dnsAnswers()...)...)
}

func dnsQueries() []Row {
	long := strings.Repeat("6869", 15)
	return []Row{
		{ID: "DNS-001", Core: true, Title: "a query to the configured resolver leaves",
			Refs: []string{"CVE-2025-55284", "httpjail test_dns_exfiltration_prevention"}, Action: "net-dns",
			Setup: network(quiet), Options: Options{Reach: quietReach},
			Args: []string{quietControl, "at=" + rowsOf("udp resolver", "udp 11.0.0.53:53", "tcp 11.0.0.53:53", "tcp resolver"), "names=" + rowsOf(long+".probe.test", "denied.test"), "types=A TXT"}},
		{ID: "DNS-002", Title: "a query to a public resolver leaves, over UDP, TCP or TLS",
			Refs: []string{"httpjail test_public_dns_blocked"}, Action: "net-dns",
			Setup: network(quiet), Options: Options{Reach: quietReach},
			Args: []string{quietControl, "at=" + rowsOf("udp 8.8.8.8:53", "udp 1.1.1.1:53", "udp [2001:4860:4860::8888]:53", "tcp 8.8.8.8:53", "tcp 1.2.3.4:53", "tcp 8.8.8.8:853", "udp 93.184.215.14:53"),
				"names=" + long + ".probe.test", "types=A"}},
		{ID: "DNS-003", Title: "a query for an allowed name leaves before anybody connects",
			Refs: []string{"RFC 1035", "RFC 9460"}, Action: "net-dns", Harmless: supervisors,
			Setup: network(quiet), Options: Options{Reach: quietReach},
			Args: []string{quietControl, "at=udp resolver\ntcp resolver", "names=" + rowsOf("allowed.test", "aLLoWeD.tESt", "allowed.test."), everyType}},
		{ID: "DNS-003b", Title: "an option of a query for an allowed name carries data out",
			Refs: []string{"RFC 6891"}, Action: "net-dns", Harmless: supervisors,
			Setup: network(quiet), Options: Options{Reach: quietReach},
			Args: []string{quietControl, "at=udp resolver", "names=" + rowsOf("allowed.test", "x.wild.test"), "types=A TXT", "opt=" + long}},
		{ID: "DNS-004", Core: true, Title: "a name that is not allowed is looked up before it is refused",
			Refs: []string{"AgentCore sandbox DNS exfiltration"}, Action: "net-get",
			Args: []string{"try=" + by(allDoors, "http://"+long+".denied.test/", "https://"+long+".denied.test/", "http://"+long+".allowed.test/", "http://"+long+".internal/")}},
		{ID: "DNS-005", Title: "names below an allowed wildcard carry data out without a bound",
			Refs: []string{"RFC 1035, 2.3.4"}, Action: "net-tunnel", Args: []string{"count=400", "size=40", "below=wild.test"},
			Oracle: tunnelled, Proof: true},
		{ID: "DNS-005c", Title: "long names below an allowed wildcard carry data out without a bound",
			Refs: []string{"RFC 1035, 2.3.4"}, Action: "net-tunnel", Args: []string{"count=300", "size=40", "labels=5", "below=wild.test"},
			Oracle: tunnelled, Proof: true},
		{ID: "DNS-012", Title: "what is no query silences the resolver, or passes it",
			Refs: []string{"RFC 1035, 4.1", "RFC 5358"}, Action: "net-garbage"},
		{ID: "DNS-005b", Title: "queries for names below an allowed wildcard leave before anybody connects",
			Refs: []string{"RFC 1035"}, Action: "net-dns", Harmless: supervisors,
			Setup: network(quiet), Options: Options{Reach: quietReach},
			Args: []string{quietControl, "at=udp resolver\ntcp resolver", "names=" + rowsOf(long+".wild.test", long+"."+long+".wild.test", `"\x00\xff.wild.test"`), everyType}},
		{ID: "DNS-006", Title: "names are resolved over HTTPS",
			Refs: []string{"RFC 8484"}, Action: "net-get",
			Args: []string{"try=" + by([]string{"direct", "connect", "socks"}, "https://1.1.1.1/dns-query?dns=AAAB", "https://dns.google/dns-query", "https://8.8.8.8/resolve?name="+long+".denied.test")}},
	}
}

// tunnelled is what got out below the wildcard, where it is more than a tool
// needs: names that differ are how data leaves.
func tunnelled(w *World, _ Observation) []string {
	w.net.mu.Lock()
	defer w.net.mu.Unlock()
	names := map[string]bool{}
	for _, q := range w.net.queries {
		if strings.HasSuffix(q.name, ".wild.test") {
			names[q.name] = true
		}
	}
	bytes := 0
	for name := range names {
		bytes += len(name)
	}
	if len(names) > 100 || bytes > 12<<10 {
		return []string{fmt.Sprintf("%d different names of %d bytes were asked for below a wildcard", len(names), bytes)}
	}
	return nil
}

// dnsAnswers are rows in which the resolver outside is the attacker's.
func dnsAnswers() []Row {
	flip := strings.TrimSpace(strings.Repeat(by(allDoors[:2], "http://flip.test:8080/")+"\n", 12))
	loop := []string{"127.0.0.1:8080", "[::1]:8080", "11.0.0.1:8080", "[2600:11::1]:8080"}
	return []Row{
		{ID: "DNS-008", Core: true, Title: "an allowed name resolves to the host's loopback or its own address",
			Refs: []string{"github.com/kortix-ai/suna/pull/6096", "npm @anthropic-ai/sandbox-runtime"}, Action: "net-get",
			Options: Options{Reach: withNames("loop.test", "six.test", "mapped.test", "own.test", "own6.test", "zero.test", "none.test")},
			Setup: also(listeners(loop...),
				resolves("loop.test", addrs("127.0.0.1")), resolves("six.test", addrs("::1")), resolves("mapped.test", addrs("::ffff:127.0.0.1")),
				resolves("own.test", addrs("11.0.0.1")), resolves("own6.test", addrs("2600:11::1")), resolves("zero.test", addrs("0.0.0.0")), resolves("none.test", addrs("::"))),
			Args: []string{"try=" + by(allDoors, "http://loop.test:8080/", "http://six.test:8080/", "http://mapped.test:8080/", "http://own.test:8080/", "http://own6.test:8080/", "http://zero.test:8080/", "http://none.test:8080/")}},
		{ID: "DNS-008b", Core: true, Title: "an allowed name resolves to an address that is not public",
			Refs: []string{"RFC 6890", "RFC 1918"}, Action: "net-get",
			Options: Options{Reach: withNames("*.inner.test")},
			Setup:   also(network(), resolvesAll("inner.test", innerAddrs...)),
			Args:    []string{"try=" + by(allDoors[:3], innerURLs()...)}},
		{ID: "DNS-009", Title: "an allowed name changes its address between the check and the connection",
			Refs: []string{"CVE-2025-66416"}, Action: "net-get",
			Options: Options{Reach: withNames("flip.test")},
			Setup: also(listeners(loop...), resolves("flip.test", addrs("93.184.215.17"), addrs("127.0.0.1")), func(n *internet) {
				n.own[addrs("93.184.215.17")[0]] = "flip.test"
			}),
			Args: []string{"ok=" + by(allDoors, "http://allowed.test/"), "try=" + flip},
			Oracle: func(w *World, _ Observation) []string {
				if a := w.net.asked("flip.test"); a > 2*24 {
					return []string{fmt.Sprintf("a name was looked up %d times for 24 connections", a)}
				}
				return nil
			}},
		{ID: "DNS-010", Title: "an allowed name has good and bad addresses at once",
			Refs: []string{"RFC 8305", "npm @anthropic-ai/sandbox-runtime"}, Action: "net-get",
			Options: Options{Reach: withNames("mixed.test", "mixed6.test", "dead.test")},
			Setup: also(listeners(loop...), resolves("mixed.test", addrs("127.0.0.1", "93.184.215.17")),
				resolves("mixed6.test", addrs("::1", "93.184.215.18")), resolves("dead.test", addrs("93.184.215.99", "127.0.0.1", "11.0.0.1")), func(n *internet) {
					n.own[addrs("93.184.215.17")[0]] = "mixed.test"
					n.own[addrs("93.184.215.18")[0]] = "mixed6.test"
					n.own[addrs("93.184.215.99")[0]] = "dead.test"
				}),
			Args: []string{"try=" + strings.TrimSpace(strings.Repeat(by(allDoors[:3], "http://mixed.test:8080/", "http://mixed6.test:8080/", "http://dead.test:8080/")+"\n", 4))}},
		{ID: "DNS-011", Title: "a name without dots is completed, and an allowed one is an alias of an internal one",
			Refs: []string{"resolv.conf(5) search"}, Action: "net-get",
			Options: Options{Reach: withNames("alias.test")},
			Setup:   also(network(), resolves("alias.test", addrs("169.254.169.254")), func(n *internet) { n.alias = map[string]string{"alias.test": "metadata.internal"} }),
			Args:    []string{"try=" + by(allDoors, "http://alias.test/", "http://metadata/", "http://internal/", "http://metadata.google.internal/", "http://kubernetes.default.svc/")}},
	}
}

// also is a Setup and what comes after it in the network that it opened.
func also(first func(*World) error, more ...func(*internet)) func(*World) error {
	return func(w *World) error {
		if err := first(w); err != nil {
			return err
		}
		for _, f := range more {
			f(w.net)
		}
		return nil
	}
}

// innerAddrs are addresses that are not public, in every way that there is of
// writing one into a record.
var innerAddrs = []string{
	"10.9.8.7", "172.16.3.4", "192.168.1.1", "169.254.169.254", "169.254.170.2", "100.64.0.1", "100.100.100.200",
	"192.0.0.192", "168.63.129.16", "198.18.0.1", "192.0.2.1", "240.0.0.1", "fd00:ec2::254", "fc00::1", "2001:db8::1",
	"::ffff:10.9.8.7", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "64:ff9b::7f00:1", "64:ff9b:1::a9fe:a9fe", "2002:a9fe:a9fe::1",
	"2001:0:1:2:3:4:5601:5601", "::a9fe:a9fe", "::10.9.8.7", "2600:11::200:5efe:a9fe:a9fe", "fec0::1", "5f00::1", "100::1", "2001:2::1",
}

func innerURLs() []string {
	var out []string
	for i := range innerAddrs {
		out = append(out, fmt.Sprintf("http://n%d.inner.test/", i))
	}
	return out
}

func resolvesAll(below string, addresses ...string) func(*internet) {
	return func(n *internet) {
		for i, a := range addresses {
			resolves(fmt.Sprintf("n%d.%s", i, below), addrs(a))(n)
		}
	}
}
