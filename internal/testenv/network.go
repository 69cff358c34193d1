package testenv

import (
	"os"
	"testing"
)

// NetworkResolver is the name server that /etc/resolv.conf names in a private
// network, at port 53. Nobody answers there unless the test does so with
// [Network.ListenPacket].
const NetworkResolver = "11.0.0.53"

// NetworkBundle is the list of authorities that programs of Debian trust.
const NetworkBundle = "/etc/ssl/certs/ca-certificates.crt"

// Network is a private network in which a test has the whole internet to
// itself. The test process and what it starts live on one side, at 11.0.0.1 and
// 2600:11::1, with a default route to the other side; there every address of
// both families can be listened on, public ones and those of metadata services
// alike. Nothing leads out of either side. The files /etc/hosts and
// /etc/resolv.conf are the test's own, and [NetworkBundle] holds one authority
// more than the host's: the one of [Network.Certificate].
//
// The servers stand on the other side of a link, and not on addresses of this
// one, so that a program which refuses its host's own addresses reaches them.
type Network struct {
	remote    *os.File // a socket to the process that holds the other side; nil outside a private network
	authority string   // key and certificate, for makeAuthority and issuer
}

// WithNetwork runs f in a private network. Namespaces are a matter of whole
// processes: the test binary is executed once more, for this test alone, and f
// runs there, with the user and the rights that the test has here. hosts are
// names of /etc/hosts and their addresses.
//
// It is the last call of its test, and not for parallel tests.
func WithNetwork(t *testing.T, hosts map[string]string, f func(*testing.T, *Network)) {
	t.Helper()
	if inNetwork != nil {
		f(t, inNetwork)
		return
	}
	Need(t, UserNS, nil)
	again(t, hosts)
}

// PrivateNetwork is [testing.M.Run] in a private network, for the TestMain of
// a package whose tests all want one; they get it from [TheNetwork].
func PrivateNetwork(m *testing.M, hosts map[string]string) int {
	if inNetwork != nil || userNS() != nil {
		return m.Run()
	}
	return mainAgain(hosts)
}

// TheNetwork returns what [PrivateNetwork] made.
func TheNetwork(t testing.TB) *Network {
	t.Helper()
	Need(t, UserNS, nil)
	if inNetwork == nil {
		t.Fatal("no private network: TestMain must call testenv.PrivateNetwork")
	}
	return inNetwork
}
