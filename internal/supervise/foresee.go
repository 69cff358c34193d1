//go:build linux

package supervise

import (
	"cmp"
	"strings"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/event"
)

// foresee says what a call will come to, from where its path stands in the view
// and from owner and mode. It knows of no access control list and no Landlock,
// and the call may find something else than it did: it is a record, and decides
// nothing.
func (s *Supervisor) foresee(c *call, at *spot, w want, creates bool) outcome {
	if at.dir != nil && at.tree != nil && len(at.name) > 0 && !c.proc.creds.may(&at.dir.stat, 1) {
		return denied(event.LayerPermissions, "", "EACCES")
	}
	o, decided := s.placed(at, w, creates)
	if !decided {
		o = s.permitted(c, at, w, creates)
	}
	if w == wantRemove && o.layer != event.LayerPermissions && at.exists && s.resolver.top(at) {
		return immovable(at, o)
	}
	return o
}

// immovable is o for what something is mounted at: what is protected, and the
// directories that lead to it.
func immovable(at *spot, o outcome) outcome {
	if o.verdict != event.Denied {
		o = denied(event.LayerProtected, at.tree.Rule, "")
		if at.dir.tree == nil {
			o.layer = event.LayerView
		}
	}
	o.errno = "EBUSY"
	return o
}

// kept says of what is missing in a private tree that it was kept from it. Its
// look-up by the caller may come after ours, and then the kernel remembers that
// it is missing and no tripwire is asked: this event is the only one.
func (s *Supervisor) kept(at *spot, w want, creates bool) bool {
	if s.config.Kept == nil || at.exists || creates || w == wantCreate || at.tree == nil || at.tree.Access != Private {
		return false
	}
	return s.config.Kept(cmp.Or(at.resolved(), string(at.asked)))
}

// withheld makes a denial of the event when its object was kept from the caller.
func withheld(e *event.Event, kept bool) {
	if kept && e.Verdict == event.Allowed {
		e.Verdict, e.Layer, e.Error = event.Denied, event.LayerView, cmp.Or(e.Error, "ENOENT")
	}
}

// placed judges by the view alone.
func (s *Supervisor) placed(at *spot, w want, creates bool) (outcome, bool) {
	if at.magic {
		return outcome{}, false
	}
	if at.errno == unix.EACCES {
		return denied(event.LayerPermissions, "", "EACCES"), true
	}
	if at.tree == nil {
		return outside(at, w, creates)
	}
	if at.errno != 0 && at.tree.Access != Hidden {
		return allowed(unix.ErrnoName(at.errno)), true
	}
	kind := at.stat.Mode & unix.S_IFMT
	special := at.exists && kind != unix.S_IFREG && kind != unix.S_IFDIR && kind != unix.S_IFLNK
	if at.dir != nil && (w == wantCreate || creates) && at.exists {
		creates = false
		if w == wantCreate {
			return allowed("EEXIST"), at.tree.Access == Read || at.tree.Access == Protected
		}
	}
	if o, decided := inTree(at.tree, w, creates, at.exists, special); decided {
		return o, true
	}
	// The user mounted it like that: below a writable tree the view keeps what it finds.
	if at.dir != nil && at.dir.fixed && at.tree == at.dir.tree && w.changes() && !special && (at.exists || creates || w == wantCreate) {
		return denied(event.LayerReadonly, at.tree.Rule, "EROFS"), true
	}
	return outcome{}, false
}

// outside judges a path that no tree of the view has.
func outside(at *spot, w want, creates bool) (outcome, bool) {
	if at.errno != 0 && (at.errno != unix.ENOENT && at.errno != unix.ENOTDIR || at.dir == nil && !strings.HasPrefix(at.place, "/")) {
		return allowed(unix.ErrnoName(at.errno)), true // it is nowhere at all, as is an empty path
	}
	if at.above {
		switch {
		case !w.changes():
			return outcome{}, false
		case w == wantCreate:
			return denied(event.LayerView, "", "EEXIST"), true
		}
		return denied(event.LayerView, "", "EROFS"), true
	}
	if at.dir != nil && at.dir.above && (w == wantCreate || creates) {
		return denied(event.LayerView, "", "EROFS"), true
	}
	return denied(event.LayerView, "", "ENOENT"), true
}

