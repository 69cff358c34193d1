//go:build linux

package probe

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
)

// Outside is a network outside in which every address can be listened on.
// Everything of the launcher's host is routed to it. A Runner without one plays
// no row that needs a network.
type Outside struct {
	Listen       func(addr string) (net.Listener, error)
	ListenPacket func(addr string) (net.PacketConn, error)
	// Certificate returns a certificate that programs outside trust.
	Certificate func(names ...string) tls.Certificate
}

// The addresses of the servers that rows allow. No row allows any other address.
var (
	allowed4 = netip.MustParseAddr("93.184.215.14")
	allowed6 = netip.MustParseAddr("2606:2800:21f:cb07::1")
	other4   = netip.MustParseAddr("93.184.215.15")
	wild4    = netip.MustParseAddr("93.184.215.16")
	denied4  = netip.MustParseAddr("1.2.3.4")
)

// The resolver that the launcher's host is configured with.
const resolverAddr = "11.0.0.53:53"

// internet is the network outside: a resolver that knows every name, servers at
// every address, and a log of everything that arrived.
type internet struct {
	w     *World
	reach []Reach
	token string // sent by every server that nothing inside may reach
	certs tls.Certificate

	// zone maps names to addresses, asked anew for each query; a name that is not in it
	// is at denied4.
	zone map[string]func(query int) []netip.Addr
	// brief is a name whose addresses change: its server ends each connection after one
	// answer, for a client that keeps one looks nothing up again.
	brief string
	// own are the servers that may be reached if the policy names them.
	own map[netip.Addr]string
	// never are texts that no allowed server may be sent.
	never []string
	// silent is set if no names but those of the controls may be queried.
	silent bool
	// lent are values that an allowed server may be sent only if the function allows
	// it.
	lent map[string]func(arrival) bool
	// protocols are those that the TLS servers offer; nil for all.
	protocols []string
	// unread is set if the TLS servers leave bodies unread and keep their connections.
	unread bool
	// namesOnly is set if every handshake must name its server.
	namesOnly bool
	// choose returns the certificate of a server; nil for the trusted one.
	choose func(name string) tls.Certificate
	// alias maps names to the names that they are aliases of.
	alias map[string]string

	serving []func() // started when the set-up has set all of the above

	mu       sync.Mutex
	raw      []string // data sent to servers without a protocol, one entry per connection
	arrivals []arrival
	queries  []query
	strange  []string
	heard    []byte
}

// arrival is one request, or one connection without any.
type arrival struct {
	to             netip.AddrPort
	from           string
	name           string // of the server
	sni            string
	method, target string
	hosts          []string // every Host header, or the :authority
	head           string
	body           string // its first bytes
	trailers       []string
}

type query struct {
	name string
	kind uint16
}

// internet opens the network for a row and passes the action the addresses at
// which a sandbox may have a proxy.
func (w *World) internet() (*internet, error) {
	if w.outside == nil {
		return nil, fmt.Errorf("%w: network", ErrMissing)
	}
	at := func(a ...netip.Addr) func(int) []netip.Addr { return func(int) []netip.Addr { return a } }
	n := &internet{w: w, reach: slices.Clone(w.reach), token: w.Token("a server that nothing names"),
		zone: map[string]func(int) []netip.Addr{
			"allowed.test": at(allowed4, allowed6), "b.allowed.test": at(other4), "*.wild.test": at(wild4),
		},
		own: map[netip.Addr]string{allowed4: "allowed.test", allowed6: "allowed.test", other4: "b.allowed.test", wild4: "*.wild.test"},
	}
	n.certs = w.outside.Certificate("allowed.test", "b.allowed.test", "*.wild.test", "denied.test")
	for _, port := range []int{22, 25, 53, 80, 443, 853, 3128, 8080, 8081, 8082, 8443} {
		l, err := w.outside.Listen(fmt.Sprintf("[::]:%d", port))
		if err != nil {
			return nil, err
		}
		w.Defer(l.Close)
		n.serving = append(n.serving, func() { n.accept(l) })
	}
	if err := n.datagrams(); err != nil {
		return nil, err
	}
	w.seen = append(w.seen, n)
	w.net = n
	return n, nil
}

// begin answers connections from now on; without a network it does nothing.
func (n *internet) begin() {
	if n == nil {
		return
	}
	for _, serve := range n.serving {
		go serve()
	}
}

// network is a Setup that needs only the network.
func network(more ...func(*internet)) func(*World) error {
	return func(w *World) error {
		n, err := w.internet()
		if err != nil {
			return err
		}
		for _, f := range more {
			f(n)
		}
		return nil
	}
}

// resolves gives a name its addresses, one list per query, in rotation.
func resolves(name string, answers ...[]netip.Addr) func(*internet) {
	return func(n *internet) {
		n.zone[name] = func(i int) []netip.Addr { return answers[i%len(answers)] }
		if len(answers) > 1 {
			n.brief = name
		}
	}
}

func addrs(text ...string) []netip.Addr {
	var out []netip.Addr
	for _, t := range text {
		out = append(out, netip.MustParseAddr(t))
	}
	return out
}

// datagrams starts the resolver and other UDP listeners.
func (n *internet) datagrams() error {
	for _, addr := range []string{
		resolverAddr, "8.8.8.8:53", "1.1.1.1:53", "[2001:4860:4860::8888]:53", "1.2.3.4:53", "93.184.215.14:53",
		"1.2.3.4:443", "93.184.215.14:443", "1.2.3.4:123", "1.2.3.4:9", "169.254.169.254:53", "11.0.0.2:5353",
	} {
		c, err := n.w.outside.ListenPacket(addr)
		if err != nil {
			return err
		}
		n.w.Defer(c.Close)
		n.serving = append(n.serving, func() { n.receive(c, addr) })
	}
	return nil
}

