//go:build linux

package supervise

import (
	"bytes"
	"cmp"
	"strconv"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/event"
)

// lookup is a call on one path that is looked up and nothing else.
func lookup(dir, path, flags int8) callInfo {
	return newCall(event.FileLookup, wantLook, dir, path, flags, none).withShape(shapeLook)
}

// withMode adds the argument with what access(2) asks for.
func (c callInfo) withMode(mode int8) callInfo { c.arg = mode; return c }

// withWant is c for a call that needs w of what it finds.
func (c callInfo) withWant(w want) callInfo { c.want = w; return c }

// lookupCalls are the look-ups that every architecture has and the filter hands
// over where no tripwire sees them: all but stat(2) and its like, which some
// programs call for every file.
func lookupCalls() map[uint32]callInfo {
	return map[uint32]callInfo{
		unix.SYS_FACCESSAT:         lookup(0, 1, none).withMode(2),
		unix.SYS_FACCESSAT2:        lookup(0, 1, 3).withMode(2),
		unix.SYS_READLINKAT:        lookup(0, 1, none).nofollow(),
		unix.SYS_CHDIR:             lookup(none, 0, none).withWant(wantExec),
		unix.SYS_STATFS:            lookup(none, 0, none),
		unix.SYS_GETXATTR:          lookup(none, 0, none),
		unix.SYS_LGETXATTR:         lookup(none, 0, none).nofollow(),
		unix.SYS_GETXATTRAT:        lookup(0, 1, 2),
		unix.SYS_LISTXATTR:         lookup(none, 0, none),
		unix.SYS_LLISTXATTR:        lookup(none, 0, none).nofollow(),
		unix.SYS_LISTXATTRAT:       lookup(0, 1, 2),
		unix.SYS_INOTIFY_ADD_WATCH: lookup(none, 1, none).withWant(wantRead),
		unix.SYS_UTIMENSAT:         lookup(0, 1, 3),
	}
}

// looks reports whether a call is an event only where it is refused: a look-up, and
// at the level standard an open for reading.
func (s *Supervisor) looks(c *call) bool {
	switch c.info.shape {
	case shapeLook:
		return !c.refused
	case shapeOpen:
		const changes = unix.O_WRONLY | unix.O_RDWR | unix.O_CREAT | unix.O_TRUNC
		return s.config.Level == Standard && !c.refused && c.info.flags >= 0 && c.arg(c.info.flags)&changes == 0
	}
	return false
}

// handleLookup lets a look-up or an open for reading continue, and records it if it will be
// refused, or if that cannot be found out: a path that is hard to follow must not be a
// way to read past the record.
func (s *Supervisor) handleLookup(c *call) {
	e := event.Event{Action: event.FileLookup, Verdict: event.Allowed}
	w, follow := s.lookupIntent(c, &e)
	dir := c.dirfd(c.info.dir)
	text, whole, errno := s.memory.text(c.tid, c.arg(c.info.path), s.path[:])
	switch {
	case !whole:
		e.Object = string(text)
		s.noteUnread(c, &e, "path", errno)
	case s.inReach(c, dir, text, w):
	case s.findTarget(c, dir, text, s.path[:], follow, &s.at, &e):
		s.foreseeRefusal(c, w, &e)
	}
	if e.Verdict == event.Allowed {
		s.answer(c)
		return
	}
	if !c.proc.known {
		s.recordProcess(c.proc, nil)
	}
	c.add("call", s.name(uint32(c.nr)))
	if c.tid != c.proc.pid {
		c.add("thread", strconv.Itoa(c.tid))
	}
	var from event.Process
	if len(e.Object) > 0 && e.Object[0] != '/' && dir == unix.AT_FDCWD {
		s.workingDirectory(c, &from)
	}
	s.reply(c, &e)
	e.Process.Cwd = from.Cwd
	e.Sensor = event.Syscall
	s.lookups.add(e)
	if c.blind {
		s.killHidden(c, c.proc)
	}
}

