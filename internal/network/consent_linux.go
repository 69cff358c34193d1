package network

import (
	"errors"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// socketHungUp asks the kernel whether the peer has closed, without reading and
// beside whoever reads.
func socketHungUp(c net.Conn) bool {
	s, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return true // it is closed
	}
	gone := false
	err = raw.Control(func(fd uintptr) {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		n, err := unix.Poll(p, 0)
		gone = n > 0 && !errors.Is(err, unix.EINTR)
	})
	return gone || err != nil
}
