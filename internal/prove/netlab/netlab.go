// Package netlab makes private networks: a process gets the whole internet to
// itself, for probes and tests of what may leave a machine.
//
// The process and what it starts live on one side, at 11.0.0.1 and 2600:11::1,
// with a default route to the other side; there every address of both families
// can be listened on, public ones and those of metadata services alike. Nothing
// leads out of either side. The files /etc/hosts and /etc/resolv.conf are the
// network's own, and [Bundle] holds one authority more than the host's: the one
// of [Network.Certificate]. What else the process sees is the host.
//
// The servers stand on the other side of a link, and not on addresses of this
// one, so that a program which refuses its host's own addresses reaches them.
//
// All of it lies in namespaces: nothing on the host's network is touched, and
// nothing is left when the processes have ended. A small process holds the other
// side. It ends when the one that the network is for does, however that came
// about, and before that it ends whatever was left behind in the network.
package netlab

import (
	"crypto/tls"
	"errors"
	"os"
)

// Resolver is the name server that /etc/resolv.conf names, at port 53. Nobody
// answers there unless somebody does so with [Network.ListenPacket].
const Resolver = "11.0.0.53"

// Bundle is the list of authorities that programs of Debian trust.
const Bundle = "/etc/ssl/certs/ca-certificates.crt"

// ErrEnded is returned by [Part] in a process that has nothing more to do,
// because the network has ended that it was a part of.
var ErrEnded = errors.New("the network has ended")

// Network is the network that this process is in.
type Network struct {
	remote *os.File        // a socket to the process that holds the other side
	issuer tls.Certificate // the authority
}
