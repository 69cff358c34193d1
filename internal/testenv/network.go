package testenv

import (
	"crypto/tls"
	"net"
	"os"
	"testing"

	"holdfast.dev/holdfast/internal/prove/netlab"
)

// NetworkResolver is the name server in /etc/resolv.conf of a private network, at
// port 53. It answers only if the test does so with [Network.ListenPacket].
const NetworkResolver = netlab.Resolver

// NetworkBundle is the list of authorities that Debian's programs trust.
const NetworkBundle = netlab.Bundle

// Network is a private network that gives a test the whole internet for itself;
// see package netlab. The test process and its children are in it.
type Network struct{ lab *netlab.Network }

// WithNetwork runs f in a private network. Namespaces apply to whole processes:
// the test binary is executed again for this test only, and f runs there, with
// the test's user and rights. hosts are names in /etc/hosts with their addresses.
//
// It must be the last call of its test, and does not work in parallel tests.
func WithNetwork(t *testing.T, hosts map[string]string, f func(*testing.T, *Network)) {
	t.Helper()
	if inNetwork != nil {
		f(t, inNetwork)
		return
	}
	Need(t, UserNS, nil)
	rerunInNetwork(t, hosts)
}

// inNetwork is the network in which this process was started; nil for none. It is
// set before any TestMain begins, because a process that only helps to set up a
// network never gets there.
var inNetwork = takePart()

// Listen listens on the other side, at any address of either family.
func (n *Network) Listen(addr string) (net.Listener, error) { return n.lab.Listen(addr) }

// ListenPacket receives datagrams on the other side, at any address of either
// family.
func (n *Network) ListenPacket(addr string) (net.PacketConn, error) { return n.lab.ListenPacket(addr) }

// Authority returns the certificate, as PEM, that everything in the network
// trusts if it reads [NetworkBundle].
func (n *Network) Authority(t testing.TB) []byte {
	t.Helper()
	return n.lab.Authority()
}

// Certificate returns a certificate of the network's authority for a server of
// these names.
func (n *Network) Certificate(t testing.TB, names ...string) tls.Certificate {
	t.Helper()
	cert, err := n.lab.Certificate(names...)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// takePart ends a process that was executed only to set up a network.
func takePart() *Network {
	lab, err := netlab.Part()
	switch {
	case err == netlab.ErrEnded:
		os.Exit(0)
	case err != nil:
		_, _ = os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	case lab == nil:
		return nil
	}
	return &Network{lab}
}
