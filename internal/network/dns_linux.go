package network

import (
	"net"

	"golang.org/x/sys/unix"
)

// answerFromAny lets a socket send from addresses that no interface has. With
// IPv4 the route that makes every address a local one is enough; IPv6 wants the
// address on an interface (RFC 3542, 6.1), or IPV6_FREEBIND, which needs no
// privilege.
func answerFromAny(c *net.UDPConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_FREEBIND, 1)
	})
	if err != nil {
		return err
	}
	return failed
}
