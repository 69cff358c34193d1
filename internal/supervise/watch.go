//go:build linux

package supervise

import (
	"errors"
	"fmt"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// watch knows which processes have ended. Its epoll descriptor is readable when
// there are some; no goroutine is woken for each, see endsTogether. The lock of its
// Supervisor guards it.
type watch struct {
	epoll  int
	limit  int
	reap   bool // the kernel says how a process ended, once it is reaped
	procs  map[int32]*proc
	next   int32
	events [64]unix.EpollEvent
}

func newWatch() (*watch, error) {
	w := &watch{procs: map[int32]*proc{}, limit: 256, reap: linux6(15)} // PIDFD_INFO_EXIT
	var err error
	if w.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("watching processes: %w", err)
	}
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) == nil {
		w.limit = int(min(limit.Cur, 1<<20)) / 4 // two descriptors a process, and half for everybody else
	}
	return w, nil
}

// linux6 reports whether the running kernel is at least Linux 6.minor. It is for what
// cannot be found out by trying.
func linux6(minor int) bool {
	a, b := kernel()
	return a > 6 || a == 6 && b >= minor
}

// kernel is the version of the running kernel, zeros where it cannot be read.
var kernel = sync.OnceValues(func() (major, minor int) {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return 0, 0
	}
	if _, err := fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &major, &minor); err != nil {
		return 0, 0
	}
	return major, minor
})

// room reports whether one more process may have descriptors.
func (w *watch) room() bool { return len(w.procs) < w.limit }

// add watches p, which has a pidfd. Where the kernel keeps how it ended, only
// its being reaped matters, which epoll reports unasked (EPOLLHUP).
func (w *watch) add(p *proc) {
	e := unix.EpollEvent{}
	if !w.reap {
		e.Events = unix.EPOLLIN | unix.EPOLLONESHOT
	}
	w.next = max(w.next+1, 1) // 0 is for those that are not watched
	p.id, e.Fd = w.next, w.next
	w.procs[p.id] = p
	if unix.EpollCtl(w.epoll, unix.EPOLL_CTL_ADD, p.pidfd, &e) != nil {
		delete(w.procs, p.id)
	}
}

// forget stops watching p, whose pidfd is closed. With that epoll has lost it, or
// will, when a program that is being started by us has closed its copy.
func (w *watch) forget(p *proc) {
	if w.procs[p.id] == p {
		delete(w.procs, p.id)
	}
}

// collect calls ended, which removes it, for every process that has ended. It
// waits for none.
func (w *watch) collect(ended func(*proc)) error {
	for {
		n, err := unix.EpollWait(w.epoll, w.events[:], 0)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("looking for processes that have ended: %w", err)
		}
		for _, e := range w.events[:n] {
			if p := w.procs[e.Fd]; p != nil {
				ended(p)
			}
		}
		if n < len(w.events) {
			return nil
		}
	}
}

func (w *watch) close() { unix.Close(w.epoll) }

// status says how a process ended whose pidfd reports it.
func (w *watch) status(p *proc) (syscall.WaitStatus, bool) {
	if p.pidfd < 0 {
		return 0, false
	}
	return exitCode(p.pidfd)
}