// lookupIntent returns what a call needs of what it finds, and whether it follows a link.
func (s *Supervisor) lookupIntent(c *call, e *event.Event) (w want, follow bool) {
	if c.info.shape == shapeOpen {
		w, follow, _ = s.openIntent(c, e)
		return w, follow
	}
	flags := c.arg(c.info.flags)
	w, follow = c.info.want, !c.info.stay && flags&unix.AT_SYMLINK_NOFOLLOW == 0
	switch {
	case c.nr == unix.SYS_INOTIFY_ADD_WATCH:
		follow = c.args[2]&unix.IN_DONT_FOLLOW == 0
	case c.info.arg >= 0 && c.arg(c.info.arg)&unix.R_OK != 0: // access(2)
		w = wantRead
	}
	return w, follow
}

// foreseeRefusal foresees what becomes of a call whose path was found, and puts it into
// the event where it is a refusal.
func (s *Supervisor) foreseeRefusal(c *call, w want, e *event.Event) {
	o := s.foresee(c, &s.at, w, false)
	switch {
	case o.verdict == event.Allowed:
		return
	case w == wantLook && o.layer == event.LayerHidden && s.at.exists: // what is hidden is there, and may be known to be
		return
	case o.layer == event.LayerPermissions && c.info.arg >= 0 && c.info.shape == shapeLook: // access(2) asks, and no is an answer
		return
	}
	e.Verdict, e.Layer, e.Rule, e.Error = o.verdict, o.layer, o.rule, o.errno
	e.Object, e.Resolved = string(s.at.asked), s.at.resolved()
	if e.Layer != event.LayerView && c.info.shape == shapeOpen {
		e.Action = event.FileOpen
	}
	if e.Layer == event.LayerView && (s.isExpected() || s.config.Ordinary != nil && s.config.Ordinary(*e, s.at.missing())) {
		e.Verdict = event.Allowed
	}
}

// inReach reports whether a name without a directory is a file that the caller can
// read. It is looked up where the caller's look-up starts, by a supervisor that has no
// more rights than the caller, and it must not be a link, which could lead anywhere.
// This costs less than to ask where that place is. The cover of something hidden is
// empty.
func (s *Supervisor) inReach(c *call, dirfd int, text []byte, w want) bool {
	if s.privileged || w != wantRead || len(text) == 0 || bytes.IndexByte(text, '/') >= 0 {
		return false
	}
	r := s.resolver
	r.name = c.proc.entry(r.name[:0], c.tid)
	switch {
	case dirfd == unix.AT_FDCWD:
		r.name = append(r.name, "cwd/"...)
	case dirfd < 0:
		return false
	default:
		r.name = append(strconv.AppendInt(append(r.name, "fd/"...), int64(dirfd), 10), '/')
	}
	r.name = append(append(r.name, text...), 0)
	st := &s.at.stat
	return fstatat(c.proc.base(), r.name, st, unix.AT_SYMLINK_NOFOLLOW) == 0 &&
		st.Mode&unix.S_IFMT == unix.S_IFREG && st.Size > 0 && c.proc.creds.may(st, bitsOf[wantRead])
}

// isExpected reports whether the path found is one that programs look for unprompted. The
// path that it leads to decides: the path asked for may be a link made inside.
func (s *Supervisor) isExpected() bool {
	return s.quiet.contains(cmp.Or(s.at.resolved(), string(s.at.asked)))
}

// expectations are paths that programs look for unprompted, with all below them.
type expectations struct {
	paths   map[string]bool
	longest int // bytes of the longest
}

func newExpectations(paths []string) expectations {
	x := expectations{paths: map[string]bool{}}
	for _, p := range paths {
		x.paths[p] = true
		x.longest = max(x.longest, len(p))
	}
	return x
}

// contains reports whether a path is one of them or below one. It checks from the front,
// and no further than the longest: a path may have two thousand names.
func (x *expectations) contains(path string) bool {
	for n := 1; n <= len(path) && n <= x.longest; n++ {
		if (n == len(path) || path[n] == '/') && x.paths[path[:n]] {
			return true
		}
	}
	return false
}
