//go:build !linux

package network

import (
	"errors"
	"net"
	"net/netip"
)

// originalDestination is of the kernel of Linux.
func originalDestination(net.Conn) (netip.AddrPort, error) {
	return netip.AddrPort{}, errors.New("connections are not redirected on this system")
}

// descriptors is how many this process may be taken to have.
func descriptors() int { return 1024 }
