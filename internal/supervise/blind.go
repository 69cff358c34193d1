//go:build linux

package supervise

import (
	"syscall"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/event"
)

// unreadable is why a program is not executed that may be executed but not read.
// The kernel moves the memory of its process to the user namespace that can read
// the file (would_dump in fs/exec.c), and from there an ordinary user's
// supervisor may not read it, trace it or look at its descriptors.
const unreadable = "it may be executed but not read, and the kernel would hide what it does from holdfast"

// forbids reports whether the kernel did not let the supervisor look.
func forbids(errno syscall.Errno) bool { return errno == unix.EPERM || errno == unix.EACCES }

// noteUnreadable notes that something of the caller could not be read. A caller that the
// kernel hides gets no answer, but is killed.
func (c *call) noteUnreadable(what string, errno syscall.Errno) {
	c.unknown(what + ": " + unix.ErrnoName(errno))
	c.blind = c.blind || forbids(errno)
}

// refuseUnseen refuses an execution by a process, or of a program, that the
// supervisor cannot see.
func (l *execCall) refuseUnseen() {
	c := &l.call
	if c.blind {
		c.refused, c.refusal, c.layer = true, unix.EPERM, event.LayerPermissions
		return
	}
	if c.refused || l.doomed {
		return
	}
	for i := range l.images {
		if l.images[i].shut {
			c.refused, c.refusal, c.layer = true, unix.EACCES, event.LayerPermissions
			c.add("reason", unreadable)
			return
		}
	}
}

// killHidden kills a process that the kernel hides from the supervisor. What it did since
// its program began is not known, so the record has a gap.
func (s *Supervisor) killHidden(c *call, p *proc) {
	s.recordUnseen(p)
	s.kill(c, p)
}

// recordUnseen records that nothing is known of what p did.
func (s *Supervisor) recordUnseen(p *proc) {
	s.observe(&event.Event{Action: event.RecordDrop, Object: string(event.Syscall), Process: p.eventProcess(), Detail: map[string]string{
		"of": string(event.Syscall), "count": "unknown", "executable": p.now.path,
		"reason": "holdfast ended this process, which the kernel hides from it: its program or the loader cannot be read"}})
}

// isUnreadable reports whether the file at which a path ended may not be read. It asks the
// kernel, which knows access control lists.
func (at *location) isUnreadable() bool {
	if !at.exists || at.dir == nil || len(at.name) == 0 {
		return false
	}
	err := unix.Faccessat(at.dir.fd, string(at.name), unix.R_OK, unix.AT_EACCESS|unix.AT_SYMLINK_NOFOLLOW)
	return forbids(asErrno(err))
}

// loaded looks whether the dynamic loader of a program may be read: its file
// counts for the kernel as the program's own does.
func (s *Supervisor) loaded(l *execCall, im *image) {
	if im.loader == "" {
		return
	}
	s.resolver.locate(l.call.proc, l.call.tid, unix.AT_FDCWD, append(s.path2[:0], im.loader...), true, l.call.now, &s.at)
	im.shut = im.shut || s.at.isUnreadable()
}
