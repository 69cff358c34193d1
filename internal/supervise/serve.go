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
	calls, err := newCalm(int(s.listener.fd))
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
	for s.receiveFrom(calls) {
		if s.alone {
			if a, err := s.listener.wait(-1, 0); err != nil || a.over {
				s.failIf(err)
				break
			}
		}
	}
	c.close()
}

// receiveFrom takes one call. False means that no more can be received.
func (s *Supervisor) receiveFrom(calls *calm) bool {
	began := time.Now()
	if calls.long {
		if err := calls.wait(); err != nil {
			s.fail(fmt.Errorf("waiting for a system call: %w", err))
			return false
		}
	}
	n, errno := s.listener.receive()
	calls.waited(began)
	return s.received(n, errno)
}

// collector records the ends of processes.
type collector struct {
	end  int   // an eventfd: written to, it ends the wait for
	ends *calm // processes that end
	done chan struct{}
}

func (s *Supervisor) newCollector() (*collector, error) {
	end, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("eventfd2", err)
	}
	ends, err := newCalm(s.watch.epoll)
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
		began := time.Now()
		if c.ends.long {
			if c.ends.wait() != nil {
				return
			}
		} else if _, err := unix.Poll(fds, -1); err != nil && err != unix.EINTR {
			s.fail(fmt.Errorf("waiting for processes that end: %w", err))
			return
		} else if fds[0].Revents != 0 {
			return
		}
		c.ends.waited(began)
		s.collect()
		if c.ends.long { // few end
			continue
		}
		slice.renew()
		if n, _ := unix.Poll(fds[:1], int(endsTogether/time.Millisecond)); n > 0 { // not a sleep: the end of every run would last as long
			return
		}
	}
}