// permitted judges by owner and mode bits.
func (s *Supervisor) permitted(c *call, at *spot, w want, creates bool) outcome {
	if at.errno != 0 {
		return allowed(unix.ErrnoName(at.errno))
	}
	cr := &c.proc.creds
	switch w {
	case wantCreate:
		if at.exists {
			return allowed("EEXIST")
		}
		return cr.inDirectory(at, nil)
	case wantRemove:
		if !at.exists {
			return allowed("ENOENT")
		}
		return cr.inDirectory(at, &at.stat)
	}
	if !at.exists {
		if !creates {
			return allowed("ENOENT")
		}
		return cr.inDirectory(at, nil)
	}
	if c.info.action == event.FileTruncate && at.stat.Mode&unix.S_IFMT == unix.S_IFDIR {
		return allowed("EISDIR")
	}
	if w == wantOwner {
		if cr.uid == at.stat.Uid || cr.owner {
			return allowed("")
		}
		return denied(event.LayerPermissions, "", "EPERM")
	}
	if c.info.shape == shapeOpen {
		if c.flags&unix.O_PATH != 0 {
			return allowed("")
		}
		if o, decided := opened(c, at, creates); decided {
			return o
		}
	}
	if !cr.may(&at.stat, bitsOf[w]) {
		return denied(event.LayerPermissions, "", "EACCES")
	}
	return allowed("")
}

// bitsOf says which mode bits a call needs.
var bitsOf = [...]uint32{wantRead: 4, wantWrite: 2, wantBoth: 6, wantExec: 1, wantReach: 2, wantOwner: 0}

// opened has the errors of open that come before the mode bits.
func opened(c *call, at *spot, creates bool) (outcome, bool) {
	kind := at.stat.Mode & unix.S_IFMT
	switch {
	case creates && c.flags&unix.O_EXCL != 0:
		return allowed("EEXIST"), true
	case kind == unix.S_IFLNK:
		return allowed("ELOOP"), true
	case kind != unix.S_IFDIR && c.flags&unix.O_DIRECTORY != 0:
		return allowed("ENOTDIR"), true
	case kind == unix.S_IFDIR && c.flags&unix.O_TMPFILE == unix.O_TMPFILE:
		if !c.proc.creds.may(&at.stat, 3) {
			return denied(event.LayerPermissions, "", "EACCES"), true
		}
		return allowed(""), true
	case kind == unix.S_IFDIR && c.flags&(unix.O_ACCMODE|unix.O_CREAT) != 0:
		return allowed("EISDIR"), true
	}
	return outcome{}, false
}

// inDirectory judges making a name, or taking away the one that is old.
func (c *creds) inDirectory(at *spot, old *unix.Stat_t) outcome {
	if at.dir == nil || len(at.name) == 0 {
		return outcome{verdict: event.Allowed}
	}
	dir := &at.dir.stat
	if !c.may(dir, 3) {
		return denied(event.LayerPermissions, "", "EACCES")
	}
	if old != nil && dir.Mode&unix.S_ISVTX != 0 && c.uid != dir.Uid && c.uid != old.Uid && !c.owner {
		return denied(event.LayerPermissions, "", "EPERM")
	}
	return allowed("")
}

// disturbs says whether a call may change where other paths lead. What is
// remembered of a directory must go when it, or a link to one, is moved or
// taken away.
func (s *Supervisor) disturbs(c *call, at *spot) bool {
	if c.info.want != wantRemove && c.info.shape != shapeTwo || !at.exists {
		return false
	}
	switch at.stat.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		return true
	case unix.S_IFDIR:
		if c.info.action == event.FileRename {
			return true
		}
		for key, d := range s.resolver.dirs { // an empty one: only the texts that lead to itself
			if d.stat.Ino == at.stat.Ino && d.stat.Dev == at.stat.Dev {
				s.resolver.forget([]byte(key))
			}
		}
	}
	return false
}
