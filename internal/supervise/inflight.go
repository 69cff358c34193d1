//go:build linux

package supervise

import (
	"bytes"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/event"
)

// inFlight is the calls on names that proceed in the kernel, by thread, and may not have
// returned yet: a thread that makes another call has returned from the one before. The lock
// of the Supervisor guards it.
type inFlight map[int]inFlightCall

type inFlightCall struct {
	nr      int32
	of      *proc
	restart bool // it was stopped in the middle, and the kernel restarts it
}

func (u inFlight) add(c *call) { u[c.tid] = inFlightCall{nr: c.nr, of: c.proc} }

// end removes the call that a thread made before n, and reports whether n is it again.
func (u inFlight) end(n *notification) (again bool) {
	last := u[int(n.pid)]
	delete(u, int(n.pid))
	return last.restart && last.nr == n.nr
}

// redirects reports whether a call can make the path of another call lead elsewhere: it
// moves a directory, or makes, moves or removes a symbolic link. Any other call changes
// only what is at its own path.
func (s *Supervisor) redirects(c *call) bool {
	is := func(at *location, kinds ...uint32) bool {
		for _, k := range kinds {
			if at.exists && at.stat.Mode&unix.S_IFMT == k {
				return true
			}
		}
		return false
	}
	switch c.info.action {
	case event.FileSymlink:
		return true
	case event.FileUnlink:
		return is(&s.at, unix.S_IFLNK)
	case event.FileLink:
		return is(&s.to, unix.S_IFLNK)
	case event.FileRename:
		return is(&s.at, unix.S_IFLNK, unix.S_IFDIR) || is(&s.to, unix.S_IFLNK, unix.S_IFDIR)
	}
	return false
}

// awaitInFlight waits until the calls of other threads have returned, before c, which can
// make their paths lead elsewhere.
func (s *Supervisor) awaitInFlight(c *call) {
	for tid, other := range s.inFlight {
		if tid == c.tid {
			continue
		}
		if !s.awaitReturn(tid, other) {
			c.uncompared("a call of process " + strconv.Itoa(other.of.pid) + ", whose path this may lead elsewhere, was still under way")
		}
		delete(s.inFlight, tid)
	}
}

// throughWait is how long redirecting calls wait for one that is in flight.
const throughWait = 20 * time.Millisecond

// awaitReturn waits for a thread to return from a call, and reports whether it did.
func (s *Supervisor) awaitReturn(tid int, other inFlightCall) bool {
	p := other.of
	name := string(append(p.entry(nil, tid), "syscall"...))
	buf := make([]byte, 256)
	for end := time.Now().Add(throughWait); time.Now().Before(end); time.Sleep(20 * time.Microsecond) {
		fd, err := unix.Openat(p.base(), name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err == unix.ENOENT || err == unix.ESRCH {
			return true
		}
		n, err := unix.Read(fd, buf)
		unix.Close(fd)
		// It says "running", or which call it sleeps in.
		nr, _, _ := bytes.Cut(buf[:max(n, 0)], []byte(" "))
		if err == unix.ESRCH || len(nr) > 0 && nr[0] != 'r' && string(nr) != strconv.Itoa(int(other.nr)) {
			return true
		}
		if p.parent != s.table.self && stopOnce(tid) { // a child of ours: see attach
			return true
		}
	}
	return false
}

// stopOnce stops a thread on its way back to its program, and lets it go on.
func stopOnce(tid int) bool {
	if seize(tid) != 0 {
		return false
	}
	interrupt(tid)
	r, errno := nextReport()
	if errno == 0 && !r.ended {
		release(r.pid, r.signal())
	}
	return errno == 0 || errno == unix.ECHILD // it is gone
}
