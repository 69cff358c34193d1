package network

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"

	"golang.org/x/sys/unix"
)

// SO_ORIGINAL_DST and IP6T_SO_ORIGINAL_DST (linux/netfilter_ipv4.h and
// linux/netfilter_ipv6/ip6_tables.h).
const originalDst = 80

// originalDestination is where a connection was going before the kernel redirected it
// to its listener. A connection made directly to the listener has none.
func originalDestination(c net.Conn) (netip.AddrPort, error) {
	local, err := localAddress(c)
	if err != nil {
		return netip.AddrPort{}, err
	}
	t, ok := c.(*net.TCPConn)
	if !ok {
		return netip.AddrPort{}, fmt.Errorf("a %T has no socket options", c)
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return netip.AddrPort{}, err
	}
	var addr netip.AddrPort
	var failure error
	err = raw.Control(func(fd uintptr) {
		if local.Addr().Is4() {
			addr, failure = original4(int(fd))
		} else {
			addr, failure = original6(int(fd))
		}
	})
	if err != nil {
		return netip.AddrPort{}, err
	}
	return addr, failure
}

// original4 reads a struct sockaddr_in into a structure of at least its size that
// x/sys has a call for: family, port and address in network order.
func original4(fd int) (netip.AddrPort, error) {
	m, err := unix.GetsockoptIPv6Mreq(fd, unix.SOL_IP, originalDst)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("reading the original destination: %w", err)
	}
	b := m.Multiaddr
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])), binary.BigEndian.Uint16(b[2:4])), nil
}

// original6 is original4 for a struct sockaddr_in6.
func original6(fd int) (netip.AddrPort, error) {
	m, err := unix.GetsockoptIPv6MTUInfo(fd, unix.SOL_IPV6, originalDst)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("reading the original destination: %w", err)
	}
	var port [2]byte
	binary.NativeEndian.PutUint16(port[:], m.Addr.Port) // the field holds network order
	return netip.AddrPortFrom(netip.AddrFrom16(m.Addr.Addr).Unmap(), binary.BigEndian.Uint16(port[:])), nil
}

// descriptors is how many this process may have open.
func descriptors() int {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil {
		return 1024
	}
	return int(min(l.Cur, 1<<20))
}
