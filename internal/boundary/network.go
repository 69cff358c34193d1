package boundary

import (
	"io/fs"
	"os"

	"holdfast.dev/holdfast/internal/policy"
)

// File is a small file of the boundary's own.
type File struct {
	Path    string // absolute, inside
	Content []byte
	Mode    fs.FileMode // permission bits; 0 is 0444
}

// Network asks for doors in the inner network: sockets that are made there and
// handed out, so that their holder decides about every connection and
// nothing inside can go around them. There is no other way out.
type Network struct {
	// Intercept is whether connections to every address arrive, also those of programs
	// that know of no proxy. Without it only what a program addresses explicitly
	// arrives: names and the explicit proxy.
	Intercept bool

	// Optional is whether the launch goes on where none of the rungs works. What is
	// refused is refused all the same, but fewer programs say why.
	Optional bool

	// Rungs are the ways to intercept that may be used, in order; the first one
	// that this host can do is taken. Empty means all, in the order of Rungs.
	Rungs []Rung

	// HostPorts are TCP ports that are listened on at the inner loopback, for
	// services of the host.
	HostPorts []int

	// Open is called once with the doors, before the command is executed. It owns
	// them whether or not it fails; an error stops the launch.
	Open func(Doors) error
}

// Rung is a way in which connections are intercepted.
type Rung string

// The rungs of the ladder, best first. None lets out what another would hold:
// they differ in what a program must know to be served.
const (
	TProxy   Rung = "tproxy"   // nftables TPROXY: every TCP port, IPv4 and IPv6
	Redirect Rung = "redirect" // nftables NAT: every TCP port, IPv4 and IPv6; the destination is SO_ORIGINAL_DST
	Tun      Rung = "tun"      // a TUN device and a network stack in the supervisor: every TCP port
	Ports    Rung = "ports"    // listeners on the ports 22, 80 and 443 of every address; other ports by the explicit proxy only
	Closed   Rung = "closed"   // nothing is intercepted: only names and the explicit proxy are answered
)

// Rungs is the ladder in order.
var Rungs = []Rung{TProxy, Redirect, Tun, Ports}

// Where the doors are, as the inside sees it.
const (
	NameServer = "127.0.0.53"     // asked for names; with interception every other address is answered in its place
	ProxyPort  = policy.ProxyPort // on 127.0.0.1: HTTP CONNECT, absolute-form HTTP and SOCKS5
)

// Doors are sockets of the inner network, handed out. All are non-blocking and
// close-on-exec; the receiver closes them.
type Doors struct {
	Rung Rung

	// TCP accept intercepted connections. The local address of what they accept
	// is the destination that was dialled; with Redirect it is the socket option
	// SO_ORIGINAL_DST (IPv6: IP6T_SO_ORIGINAL_DST).
	TCP []*os.File

	// DNS is a datagram socket on port 53. With interception it is bound to every
	// address of IPv4 and IPv6 and says with each datagram which one was asked
	// (IP_PKTINFO, IPV6_RECVPKTINFO).
	DNS *os.File

	// Names listens on port 53 of NameServer, for queries over TCP (RFC 7766).
	Names *os.File

	// Proxy listens on ProxyPort for programs that know of proxies.
	Proxy *os.File

	// HostPorts accept connections to services of the host, by port.
	HostPorts map[int]*os.File

	// TUN carries packets, with Tun; nil otherwise.
	TUN *os.File
}

// Close closes all of them.
func (d Doors) Close() {
	all := append([]*os.File{d.DNS, d.Names, d.Proxy, d.TUN}, d.TCP...)
	for _, f := range d.HostPorts {
		all = append(all, f)
	}
	for _, f := range all {
		if f != nil {
			f.Close()
		}
	}
}
