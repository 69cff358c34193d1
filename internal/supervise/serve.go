//go:build linux

package supervise

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// serveDirectly receives calls without asking first whether one is there: each poll
// of the listener walks all calls that wait, also those that were answered and whose
// threads did not run yet (seccomp_notify_poll), which with thousands of threads in
// connect(2) costs more than all else. A program whose threads pile up faster than
// they are answered runs into its limits.
func (s *Supervisor) serveDirectly() {
	calls, err := newPoller(int(s.listener.fd))
	if err != nil {
		s.fail(fmt.Errorf("recording system calls: %w", err))
		return
	}
	defer calls.close()
	c, err := s.newCollector()
	if err != nil {
		s.fail(fmt.Errorf("recording system calls: %w", err))
		return
	}
	go c.run(s)
	for last := s.now(); ; {
		if calls.long {
			if err := calls.wait(); err != nil {
				s.fail(fmt.Errorf("waiting for a system call: %w", err))
				break
			}
		}
		n, errno := s.listener.receive()
		now := s.now()
		calls.noteWait(time.Duration(now - last)) // and handled the one before: that is short, and asking for the time is not
		last = now
		if !s.received(n, errno, now) {
			break
		}
		if s.alone {
			if a, err := s.listener.wait(-1, 0); err != nil || a.over {
				s.failIf(err)
				break
			}
		}
	}
	c.close()
}

// collector records the ends of processes.
type collector struct {
	end  int     // an eventfd: written to, it ends the wait for
	ends *poller // processes that end
	done chan struct{}
}

func (s *Supervisor) newCollector() (*collector, error) {
	end, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("eventfd2", err)
	}
	ends, err := newPoller(s.watch.epoll)
	if err != nil {
		unix.Close(end)
		return nil, err
	}
	return &collector{end, ends, make(chan struct{})}, nil
}

// close ends it, and waits for that.
func (c *collector) close() {
	c.ends.end()
	unix.Write(c.end, []byte{1, 0, 0, 0, 0, 0, 0, 0})
	<-c.done
	c.ends.close()
	unix.Close(c.end)
}

func (c *collector) run(s *Supervisor) {
	defer close(c.done)
	var slice timeSlice
	fds := []unix.PollFd{{Fd: int32(c.end), Events: unix.POLLIN}, {Fd: int32(s.watch.epoll), Events: unix.POLLIN}}
	for {
		began := s.now()
		if c.ends.long {
			if err := c.ends.wait(); err != nil {
				if !errors.Is(err, os.ErrDeadlineExceeded) { // which is close
					s.fail(fmt.Errorf("waiting for processes that end: %w", err))
				}
				return
			}
		} else if _, err := unix.Poll(fds, -1); err != nil && err != unix.EINTR {
			s.fail(fmt.Errorf("waiting for processes that end: %w", err))
			return
		} else if fds[0].Revents != 0 {
			return
		}
		now := s.now()
		c.ends.noteWait(time.Duration(now - began))
		s.collect()
		if c.ends.long { // few end
			continue
		}
		slice.renew(now)
		if n, _ := unix.Poll(fds[:1], int(endsTogether/time.Millisecond)); n > 0 { // not a sleep: the end of every run would last as long
			return
		}
	}
}

// servePolling checks before each call whether one is there, because a RECV of a kernel
// before Linux 6.11 does not end when no process is left.
func (s *Supervisor) servePolling() {
	var quiet int64 // until then ended processes are not collected
	for {
		other, patience := s.watch.epoll, int64(-1)
		if rest := quiet - s.now(); rest > 0 {
			other, patience = -1, rest
		}
		a, err := s.listener.wait(other, patience)
		if err != nil || a.over {
			s.failIf(err)
			return
		}
		if a.call {
			n, errno := s.listener.receive()
			if !s.received(n, errno, s.now()) {
				return
			}
		}
		if a.other {
			s.collect()
			quiet = s.now() + int64(endsTogether)
		}
	}
}

// endsTogether is how long the ends of processes are left after the last that
// were looked at: while there are many, the receiver is not woken for each.
const endsTogether = 5 * time.Millisecond

// received handles a call, unless errno says that there is none. False means that no
// more can be received.
func (s *Supervisor) received(n *notification, errno syscall.Errno, now int64) bool {
	s.alone = errno == unix.ENOENT
	switch errno {
	case 0:
		s.handle(n, now)
		s.slice.renew(now)
	case unix.EINTR, unix.ENOENT: // ENOENT: it died before we came to it, or all did
	default:
		s.fail(fmt.Errorf("receiving a system call: %w", errno))
		return false
	}
	return true
}
