//go:build linux

package native

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary"
)

// Addresses of the inner network. Nothing routes them: they only have to be
// none that a program would ask for.
var (
	source4 = netip.MustParseAddr("10.77.0.2") // of connections, as the inside sees itself
	source6 = netip.MustParseAddr("fd77::2")
	listen4 = netip.MustParseAddr("127.77.0.1") // of our listeners; away from 127.0.0.1, whose ports are the command's
	listen6 = netip.MustParseAddr("fd77::1")
)

const interceptPort = 15001

// interceptSteps is in the names of the steps that another rung does without.
const interceptSteps = "intercept: "

// network sets the inner network up and hands its doors out. Whatever fails here
// leaves less than was asked for, never a way around: the only device is lo.
func (b *builder) network() {
	n := b.spec.Network
	if n == nil || b.omit["namespace:net"] {
		return
	}
	if n.Intercept && b.facts.rung != boundary.Closed && b.facts.rung != boundary.Tun {
		b.netlink("intercept: IPv4 routes", unix.NETLINK_ROUTE, "routes4")
		if b.facts.ipv6 {
			b.netlink("intercept: IPv6 routes", unix.NETLINK_ROUTE, "routes6")
		}
		b.listeners()
	}
	b.nameDoor()
	b.door("explicit proxy", doorProxy, 0, netip.MustParseAddrPort(fmt.Sprintf("127.0.0.1:%d", boundary.ProxyPort)), nil)
	for _, port := range n.HostPorts {
		b.door(fmt.Sprintf("host port %d", port), doorHostPort, port, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(port)), nil)
	}
	if b.spec.Observe != nil {
		b.handOutSockets()
	}
}

// handOutSockets gives the supervisor a netlink socket that reports the sockets of this
// network (sock_diag(7)), because it may not enter the network itself. A kernel that
// lacks it sends nothing.
func (b *builder) handOutSockets() {
	msg, fd := b.rights(b.words(msgSockets, 0, 0), 24)
	b.call("table of sockets: netlink socket", unix.SYS_SOCKET,
		[]any{unix.AF_NETLINK, unix.SOCK_RAW | unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG}, into(fd), ignored())
	b.call("table of sockets: hand out", unix.SYS_SENDMSG, []any{fdControl, msg, 0}, ignored())
	b.closeFD(fd)
}

// Kinds of doors, as messages name them.
const (
	doorTCP = iota
	doorDNS
	doorNames
	doorProxy
	doorHostPort
	doorTun
)

// sockopt is one setsockopt(2) with a value of an int.
type sockopt struct {
	name          string
	level, option int
	value         int
}

// listeners makes those of the rung, and the rules that lead to them.
func (b *builder) listeners() {
	transparent := []sockopt{{"transparent", unix.IPPROTO_IP, unix.IP_TRANSPARENT, 1}}
	transparent6 := []sockopt{{"only IPv6", unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1}, {"transparent", unix.IPPROTO_IPV6, unix.IPV6_TRANSPARENT, 1}}
	switch b.facts.rung {
	case boundary.TProxy:
		b.netlink("intercept: rules", unix.NETLINK_NETFILTER, "tproxy")
		b.door("intercept: IPv4 listener", doorTCP, 4, netip.AddrPortFrom(listen4, interceptPort), transparent)
		if b.facts.ipv6 {
			b.door("intercept: IPv6 listener", doorTCP, 6, netip.AddrPortFrom(listen6, interceptPort), transparent6)
		}
	case boundary.Redirect:
		b.netlink("intercept: rules", unix.NETLINK_NETFILTER, "redirect")
		b.door("intercept: IPv4 listener", doorTCP, 4, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), interceptPort), nil)
		if b.facts.ipv6 {
			b.door("intercept: IPv6 listener", doorTCP, 6, netip.AddrPortFrom(netip.IPv6Loopback(), interceptPort), transparent6[:1])
		}
	case boundary.Ports:
		for _, port := range []uint16{22, 80, 443} {
			b.door(fmt.Sprintf("intercept: port %d", port), doorTCP, 4, netip.AddrPortFrom(netip.IPv4Unspecified(), port), nil)
			if b.facts.ipv6 {
				b.door(fmt.Sprintf("intercept: port %d, IPv6", port), doorTCP, 6, netip.AddrPortFrom(netip.IPv6Unspecified(), port), transparent6[:1])
			}
		}
	}
}

