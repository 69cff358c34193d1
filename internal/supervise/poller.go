//go:build linux

package supervise

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// poller waits for a descriptor by the runtime's poller. To wait in a system call of
// one's own is cheaper to be woken from, but keeps a processor of the runtime, and then
// its monitor looks every 20 µs, some fifty times, whether to take that away (sysmon in
// runtime/proc.go, Go 1.26): where calls are rare, half of the supervisor's time. So after
// a long wait the next one is here.
//
// Between waits the descriptor wakes no goroutine.
type poller struct {
	fd    int // waited for
	epoll int // has fd, for one event at a time; the descriptor of file
	file  *os.File
	raw   syscall.RawConn
	long  bool // the last wait was
}

// longWait is how long a wait is after which the next one is better here. Programs that start
// one after the other are one or two milliseconds apart: there a waking by the runtime's
// poller takes longer than all of what is done for one.
const longWait = 3 * time.Millisecond

// newPoller leaves fd to its owner.
func newPoller(fd int) (*poller, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	if err = unix.SetNonblock(epoll, true); err != nil { // else the runtime does not poll it
		unix.Close(epoll)
		return nil, os.NewSyscallError("fcntl", err)
	}
	c := &poller{fd: fd, epoll: epoll, file: os.NewFile(uintptr(epoll), "epoll")}
	if err = unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: unix.EPOLLONESHOT}); err == nil {
		c.raw, err = c.file.SyscallConn()
	}
	if err == nil {
		err = c.file.SetReadDeadline(time.Time{}) // fails where it is not polled
	}
	if err != nil {
		c.file.Close()
		return nil, fmt.Errorf("waiting for a descriptor: %w", err)
	}
	return c, nil
}

// wait returns when the descriptor is readable or has hung up; with an error once end
// was called. One goroutine at a time may wait.
func (c *poller) wait() error {
	if err := unix.EpollCtl(c.epoll, unix.EPOLL_CTL_MOD, c.fd, &unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLONESHOT}); err != nil {
		return os.NewSyscallError("epoll_ctl", err)
	}
	var events [1]unix.EpollEvent
	return c.raw.Read(func(epoll uintptr) bool {
		n, err := unix.EpollWait(int(epoll), events[:], 0)
		return n > 0 || err != nil && err != unix.EINTR
	})
}

// noteWait notes how long the last wait was.
func (c *poller) noteWait(d time.Duration) { c.long = d > longWait }

// end ends every wait.
func (c *poller) end() { c.file.SetReadDeadline(time.Unix(1, 0)) }

func (c *poller) close() { c.file.Close() }
