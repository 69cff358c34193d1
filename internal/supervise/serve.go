//go:build linux

package supervise

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// serveDirectly receives calls without asking first whether one is there: each poll
// of the listener walks all calls that wait, also those that were answered and whose
// threads did not run yet (seccomp_notify_poll), which with thousands of threads in
// connect(2) costs more than all else. A program whose threads pile up faster than
// they are answered runs into its limits.
func (s *Supervisor) serveDirectly() {
	end, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		s.fail(fmt.Errorf("recording system calls: %w", os.NewSyscallError("eventfd2", err)))
		return
	}
	defer unix.Close(end)
	collected := make(chan struct{})
	go func() {
		defer close(collected)
		s.collectUntil(end)
	}()
	for s.receive() {
		if s.alone {
			if a, err := s.listener.wait(-1, 0); err != nil || a.over {
				s.failIf(err)
				break
			}
		}
	}
	unix.Write(end, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	<-collected
}

// collectUntil records the ends of processes until the eventfd end is written to.
func (s *Supervisor) collectUntil(end int) {
	var slice timeSlice
	fds := []unix.PollFd{{Fd: int32(end), Events: unix.POLLIN}, {Fd: int32(s.watch.epoll), Events: unix.POLLIN}}
	for {
		_, err := unix.Poll(fds, -1)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			s.fail(fmt.Errorf("waiting for processes that end: %w", err))
			return
		case fds[0].Revents != 0:
			return
		}
		s.collect()
		slice.renew()
		if n, _ := unix.Poll(fds[:1], int(endsTogether/time.Millisecond)); n > 0 { // not a sleep: the end of every run would last as long
			return
		}
	}
}
