//go:build linux

package supervise

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
)

// A call that continues is read again by the kernel (seccomp_unotify(2)): another
// thread may have written another path meanwhile, another process may have moved a
// directory of it. So a call that changes a file is compared with what it did, if
// another thread or process could have changed that: its thread is stopped on its way
// back (ptrace(2)), before its program's next instruction, and no other call is
// received until then. A difference is an event that names what was changed.

// finishFile answers a call on names, and records what it did.
func (s *Supervisor) finishFile(c *call, e *event.Event, changes bool) {
	if !changes || c.refused || c.blind || s.config.Uncompared {
		s.finish(c, e)
		return
	}
	if c.again { // it blocks on another process, and would be restarted for each stop
		c.uncompared("it waits for another process, as the open of a fifo does")
		s.finish(c, e)
		s.inFlight.add(c)
		return
	}
	turns := s.redirects(c)
	if turns {
		s.awaitInFlight(c)
	}
	memory := s.at.isMemory()
	if c.shared || turns || memory {
		s.compare(c, e)
		s.sharing = s.sharing || memory && e.Verdict == event.Allowed && e.Error == ""
		return
	}
	s.finish(c, e)
	s.inFlight.add(c)
}

// compare lets c go on, and records it when it is known what it did.
func (s *Supervisor) compare(c *call, e *event.Event) {
	if errno, _ := s.attach(c); errno != 0 {
		if errno != unix.ECHILD && s.listener.valid(c.id) { // no child of ours, which is the boundary's own, nor dead
			c.uncompared("its thread cannot be traced: " + unix.ErrnoName(errno))
		}
		s.finish(c, e)
		return
	}
	f := s.expect(c)
	defer f.close()
	answered := s.answer(c)
	if !c.judged { // else beside the receiver, which is to receive nothing meanwhile
		s.mu.Unlock() // a file system may take its time
	}
	r, errno := nextReport()
	if !c.judged {
		s.mu.Lock()
	}
	e.Process = c.proc.eventProcess()
	if errno == unix.ECHILD { // another thread of it executed, and took its number
		r.ended, errno = true, 0
	}
	if errno != 0 {
		s.fail(fmt.Errorf("comparing what a call did: %w", errno))
		return
	}
	var other *event.Event
	if r.ended || !answered {
		e.Verdict, e.Layer, e.Rule, e.Error = event.Unknown, "", "", ""
		c.unknown("its thread ended before the call did")
	} else {
		result, errno := returnValue(r.pid)
		if errno != 0 || restarts(result) {
			release(r.pid, r.signal())
			s.inFlight[c.tid] = inFlightCall{c.nr, c.proc, true}
			return // it is restarted, and reported again
		}
		other = s.compareResult(c, e, f, result)
	}
	if !r.ended {
		release(r.pid, r.signal())
	}
	c.notePrivate(e)
	e.Detail = c.detail
	s.observe(e)
	if other != nil {
		other.Process = e.Process
		s.observe(other)
	}
}

// signal is the signal with which a stopped thread is resumed.
func (r traceReport) signal() int {
	if r.event != 0 { // a stop of ours, or of its whole process, which resumes on its own
		return 0
	}
	return r.sig
}

// restarts reports whether the kernel restarts a call with this result: the ERESTART
// errors (include/linux/errno.h), which programs never see.
func restarts(result int64) bool { return result <= -512 && result >= -516 }

// compareResult puts the result of the call into e, and returns the event of what it did if
// that differs from e. The caller is stopped.
func (s *Supervisor) compareResult(c *call, e *event.Event, f *foreseen, result int64) *event.Event {
	if result < 0 {
		s.correctError(e, c, unix.ErrnoName(syscall.Errno(-result)))
		return nil
	}
	recorded := cmp.Or(e.Resolved, e.Object)
	if c.info.shape == shapeOpen {
		at, fits := s.openedAt(c, f, int(result))
		switch {
		case fits:
		case at == "":
			c.unknown("which file was opened: its descriptor is gone")
			return nil
		case f.lost:
			e.Resolved = at
		default:
			return s.otherEvent(c, e, recorded, at)
		}
		s.correctError(e, c, "")
		return nil
	}
	switch s.sign(c, f) {
	case signMissing:
		return s.otherEvent(c, e, recorded, s.readAgain(c))
	case signNone:
		c.unknown("whether it was this file: nothing of it had to change")
	}
	if !f.lost {
		s.correctError(e, c, "")
	}
	return nil
}

// correctError corrects what was foreseen by the error that the call returned, "" for
// none.
func (s *Supervisor) correctError(e *event.Event, c *call, errno string) {
	switch {
	case errno == e.Error:
	case errno == "":
		e.Verdict, e.Layer, e.Rule, e.Error = event.Allowed, "", "", ""
	case errno == "EACCES" || errno == "EPERM" || errno == "EROFS":
		if e.Error = errno; e.Verdict != event.Denied {
			e.Verdict, e.Layer, e.Rule = event.Denied, "", ""
			c.unknown("what refused it: it was expected to be allowed")
		}
	default:
		e.Error = errno
	}
}

// otherEvent is the event of what a call did other than e says.
func (s *Supervisor) otherEvent(c *call, e *event.Event, recorded, at string) *event.Event {
	o := event.Event{Action: e.Action, Object: at, Verdict: event.Allowed, Detail: map[string]string{"instead_of": recorded}}
	for _, key := range []string{"how", "mode", "owner"} {
		if v := c.detail[key]; v != "" {
			o.Detail[key] = v
		}
	}
	if c.info.shape != shapeOpen {
		o.Detail["unknown"] = "object: it is what its path says afterwards"
		if at == "" {
			o.Detail["unknown"] = "object: its path cannot be read afterwards"
		}
	}
	if t := s.resolver.places.treeFor(at); t != nil && t.Access == policy.Copy {
		o.Detail[event.DetailKept] = event.KeptPrivate
	}
	e.Verdict, e.Layer, e.Rule, e.Error = event.Unknown, "", "", ""
	c.add("came_to", cmp.Or(at, "another file"))
	return &o
}

// openedAt returns what a descriptor that c opened is open on, "" if it is gone, and
// whether that is what was foreseen.
func (s *Supervisor) openedAt(c *call, f *foreseen, fd int) (at string, fits bool) {
	r := s.resolver
	r.name = fmt.Appendf(c.proc.entry(r.name[:0], c.tid), "fd/%d\x00", fd)
	text, errno := r.read(c.proc, c.tid)
	if errno != 0 {
		return "", false
	}
	if string(text) == f.at.path && !bytes.HasSuffix(text, deleted) {
		return f.at.path, true
	}
	at = string(text)
	var st unix.Stat_t
	if fstatat(c.proc.base(), r.name, &st, 0) != 0 {
		return at, at == f.at.path
	}
	if st.Nlink == 0 {
		at = string(bytes.TrimSuffix(text, deleted))
	}
	if c.flags&unix.O_TMPFILE == unix.O_TMPFILE {
		return at, strings.HasPrefix(at, f.at.path+"/")
	}
	return at, at == f.at.path || f.at.had && sameFile(&st, &f.at.was)
}

// readAgain reads the path of a call once more: where it leads by now.
func (s *Supervisor) readAgain(c *call) string {
	var again event.Event
	var at location
	if !s.find(c, c.info.dir, c.info.path, s.path[:], false, &at, &again) {
		return ""
	}
	return at.absolutePath()
}

func sameFile(a, b *unix.Stat_t) bool { return a.Ino == b.Ino && a.Dev == b.Dev }