func (n *internet) receive(c net.PacketConn, addr string) {
	buf := make([]byte, 64<<10)
	for {
		l, from, err := c.ReadFrom(buf)
		if err != nil {
			return
		}
		answer := n.resolve(buf[:l])
		if addr != resolverAddr || answer == nil {
			n.mark("a datagram arrived at "+addr, buf[:l])
		}
		if answer == nil {
			answer = []byte(n.token)
		}
		_, _ = c.WriteTo(answer, from)
	}
}

// resolve answers a query (RFC 1035, 4.1); nil if it is not one.
func (n *internet) resolve(b []byte) []byte {
	if len(b) < 17 || b[2]&0x80 != 0 || binary.BigEndian.Uint16(b[4:]) != 1 {
		return nil
	}
	i, name := 12, ""
	for i < len(b) && b[i] != 0 && i+1+int(b[i]) < len(b) {
		name += string(b[i+1:i+1+int(b[i])]) + "."
		i += 1 + int(b[i])
	}
	if i+5 > len(b) || b[i] != 0 {
		return nil
	}
	q := query{strings.ToLower(strings.TrimSuffix(name, ".")), binary.BigEndian.Uint16(b[i+1:])}
	answers := n.answers(q)
	out := slices.Clone(b[:i+5])
	out[2], out[3] = 0x84, 0x80 // an authoritative answer, recursion available
	clear(out[8:12])
	count, owner := len(answers), uint16(0xc00c) // the name in the question
	if other := n.alias[q.name]; other != "" {
		count++
		var target []byte
		for label := range strings.SplitSeq(other, ".") {
			target = append(append(target, byte(len(label))), label...)
		}
		out = append(out, 0xc0, 12, 0, 5, 0, 1, 0, 0, 0, 0, 0, byte(len(target)+1))
		owner = 0xc000 | uint16(len(out))
		out = append(append(out, target...), 0)
	}
	binary.BigEndian.PutUint16(out[6:], uint16(count))
	for _, a := range answers {
		out = binary.BigEndian.AppendUint16(out, owner)
		out = binary.BigEndian.AppendUint16(out, q.kind)
		out = append(out, 0, 1, 0, 0, 0, 0)
		out = binary.BigEndian.AppendUint16(out, uint16(len(a.AsSlice())))
		out = append(out, a.AsSlice()...)
	}
	return out
}

// answers logs a query. An A query advances the zone, so that the AAAA query
// beside it belongs to the same round.
func (n *internet) answers(q query) []netip.Addr {
	n.mu.Lock()
	defer n.mu.Unlock()
	before := 0
	for _, p := range n.queries {
		if p == q {
			before++
		}
	}
	n.queries = append(n.queries, q)
	give, ok := n.zone[q.name]
	for zone := q.name; !ok && zone != ""; {
		_, zone, _ = strings.Cut(zone, ".")
		give, ok = n.zone["*."+zone]
	}
	if !ok {
		give = func(int) []netip.Addr { return []netip.Addr{denied4} }
	}
	var out []netip.Addr
	for _, a := range give(before) {
		if a.Is4() == (q.kind == 1) && (q.kind == 1 || q.kind == 28) {
			out = append(out, a)
		}
	}
	return out
}

// mark records an effect.
func (n *internet) mark(what string, heard []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !slices.Contains(n.strange, what) && len(n.strange) < 50 {
		n.strange = append(n.strange, what)
	}
	n.heard = append(n.heard, heard[:min(len(heard), 4096)]...)
}

// server returns the name of the server at an address, and whether it may be
// reached there.
func (n *internet) server(at netip.AddrPort) (name string, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	name, ok = n.own[at.Addr().Unmap()]
	if !ok {
		return "", false
	}
	return name, slices.ContainsFunc(n.reach, func(r Reach) bool {
		return (r.names(name) || r.Host == name) && slices.Contains(r.Ports, int(at.Port()))
	})
}

func (n *internet) record(v arrival) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.arrivals = append(n.arrivals, v)
}

// recordRaw logs what was sent to a server without a protocol.
func (n *internet) recordRaw(b []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.raw = append(n.raw, string(b))
	n.heard = append(append(n.heard, b...), '\n')
}

func (n *internet) received() []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.heard)
}

// asked counts the queries for a name.
func (n *internet) asked(name string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	count := 0
	for _, q := range n.queries {
		if q.name == name {
			count++
		}
	}
	return count
}

// requests returns those with this target prefix that an allowed server got.
func (n *internet) requests(target string) []arrival {
	n.mu.Lock()
	defer n.mu.Unlock()
	var out []arrival
	for _, v := range n.arrivals {
		if v.method != "" && strings.HasPrefix(v.target, target) {
			out = append(out, v)
		}
	}
	return out
}

// errDone ends a connection whose server is done.
var errDone = errors.New("done")

// never sets texts that no allowed server may be sent.
func never(texts ...string) func(*internet) {
	return func(n *internet) { n.never = texts }
}

// owns assigns an address to a server.
func owns(addr, name string) func(*internet) {
	return func(n *internet) { n.own[netip.MustParseAddr(addr)] = name }
}

// aliased makes a name an alias of another.
func aliased(name, of string) func(*internet) {
	return func(n *internet) { n.alias = map[string]string{name: of} }
}

// protocols sets those that the TLS servers offer.
func protocols(names ...string) func(*internet) {
	return func(n *internet) { n.protocols = names }
}

// readsNoBody makes the TLS servers leave bodies unread and keep their connections.
func readsNoBody(n *internet) { n.unread = true }
