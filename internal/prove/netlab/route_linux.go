package netlab

import (
	wire "encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"golang.org/x/sys/unix"
)

// change is one request of rtnetlink(7): its type, flags besides those of every
// request, and the body. Interfaces are looked up when the request is built,
// because an earlier one of the list may have made them.
type change func() (kind, flags uint16, body []byte, err error)

// rtnetlink applies changes to the network namespace of this process.
func rtnetlink(changes ...change) error {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return fmt.Errorf("opening rtnetlink: %w", err)
	}
	defer unix.Close(fd)
	for i, c := range changes {
		kind, flags, body, err := c()
		if err == nil {
			err = transact(fd, kind, flags, body)
		}
		if err != nil {
			return fmt.Errorf("network change %d: %w", i, err)
		}
	}
	return nil
}

func transact(fd int, kind, flags uint16, body []byte) error {
	b := wire.NativeEndian.AppendUint32(nil, uint32(unix.NLMSG_HDRLEN+len(body)))
	b = wire.NativeEndian.AppendUint16(b, kind)
	b = wire.NativeEndian.AppendUint16(b, flags|unix.NLM_F_REQUEST|unix.NLM_F_ACK)
	b = append(b, make([]byte, 8)...) // sequence and sender
	if err := unix.Sendto(fd, append(b, body...), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	answer := make([]byte, 8192)
	n, _, err := unix.Recvfrom(fd, answer, 0)
	switch {
	case err != nil:
		return err
	case n < unix.NLMSG_HDRLEN+4 || wire.NativeEndian.Uint16(answer[4:]) != unix.NLMSG_ERROR:
		return fmt.Errorf("the kernel answered a message of type %d", wire.NativeEndian.Uint16(answer[4:]))
	}
	if errno := int32(wire.NativeEndian.Uint32(answer[unix.NLMSG_HDRLEN:])); errno != 0 {
		return unix.Errno(-errno)
	}
	return nil
}

// attribute encodes one attribute of rtnetlink(7), padded.
func attribute(kind uint16, value []byte) []byte {
	b := wire.NativeEndian.AppendUint16(nil, uint16(4+len(value)))
	b = append(wire.NativeEndian.AppendUint16(b, kind), value...)
	return append(b, make([]byte, (4-len(b)%4)%4)...)
}

// linkMessage encodes a struct ifinfomsg.
func linkMessage(index, flags, mask uint32) []byte {
	b := make([]byte, 4)
	b = wire.NativeEndian.AppendUint32(b, index)
	b = wire.NativeEndian.AppendUint32(b, flags)
	return wire.NativeEndian.AppendUint32(b, mask)
}

func index(name string) (uint32, error) {
	link, err := net.InterfaceByName(name)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return uint32(link.Index), nil
}

func linkUp(name string) change {
	return func() (uint16, uint16, []byte, error) {
		i, err := index(name)
		return unix.RTM_NEWLINK, 0, linkMessage(i, unix.IFF_UP, unix.IFF_UP), err
	}
}

// end is one end of a link.
type end struct {
	name string
	mac  net.HardwareAddr
}

func (e end) attributes() []byte {
	return append(attribute(unix.IFLA_IFNAME, []byte(e.name+"\x00")), attribute(unix.IFLA_ADDRESS, e.mac)...)
}

// addVeth makes a link with two ends, the second one in the namespace of process
// pid.
func addVeth(here, there end, pid int) change {
	const infoPeer = 1 // VETH_INFO_PEER of linux/veth.h
	return func() (uint16, uint16, []byte, error) {
		peer := slices.Concat(linkMessage(0, 0, 0), there.attributes(),
			attribute(unix.IFLA_NET_NS_PID, wire.NativeEndian.AppendUint32(nil, uint32(pid))))
		info := slices.Concat(attribute(unix.IFLA_INFO_KIND, []byte("veth")),
			attribute(unix.IFLA_INFO_DATA, attribute(infoPeer, peer)))
		return unix.RTM_NEWLINK, unix.NLM_F_CREATE | unix.NLM_F_EXCL,
			slices.Concat(linkMessage(0, 0, 0), here.attributes(), attribute(unix.IFLA_LINKINFO, info)), nil
	}
}

// addNeighbour sets the link-layer address of a neighbour, so that the first
// packet need not wait for ARP or NDP.
func addNeighbour(link string, a netip.Addr, mac net.HardwareAddr) change {
	return func() (uint16, uint16, []byte, error) {
		i, err := index(link)
		b := wire.NativeEndian.AppendUint32([]byte{family(a), 0, 0, 0}, i)
		b = append(wire.NativeEndian.AppendUint16(b, unix.NUD_PERMANENT), 0, 0)
		return unix.RTM_NEWNEIGH, unix.NLM_F_CREATE | unix.NLM_F_REPLACE,
			slices.Concat(b, attribute(unix.NDA_DST, a.AsSlice()), attribute(unix.NDA_LLADDR, mac)), err
	}
}

func family(a netip.Addr) byte {
	if a.Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

// addAddress gives a link an address that can be used at once: duplicate
// detection is off, since no other host could have it.
func addAddress(link string, p netip.Prefix) change {
	return func() (uint16, uint16, []byte, error) {
		i, err := index(link)
		b := []byte{family(p.Addr()), byte(p.Bits()), unix.IFA_F_NODAD, unix.RT_SCOPE_UNIVERSE}
		b = wire.NativeEndian.AppendUint32(b, i)
		addr := p.Addr().AsSlice()
		return unix.RTM_NEWADDR, unix.NLM_F_CREATE | unix.NLM_F_EXCL,
			slices.Concat(b, attribute(unix.IFA_LOCAL, addr), attribute(unix.IFA_ADDRESS, addr)), err
	}
}

type route struct {
	to    netip.Prefix
	via   netip.Addr // zero for none
	link  string
	own   bool // packets there have arrived
	first bool // before this host's own addresses
}

func addRoute(r route) change {
	return func() (uint16, uint16, []byte, error) {
		i, err := index(r.link)
		table, scope, kind := byte(unix.RT_TABLE_MAIN), byte(unix.RT_SCOPE_UNIVERSE), byte(unix.RTN_UNICAST)
		switch {
		case r.own:
			table, scope, kind = unix.RT_TABLE_LOCAL, unix.RT_SCOPE_HOST, unix.RTN_LOCAL
		case r.first:
			table, scope = unix.RT_TABLE_LOCAL, unix.RT_SCOPE_LINK
		}
		b := []byte{family(r.to.Addr()), byte(r.to.Bits()), 0, 0, table, unix.RTPROT_BOOT, scope, kind, 0, 0, 0, 0}
		if r.to.Bits() > 0 {
			b = append(b, attribute(unix.RTA_DST, r.to.Addr().AsSlice())...)
		}
		if r.via.IsValid() {
			b = append(b, attribute(unix.RTA_GATEWAY, r.via.AsSlice())...)
		}
		b = append(b, attribute(unix.RTA_OIF, wire.NativeEndian.AppendUint32(nil, i))...)
		return unix.RTM_NEWROUTE, unix.NLM_F_CREATE | unix.NLM_F_EXCL, b, err
	}
}
