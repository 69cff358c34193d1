//go:build linux

package supervise

import (
	"bytes"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/event"
)

// underway is the calls on names that were let go on, by thread, and of which it
// is not known that they are through: a thread that calls once more is. The lock
// of the Supervisor guards it.
type underway map[int]callUnderway

type callUnderway struct {
	nr      int32
	of      *proc
	restart bool // it was stopped in the middle, and the kernel makes it anew
}

func (u underway) add(c *call) { u[c.tid] = callUnderway{nr: c.nr, of: c.proc} }

// end takes the call out that a thread made before n, and says whether n is it again.
func (u underway) end(n *notification) (again bool) {
	last := u[int(n.pid)]
	delete(u, int(n.pid))
	return last.restart && last.nr == n.nr
}

// turns says whether a call can make the path of another lead elsewhere: it moves
// a directory, or makes, moves or takes away a symbolic link. Any other changes
// what stands at a path, and no more.
func (s *Supervisor) turns(c *call) bool {
	is := func(at *spot, kinds ...uint32) bool {
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

// settleUnderway waits until the calls of other threads are through, before c,
// which can make their paths lead elsewhere.
func (s *Supervisor) settleUnderway(c *call) {
	for tid, other := range s.underway {
		if tid == c.tid {
			continue
		}
		if !s.through(tid, other) {
			c.uncompared("a call of process " + strconv.Itoa(other.of.pid) + ", whose path this may lead elsewhere, was still under way")
		}
		delete(s.underway, tid)
	}
}

// throughWait is how long a call is waited for that another would turn elsewhere.
const throughWait = 20 * time.Millisecond

// through says whether a thread is through with a call, which it waits for.
func (s *Supervisor) through(tid int, other callUnderway) bool {
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
