//go:build linux

package supervise

import (
	"cmp"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
)

// linked foresees the further name s.at for the file s.to. This does not count as
// reading the file.
func (s *Supervisor) linked(c *call) outcome {
	if errno := c.invalid(); errno != "" {
		return allowed(errno)
	}
	if o, decided := s.unreachableOutcome(c, &s.to, wantRead); decided {
		return o
	}
	if s.to.errno != 0 || !s.to.exists {
		return s.inTree(&s.to, wantRead, allowed(cmp.Or(unix.ErrnoName(s.to.errno), "ENOENT")))
	}
	if s.to.slashed && !isDirectory(&s.to) {
		return allowed("ENOTDIR")
	}
	o, decided := s.unreachableOutcome(c, &s.at, wantCreate)
	if !decided {
		o, decided = s.judgeMount(c, &s.at, wantCreate, true)
	}
	if decided {
		return s.inTree(&s.at, wantCreate, o)
	}
	if s.to.tree != nil && s.at.dir != nil && s.to.tree != s.at.dir.tree {
		// Each tree is a mount of its own, and no link leads from one to another.
		switch s.to.tree.Access {
		case policy.ProtectedRead, policy.Read:
			return s.to.refuseReadOnly("EXDEV")
		}
		return s.inTree(&s.to, wantRead, allowed("EXDEV"))
	}
	cr, st := &c.proc.creds, &s.to.stat
	if kind := st.Mode & unix.S_IFMT; linksProtected() && cr.uid != st.Uid && !cr.owner &&
		(kind != unix.S_IFREG || st.Mode&unix.S_ISUID != 0 || st.Mode&(unix.S_ISGID|unix.S_IXGRP) == unix.S_ISGID|unix.S_IXGRP || !cr.may(st, 6)) {
		return denied(event.LayerPermissions, "", "EPERM")
	}
	o = cr.inDirectory(&s.at, nil)
	if o.verdict == event.Allowed && st.Mode&unix.S_IFMT == unix.S_IFDIR {
		o.errno = "EPERM"
	}
	return o
}

// unreachableOutcome returns the outcome of a call whose path leads to no directory of the
// view that the caller may search.
func (s *Supervisor) unreachableOutcome(c *call, at *location, w want) (outcome, bool) {
	s.uncover(at, w == wantCreate)
	switch {
	case at.magic:
		return outcome{}, false
	case !c.proc.creds.canReach(at), at.errno == unix.EACCES:
		return denied(event.LayerPermissions, "", "EACCES"), true
	case at.tree == nil && (w != wantRead || !at.above):
		return judgeOutside(c, at, w, w == wantCreate)
	case at.errno != 0 && at.dir == nil:
		return s.inTree(at, w, allowed(unix.ErrnoName(at.errno))), true
	}
	return outcome{}, false
}

// foreseeRename predicts the outcome of moving s.at to s.to, or of exchanging them.
func (s *Supervisor) foreseeRename(c *call) outcome {
	if errno := c.invalid(); errno != "" {
		return allowed(errno)
	}
	both := [...]*location{&s.at, &s.to}
	for _, at := range both { // the directories of both come first
		if o, decided := s.unreachableOutcome(c, at, wantRemove); decided && (at.dir == nil || o.layer == event.LayerPermissions) {
			return o
		}
	}
	if s.at.dir == nil || s.to.dir == nil {
		return allowed("") // a path that is a descriptor, or one that was not understood
	}
	if s.at.dir.tree != s.to.dir.tree {
		return s.across()
	}
	for _, at := range both {
		if o, decided := s.unreachableOutcome(c, at, wantRemove); decided {
			return o
		}
	}
	if o, decided := s.renameErrors(c); decided {
		return o
	}
	return s.judgeRename(c)
}

// across is the outcome of a rename from one tree to another: these are different
// mounts, and the kernel checks nothing else (rename(2), EXDEV). If one of the trees
// alone would refuse, that is a denial.
func (s *Supervisor) across() outcome {
	for _, at := range [...]*location{&s.at, &s.to} {
		o := outcome{verdict: event.Allowed}
		switch {
		case at.tree == nil:
			o = denied(event.LayerView, "", "")
		case s.resolver.top(at):
			o = s.inTree(at, wantRemove, allowed("EBUSY"))
		case at.dir.isReadOnly() && (at == &s.to || at.exists):
			o = at.refuseReadOnly("")
		}
		if o.verdict == event.Denied {
			o.errno = "EXDEV"
			return o
		}
	}
	return allowed("EXDEV")
}

