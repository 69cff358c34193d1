// Package netlab makes private networks: a process gets the whole internet to
// itself, for probes and tests of what may leave a machine.
//
// The process and its children live on one side, at 11.0.0.1 and 2600:11::1, with
// a default route to the other side. There, programs can listen on every address
// of both families, public ones and those of metadata services alike. Neither
// side has a way out. The files /etc/hosts and /etc/resolv.conf are the network's
// own, and [Bundle] holds the host's authorities and one more: that of
// [Network.Certificate]. Everything else that the process sees is the host.
//
// The servers are on the other side of a link, and not on addresses of this one,
// so that a program that refuses its host's own addresses can reach them.
//
// All of it is in namespaces: nothing on the host's network is touched, and
// nothing remains when the processes have ended. A small process holds the other
// side. It ends, for whatever reason, with the process that the network is for,
// and first kills what was left behind in the network.
package netlab

import (
	"crypto/tls"
	"errors"
	"os"
)

// Resolver is the name server in /etc/resolv.conf, at port 53. It answers only if
// [Network.ListenPacket] is used to answer there.
const Resolver = "11.0.0.53"

// Bundle is the list of authorities that programs on Debian trust.
const Bundle = "/etc/ssl/certs/ca-certificates.crt"

// ErrEnded is returned by [Part] in a process that has nothing more to do because
// its network has ended.
var ErrEnded = errors.New("the network has ended")

// Network is the network that this process is in.
type Network struct {
	remote *os.File        // a socket to the process that holds the other side
	issuer tls.Certificate // the authority
}