// tunIndex is the number of the TUN device: known beforehand, so that the messages
// about it are constant.
const tunIndex = 77

// tun makes a device whose packets are the supervisor's, and sends everything
// but the loopback there. The device has to be in view of the host's /dev, which is
// why this comes before the new root.
func (b *builder) tun() {
	msg, fd := b.rights(b.words(msgDoor, doorTun, 0), 24)
	b.call("intercept: open /dev/net/tun", unix.SYS_OPENAT,
		[]any{unix.AT_FDCWD, b.str("/dev/net/tun"), unix.O_RDWR | unix.O_CLOEXEC | unix.O_NONBLOCK, 0}, into(fd))
	b.call("intercept: number of the device", unix.SYS_IOCTL, []any{fd, unix.TUNSETIFINDEX, b.words(tunIndex)})
	request := make([]byte, 40)
	copy(request, "hf0")
	binary.LittleEndian.PutUint16(request[16:], unix.IFF_TUN|unix.IFF_NO_PI|unix.IFF_VNET_HDR)
	b.call("intercept: make the device", unix.SYS_IOCTL, []any{fd, unix.TUNSETIFF, b.bytes(request)})
	b.netlink("intercept: IPv4 routes", unix.NETLINK_ROUTE, "tun4")
	if b.facts.ipv6 {
		b.netlink("intercept: IPv6 routes", unix.NETLINK_ROUTE, "tun6")
	}
	b.call("intercept: hand out the device", unix.SYS_SENDMSG, []any{fdControl, msg, 0})
	b.closeFD(fd)
	b.doors++
}

// nameDoor is where names are asked for. If every address is a local one, it answers
// instead of every name server.
func (b *builder) nameDoor() {
	at := netip.AddrPortFrom(netip.MustParseAddr(boundary.NameServer), 53)
	if b.spec.Network.Intercept && b.facts.rung != boundary.Closed && b.facts.rung != boundary.Tun {
		at = netip.AddrPortFrom(netip.IPv4Unspecified(), 53)
		if b.facts.ipv6 {
			at = netip.AddrPortFrom(netip.IPv6Unspecified(), 53)
		}
	}
	options := []sockopt{{"tell destination", unix.IPPROTO_IP, unix.IP_PKTINFO, 1}}
	if at.Addr().Is6() {
		options = append(options, sockopt{"both families", unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0},
			sockopt{"tell IPv6 destination", unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1})
	}
	b.socketDoor("name server", unix.SOCK_DGRAM, doorDNS, 0, at, options)
	b.door("name server, TCP", doorNames, 0, netip.AddrPortFrom(netip.MustParseAddr(boundary.NameServer), 53), nil)
}

// door makes a listening socket and hands it out.
func (b *builder) door(name string, kind, detail int, at netip.AddrPort, options []sockopt) {
	b.socketDoor(name, unix.SOCK_STREAM, kind, detail, at, options)
}

func (b *builder) socketDoor(name string, typ, kind, detail int, at netip.AddrPort, options []sockopt) {
	msg, fd := b.rights(b.words(msgDoor, uint64(kind), uint64(detail)), 24)
	b.call(name+": socket", unix.SYS_SOCKET, []any{int(family(at.Addr())), typ | unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK, 0}, into(fd))
	if typ == unix.SOCK_STREAM {
		options = append([]sockopt{{"reuse address", unix.SOL_SOCKET, unix.SO_REUSEADDR, 1}}, options...)
	}
	for _, o := range options {
		b.call(name+": "+o.name, unix.SYS_SETSOCKOPT, []any{fd, o.level, o.option, b.words(uint64(o.value)), 4})
	}
	address := sockaddr(at)
	b.call(name+": bind", unix.SYS_BIND, []any{fd, b.bytes(address), len(address)})
	if typ == unix.SOCK_STREAM {
		b.call(name+": listen", unix.SYS_LISTEN, []any{fd, 4096})
	}
	b.call(name+": hand out", unix.SYS_SENDMSG, []any{fdControl, msg, 0})
	b.closeFD(fd)
	b.doors++
}

