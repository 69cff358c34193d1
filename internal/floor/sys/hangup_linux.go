package sys

import (
	"os"

	"golang.org/x/sys/unix"
)

// Hungup reports whether the other end of a pipe or socket is closed for writing,
// also while there is something left to read (poll(2)). It does not wait. What is
// neither, and what cannot be asked, has not hung up.
func Hungup(f *os.File) bool {
	conn, err := f.SyscallConn()
	if err != nil {
		return false
	}
	gone := false
	conn.Control(func(fd uintptr) { // an error leaves gone as it is
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		n, err := unix.Poll(p, 0)
		gone = err == nil && n > 0 && p[0].Revents&(unix.POLLHUP|unix.POLLRDHUP|unix.POLLERR) != 0
	})
	return gone
}