// renameErrors has the errors of a rename that come before the mode bits (do_renameat2 of
// the kernel).
func (s *Supervisor) renameErrors(c *call) (outcome, bool) {
	keeps, exchanges := c.flag()&unix.RENAME_NOREPLACE != 0, c.flag()&unix.RENAME_EXCHANGE != 0
	from, to := s.at.absolutePath(), s.to.absolutePath()
	errno := ""
	switch fromDir, toDir := isDirectory(&s.at), isDirectory(&s.to); {
	case len(s.at.name) == 0:
		errno = "EBUSY"
	case len(s.to.name) == 0 && keeps:
		errno = "EEXIST"
	case len(s.to.name) == 0:
		errno = "EBUSY"
	case s.at.dir.isReadOnly() && !s.at.exists:
		errno = "EROFS"
	case s.at.dir.isReadOnly():
		return s.at.unnameable(), true
	case s.at.errno != 0:
		errno = unix.ErrnoName(s.at.errno)
	case !s.at.exists:
		return s.inTree(&s.at, wantRemove, allowed("ENOENT")), true
	case s.to.errno != 0:
		errno = unix.ErrnoName(s.to.errno)
	case keeps && s.to.exists:
		errno = "EEXIST"
	case exchanges && !s.to.exists:
		errno = "ENOENT"
	case !fromDir && s.at.slashed, exchanges && !toDir && s.to.slashed, !exchanges && !fromDir && s.to.slashed:
		errno = "ENOTDIR"
	case strings.HasPrefix(s.to.dir.real+"/", from+"/"):
		errno = "EINVAL" // into itself
	case strings.HasPrefix(s.at.dir.real+"/", to+"/") && exchanges:
		errno = "EINVAL"
	case strings.HasPrefix(s.at.dir.real+"/", to+"/"):
		errno = "ENOTEMPTY"
	}
	return allowed(errno), errno != ""
}

// judgeRename judges a rename within one tree by mode bits, and by what is there already.
func (s *Supervisor) judgeRename(c *call) outcome {
	cr, exchanges := &c.proc.creds, c.flag()&unix.RENAME_EXCHANGE != 0
	a, b := &s.at.stat, &s.to.stat
	if s.to.exists && a.Dev == b.Dev && a.Ino == b.Ino {
		return allowed("") // two names of one file: nothing happens
	}
	if o := cr.inDirectory(&s.at, a); o.verdict != event.Allowed {
		return o
	}
	var old *unix.Stat_t
	if s.to.exists {
		old = b
	}
	if o := cr.inDirectory(&s.to, old); o.verdict != event.Allowed {
		return o
	}
	fromDir, toDir := isDirectory(&s.at), isDirectory(&s.to)
	replaces := s.to.exists && !exchanges
	switch {
	case replaces && fromDir && !toDir:
		return allowed("ENOTDIR")
	case replaces && !fromDir && toDir:
		return allowed("EISDIR")
	}
	// A directory that gets another one above it is written to.
	up, topFrom, topTo := s.at.dir.stat.Ino != s.to.dir.stat.Ino, s.resolver.top(&s.at), s.to.exists && s.resolver.top(&s.to)
	if up && (fromDir && !topFrom && !cr.may(a, 2) || exchanges && toDir && !topTo && !cr.may(b, 2)) {
		return denied(event.LayerPermissions, "", "EACCES")
	}
	switch {
	case topFrom:
		return s.inTree(&s.at, wantRemove, allowed("EBUSY"))
	case topTo:
		return s.inTree(&s.to, wantRemove, allowed("EBUSY"))
	case replaces && toDir && s.resolver.hasEntries(s.to.absolutePath()):
		return allowed("ENOTEMPTY")
	}
	return allowed("")
}

func isDirectory(at *location) bool { return at.exists && at.stat.Mode&unix.S_IFMT == unix.S_IFDIR }

// linksProtected reports whether the kernel refuses a hard link to a file that the caller
// neither owns nor may write (fs.protected_hardlinks of proc_sys_fs(5)).
var linksProtected = sync.OnceValue(func() bool {
	text, err := os.ReadFile("/proc/sys/fs/protected_hardlinks")
	return err != nil || strings.TrimSpace(string(text)) != "0"
})