// family of an address (address_families(7)).
func family(a netip.Addr) byte {
	if a.Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

// sockaddr is struct sockaddr_in or sockaddr_in6 (ip(7), ipv6(7)).
func sockaddr(at netip.AddrPort) []byte {
	raw := binary.LittleEndian.AppendUint16(nil, uint16(family(at.Addr())))
	raw = binary.BigEndian.AppendUint16(raw, at.Port())
	if at.Addr().Is4() {
		raw = append(raw, at.Addr().AsSlice()...)
		return append(raw, make([]byte, 8)...)
	}
	raw = append(raw, 0, 0, 0, 0)
	raw = append(raw, at.Addr().AsSlice()...)
	return append(raw, 0, 0, 0, 0)
}

// messageFile is a generated file with netlink messages, which a test compares with
// what libraries encode:
//
//	routes4   gives lo an address and makes every IPv4 address a local one (AnyIP, ip-route(8) "local")
//	routes6   does so for IPv6; the address is used at once, without duplicate address detection
//	tun4      brings the TUN device up with an IPv4 address and sends all IPv4 there
//	tun6      does so for IPv6, with the local route that the kernel makes later (addrconf_dad_work)
//	tproxy    directs TCP to other addresses than the loopback's own to our listeners (nftables TPROXY)
//	redirect  does so by NAT, where there is no TPROXY
func messageFile(name string) string { return "generated/" + name + ".netlink" }

// netlink sends the messages of a file to the kernel and reads the acknowledgements
// that they ask for; an error in any of them ends the launch (netlink(7)).
func (b *builder) netlink(name string, protocol int, file string) {
	messages, err := generated.ReadFile(messageFile(file))
	if err != nil {
		panic("native: " + err.Error()) // every name is a constant
	}
	const size = 4096 // an error comes with the message that it is about
	sock, answer := b.slot(), b.bytes(make([]byte, size))
	b.call(name+": netlink socket", unix.SYS_SOCKET, []any{unix.AF_NETLINK, unix.SOCK_RAW | unix.SOCK_CLOEXEC, protocol}, into(sock))
	b.call(name+": send", unix.SYS_WRITE, []any{sock, b.bytes(messages), len(messages)}, want(int64(len(messages))))
	for rest := messages; len(rest) > 0; {
		length, flags := binary.LittleEndian.Uint32(rest), binary.LittleEndian.Uint16(rest[6:])
		if flags&unix.NLM_F_ACK != 0 {
			b.call(name+": receive", unix.SYS_READ, []any{sock, answer, size})
			// Behind the header is the error number, then the header of the
			// message that is acknowledged, which begins with its length.
			b.call(name+acknowledged, noCall, []any{ref(answer + unix.NLMSG_HDRLEN)}, want(int64(length)<<32))
		}
		rest = rest[length:]
	}
	b.closeFD(sock)
}

// acknowledged is how the names of steps end whose result is an acknowledgement.
const acknowledged = ": acknowledge"

// takeDoor keeps a door that the launch handed out.
func (l *launch) takeDoor(m message) error {
	if m.file == nil {
		return errors.New("the launch announced a network descriptor but sent none")
	}
	l.arrived++
	switch m.fields[0] {
	case doorTCP:
		l.doors.TCP = append(l.doors.TCP, m.file)
	case doorDNS:
		l.doors.DNS = m.file
	case doorNames:
		l.doors.Names = m.file
	case doorProxy:
		l.doors.Proxy = m.file
	case doorTun:
		l.doors.TUN = m.file
	case doorHostPort:
		if l.doors.HostPorts == nil {
			l.doors.HostPorts = map[int]*os.File{}
		}
		l.doors.HostPorts[int(m.fields[1])] = m.file
	default:
		m.file.Close()
		return fmt.Errorf("the launch sent a network descriptor of unknown kind %d", m.fields[0])
	}
	return nil
}

// openDoors hands the doors to the caller of the launch.
func (l *launch) openDoors() error {
	if l.arrived != l.builder.doors {
		return fmt.Errorf("only %d of %d descriptors of the inner network arrived", l.arrived, l.builder.doors)
	}
	if l.spec.Network == nil || l.spec.Network.Open == nil {
		l.doors.Close()
		return nil
	}
	doors := l.doors
	doors.Rung = l.facts.rung
	l.doors = boundary.Doors{}
	if err := l.spec.Network.Open(doors); err != nil {
		return fmt.Errorf("serving the inner network: %w", err)
	}
	return nil
}
