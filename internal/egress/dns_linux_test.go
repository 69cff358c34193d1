package egress

import (
	"net"
	"net/netip"
	"testing"

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
			b, err := askAt(netip.AddrPortFrom(netip.MustParseAddr(server), 53), packed(t, query("allowed.test.", dns.TypeA)))
			if err != nil {
				t.Errorf("%s: %v", server, err)
				continue
			}
			if m := parsed(t, b); len(m.Answer) != 1 {
				t.Errorf("%s answers %v", server, m)
			}
		}
		c.Close()
		if err := <-done; err != nil {
			t.Error(err)
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
