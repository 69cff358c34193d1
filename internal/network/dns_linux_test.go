package network

import (
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/miekg/dns"
	"golang.org/x/sys/unix"

	"holdfast.dev/holdfast/internal/testenv"
)

func TestEveryNameServerIsThisOne(t *testing.T) {
	testenv.WithNetwork(t, nil, func(t *testing.T, n *testenv.Network) {
		p, err := n.ListenPacket("[::]:53")
		if err != nil {
			t.Fatal(err)
		}
		c := p.(*net.UDPConn)
		clearFreebind(t, c)
		w := newNameWorld(t, Off, Limits{})
		done := make(chan error, 1)
		go func() { done <- w.serveUDP(c) }()
		for _, server := range []string{"8.8.8.8", "2001:4860:4860::8888", "169.254.169.253"} {
			b, err := askAt(netip.AddrPortFrom(netip.MustParseAddr(server), 53), packQuery(t, ednsQuery("allowed.test.", dns.TypeA)))
			if err != nil {
				t.Errorf("%s: %v", server, err)
				continue
			}
			if m := parseAnswer(t, b); len(m.Answer) != 1 {
				t.Errorf("%s answers %v", server, m)
			}
		}
		c.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// The resolver of this host sees no query while names are asked for; a single label is
// looked up unchanged when it is dialled.
func TestAskingTellsNobody(t *testing.T) {
	testenv.WithNetwork(t, nil, func(t *testing.T, n *testenv.Network) {
		resolver, err := n.ListenPacket(testenv.NetworkResolver + ":53")
		if err != nil {
			t.Fatal(err)
		}
		defer resolver.Close()
		w := newNameWorld(t, Through, Limits{})
		for _, name := range []string{"allowed.test.", "x.wild.test.", "denied.test.", "localhost.", "1.0.18.198.in-addr.arpa.", "."} {
			for _, qtype := range []uint16{dns.TypeA, dns.TypeAAAA, dns.TypeTXT, dns.TypeHTTPS, dns.TypeANY, dns.TypePTR} {
				w.ask(t, ednsQuery(name, qtype))
			}
		}
		limits := Limits{DialTime: testWait}.withDefaults()
		done := make(chan error, 1)
		go func() {
			_, err := newDialer(nil, w.guard, limits).Dial(t.Context(), Destination{Name: "db", Port: 443}, Permit{})
			done <- err
		}()
		// What comes first is the dial's query: those before sent nothing.
		resolver.SetReadDeadline(time.Now().Add(testWait))
		b := make([]byte, 4096)
		for range 2 { // one for each family
			size, from, err := resolver.ReadFrom(b)
			if err != nil {
				t.Fatal(err)
			}
			q := parseAnswer(t, b[:size])
			if got := q.Question[0].Name; got != "db." {
				t.Errorf("the resolver was asked for %s", got)
			}
			q.Response, q.Rcode = true, dns.RcodeNameError
			resolver.WriteTo(packQuery(t, q), from)
		}
		if err := <-done; err == nil || !strings.Contains(err.Error(), "resolving db:") {
			t.Errorf("got %v", err)
		}
		resolver.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		if size, _, err := resolver.ReadFrom(b); err == nil {
			t.Errorf("one more query: %v", parseAnswer(t, b[:size]))
		}
	})
}

// clearFreebind makes the socket like the one that a boundary hands out.
func clearFreebind(t *testing.T, c *net.UDPConn) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	err = raw.Control(func(fd uintptr) {
		if err := unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_FREEBIND, 0); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}
