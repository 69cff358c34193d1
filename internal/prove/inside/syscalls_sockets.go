//go:build linux

package inside

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// netlinks opens every protocol except the one that lists interfaces, which
// runtimes need to know their own loopback.
func netlinks(p *Probe) {
	for protocol := range 23 {
		if protocol == unix.NETLINK_ROUTE {
			continue
		}
		p.Try(fmt.Sprintf("netlink protocol %d", protocol), func() error {
			return closeOpened(unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, protocol))
		})
	}
}

func rawSockets(p *Probe) {
	for _, s := range []struct {
		name                   string
		family, kind, protocol int
	}{
		{"raw ICMP", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP},
		{"raw IP", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_RAW},
		{"raw TCP", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_TCP},
		{"raw ICMP of version 6", unix.AF_INET6, unix.SOCK_RAW, unix.IPPROTO_ICMPV6},
		{"packets of the old kind", unix.AF_INET, unix.SOCK_PACKET, 0x0300},
		{"packets with headers", unix.AF_PACKET, unix.SOCK_RAW, 0x0300},
		{"packets without headers", unix.AF_PACKET, unix.SOCK_DGRAM, 0x0300},
		{"SCTP", unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP},
		{"DCCP", unix.AF_INET, unix.SOCK_DCCP, unix.IPPROTO_DCCP},
	} {
		p.Try(s.name, func() error {
			return closeOpened(unix.Socket(s.family, s.kind|unix.SOCK_CLOEXEC, s.protocol))
		})
	}
}

func closeOpened(fd int, err error) error {
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// familyPairs makes pairs of sockets of families that are not needed here.
func familyPairs(p *Probe) {
	for _, family := range []int{unix.AF_TIPC, unix.AF_VSOCK, unix.AF_ALG, unix.AF_PACKET, unix.AF_NETLINK, unix.AF_BLUETOOTH, unix.AF_RDS, unix.AF_SMC} {
		for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_SEQPACKET} {
			p.Try(fmt.Sprintf("pair of family %d, type %d", family, kind), func() error {
				pair, err := unix.Socketpair(family, kind|unix.SOCK_CLOEXEC, 0)
				if err == nil {
					unix.Close(pair[0])
					unix.Close(pair[1])
				}
				return err
			})
		}
	}
}
