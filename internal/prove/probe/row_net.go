//go:build linux

package probe

import (
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// netReplies are netDenials but for what hangs: whoever is refused is told.
var netReplies = append([]string{"ECONNRESET", "EPIPE"}, append(netDenials[:6:6], Denials...)...)

// public completes rows that are played in a network: what is the same of all.
func public(class string, rows ...Row) []Row {
	for i := range rows {
		r := &rows[i]
		r.Class, r.Promise, r.Needs = class, "P5", append(r.Needs, "network")
		if r.Kind == "" {
			r.Kind = Sandbox
		}
		if r.Options.Reach == nil {
			r.Options.Reach = publicNet
		}
		if r.Setup == nil {
			r.Setup = network()
		}
		if r.Accept == nil {
			r.Accept = netReplies
		}
		if r.Trace.empty() {
			r.Trace = networkTraces()[r.ID]
		}
		if r.Timeout == 0 {
			r.Timeout = 60 * time.Second
		}
	}
	return rows
}

// The doors by which an action leaves: past every proxy, and by one in each of
// its ways.
var allDoors = []string{"direct", "connect", "forward", "socks"}

// by writes one line a door and URL.
func by(doors []string, urls ...string) string {
	var b strings.Builder
	for _, u := range urls {
		for _, d := range doors {
			if d == "forward" && !strings.HasPrefix(u, "http:") {
				continue
			}
			fmt.Fprintf(&b, "%s %q\n", d, u)
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// say writes one line that sends chunks to a place.
func say(to string, chunks ...string) string {
	for _, c := range chunks {
		to += " " + strconv.Quote(c)
	}
	return to
}

func rowsOf(l ...string) string { return strings.Join(l, "\n") }

func netRows() []Row {
	return append(public(classEgress, netDirect()...), public(classEgress, netOther()...)...)
}

func netDirect() []Row {
	return []Row{
		{ID: "NET-004b", Core: true, Title: "a datagram leaves, to an allowed host also",
			Refs: []string{"udp(7)", "RFC 9000"}, Action: "net-datagram",
			Args: []string{"at=" + rowsOf("1.2.3.4:443", "1.2.3.4:123", "1.2.3.4:9", "93.184.215.14:443", "allowed.test:443", "11.0.0.2:5353", "169.254.169.254:53")}},
		{ID: "NET-006b", Core: true, Title: "a client that knows of no proxy reaches a host that is not named, by name and by address",
			Refs: []string{"github.com/Kilo-Org/kilocode/pull/11596"}, Action: "net-get",
			Args: []string{"try=" + by(allDoors[:1], "http://denied.test/", "https://denied.test/", "http://1.2.3.4/", "https://1.2.3.4/", "tcp://1.2.3.4:22", "tcp://denied.test:22",
				"http://93.184.215.14/", "https://93.184.215.14/", "http://[2606:2800:21f:cb07::1]/", "http://10.9.8.7/", "http://11.0.0.2/", "http://[2600:11::2]/")}},
		{ID: "NET-006c", Title: "a process of another session reaches a host that is not named",
			Refs: []string{"setsid(2)"}, Action: "net-children",
			Args: []string{"try=" + by(allDoors, "http://denied.test/")}},
		{ID: "NET-007", Title: "a client that is told to go past the proxy reaches a host that is not named",
			Refs: []string{"nono #580"}, Action: "net-environment", Args: []string{"try=http://denied.test/\nhttps://denied.test/"}},
		{ID: "NET-013b", Title: "a socket of an odd kind, or with an odd option, reaches an address that is not named",
			Refs:   []string{"ip(7) IP_TRANSPARENT", "socket(7) SO_MARK", "tcp(7) TCP_FASTOPEN", "Landlock: multipath TCP is not covered"},
			Accept: append([]string{"EINVAL", "ENOPROTOOPT", "EPROTOTYPE", "ENETDOWN", "EINPROGRESS"}, netReplies...), Action: "net-odd",
			Args: []string{"at=" + rowsOf("1.2.3.4:80", "169.254.169.254:80", "[::ffff:1.2.3.4]:80", "[2606:4700::1111]:80", "127.0.0.1:8080")},
			Setup: func(w *World) error {
				if _, err := w.internet(); err != nil {
					return err
				}
				_, err := w.Listen("tcp", "127.0.0.1:8080")
				return err
			}},
		{ID: "NET-015", Core: true, Title: "a request passes the proxy because a relay inside hands it on",
			Refs: []string{"github.com/anthropics/claude-code/issues/87381"}, Action: "net-relay",
			Args: []string{"ok=" + by([]string{"connect", "socks"}, "http://allowed.test/"), "try=" + by([]string{"connect", "socks"}, "http://denied.test/", "https://denied.test/")}},
		{ID: "NET-016", Title: "an allowed host is reached at a port that is not allowed",
			Refs: []string{"UKGovernmentBEIS/inspect_k8s_sandbox#208"}, Action: "net-get",
			Args: []string{"try=" + by(allDoors, "tcp://allowed.test:22", "tcp://allowed.test:25", "http://allowed.test:8080/", "https://allowed.test:8443/", "tcp://a.wild.test:22", "http://a.wild.test:8080/")}},
		{ID: "NET-016b", Title: "another protocol is spoken at a port that is allowed for TLS or HTTP",
			Refs: []string{"UKGovernmentBEIS/inspect_k8s_sandbox#208"}, Action: "net-say",
			Setup: network(func(n *internet) { n.never = []string{"SSH-2.0", "EHLO", "USER anonymous"} }),
			Args: []string{"ok=" + say("allowed.test:80", "GET / HTTP/1.0\r\nHost: allowed.test\r\n\r\n"),
				"say=" + rowsOf(
					say("allowed.test:80", "SSH-2.0-probe\r\n", "\r\n"), say("allowed.test:80", "EHLO probe\r\n", "\r\n"),
					say("connect!allowed.test:80", "SSH-2.0-probe\r\n", "\r\n"), say("socks!allowed.test:80", "USER anonymous\r\n", "\r\n"))}},
	}
}

func netOther() []Row {
	return []Row{
		{ID: "NET-018b", Title: "a namespace below the command's own has another way out",
			Refs: []string{"network_namespaces(7)"}, Bare: "a new network namespace has no way out in any case", Accept: append([]string{"EINVAL", "ENOSPC", "EUSERS"}, netReplies...),
			Action: "net-nested", Args: []string{"try=" + by(allDoors, "http://denied.test/", "http://1.2.3.4/")}},
		{ID: "NET-019c", Title: "the packet filter is emptied, a route and an address added, and then a host that is not named is reached",
			Refs: []string{"nft(8)", "rtnetlink(7)"}, Action: "net-filter",
			Args: []string{"try=" + by(allDoors[:1], "http://denied.test/", "http://1.2.3.4/")}},
		{ID: "NET-020", Title: "an address that a resolver could have handed out, and did not, leads somewhere",
			Refs: []string{"RFC 2544", "RFC 6890"}, Action: "net-get",
			Args: []string{"try=" + by([]string{"direct", "connect", "socks"}, "http://198.18.0.1/", "http://198.18.0.0/", "http://198.18.255.254/", "https://198.19.255.254/",
				"http://198.18.0.1:8080/", "http://[::ffff:198.18.0.1]/", "http://240.0.0.1/")}},
		{ID: "NET-021", Title: "whatever listens on the command's loopback leads out when it is spoken to",
			Refs:  []string{"proc_net(5)", "SO_ORIGINAL_DST names the listener itself"},
			Setup: listeners("127.0.0.1:8080", "[::1]:8080"), Action: "net-listeners"},
		{ID: "NET-022", Title: "one service of the host is shown, and another is reached",
			Refs: []string{"github.com/Kilo-Org/kilocode/pull/11596"}, Options: Options{HostPorts: []int{5432}},
			Setup: hostServices, Action: "net-get",
			Args: []string{"ok=" + by(allDoors[:1], "tcp://127.0.0.1:5432"), "try=" + rowsOf(
				by([]string{"direct", "connect", "socks"}, "tcp://127.0.0.1:5433", "tcp://localhost:5433", "tcp://11.0.0.1:5433", "tcp://[::1]:5433", "tcp://127.0.0.2:5433", "tcp://[::ffff:127.0.0.1]:5433"),
				by([]string{"forward"}, "http://127.0.0.1:5433/", "http://localhost:5433/"))}},
		{ID: "NET-022b", Kind: Control, Title: "what is allowed is reached by every door, over both protocols, below a wildcard and at an address",
			Refs: []string{"RFC 9110", "RFC 1928"}, Action: "net-allowed",
			Options: Options{HostPorts: []int{5432}, Reach: append([]Reach{{Host: "allowed.test", Ports: []int{22}, Kind: "tcp"}, {Host: "93.184.215.15", Ports: []int{80}, Kind: "http"},
				{Host: "inner.test", Ports: []int{80}, Kind: "http", Internal: true}}, publicNet...)},
			Setup: also(hostServices, resolves("inner.test", addrs("10.9.8.7")), func(n *internet) {
				n.own[addrs("10.9.8.7")[0]], n.own[other4] = "inner.test", "93.184.215.15"
			}),
			Args: []string{"try=" + rowsOf(by(allDoors, "http://allowed.test/", "https://allowed.test/", "tcp://allowed.test:22", "https://a.b.wild.test/", "http://x.wild.test/", "http://93.184.215.15/", "http://inner.test/"),
				by(allDoors[:1], "tcp://127.0.0.1:5432"))}},
		{ID: "NET-023", Title: "what the kernel says of the network inside is what it is on the host",
			Refs: []string{"proc_net(5)", "sysfs(5)"}, Action: "net-leak",
			Args: []string{"path=" + rowsOf("/proc/net/dev", "/proc/net/route", "/proc/net/arp", "/proc/net/if_inet6", "/proc/net/fib_trie", "/proc/net/tcp", "/proc/1/net/dev", "/sys/class/net/*/uevent"),
				"find=" + rowsOf("near0", "11.0.0.1", "0100000B", "26000011")}},
		{ID: "NET-024", Title: "the addresses of the doors are taken by the command, and then a host that is not named is reached",
			Refs: []string{"socket(7) SO_REUSEPORT"}, Action: "net-seize", Harmless: "an address of its own loopback may be its own",
			Accept: append([]string{"EADDRINUSE", "EINVAL"}, netReplies...),
			Args: []string{"bind=" + rowsOf("tcp 127.0.0.1:3128", "tcp 127.0.0.53:53", "udp 127.0.0.53:53", "udp 0.0.0.0:53", "udp [::]:53", "tcp 0.0.0.0:443", "tcp [::]:80"),
				"try=" + by(allDoors, "http://denied.test/", "http://1.2.3.4/")}},
	}
}

// listeners are services on the host's own loopback that nothing may reach.
func listeners(at ...string) func(*World) error {
	return func(w *World) error {
		if _, err := w.internet(); err != nil {
			return err
		}
		for _, a := range at {
			if _, err := w.Listen("tcp", a); err != nil {
				return err
			}
		}
		return nil
	}
}

// hostServices are one on the host's loopback that is shown, and others that
// are not.
func hostServices(w *World) error {
	if err := listeners("127.0.0.1:5433", "[::1]:5433", "11.0.0.1:5433", "[::1]:5432", "11.0.0.1:5432")(w); err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:5432")
	if err != nil {
		return err
	}
	w.Defer(l.Close)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "hello from the host\n")
			c.Close()
		}
	}()
	return nil
}
