//go:build linux

package supervise

import (
	"cmp"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
)

// foresee predicts the outcome of a call from the place of its path in the view and
// from owner and mode, in the order in which the kernel checks (fs/namei.c and
// fs/open.c of Linux). It ignores access control lists and Landlock, and the call may
// find something other than foresee did: it is a record, and decides nothing.
func (s *Supervisor) foresee(c *call, at *location, w want, creates bool) outcome {
	if w.changes() || creates {
		c.changes(at)
	}
	if errno := c.invalid(); errno != "" {
		return allowed(errno)
	}
	if creates && w != wantCreate && at.slashed && at.followed {
		return allowed("EISDIR") // before the link is followed
	}
	if !c.proc.creds.canReach(at) {
		return denied(event.LayerPermissions, "", "EACCES")
	}
	s.uncover(at, creates || w == wantCreate)
	o, decided := s.judgeMount(c, at, w, creates)
	if !decided {
		o = s.permitted(c, at, w, creates)
	}
	return s.inTree(at, w, o)
}

// changes notes that c changes what is at, or makes it.
func (c *call) changes(at *location) {
	c.private = c.private || at.tree != nil && at.tree.Access == policy.Copy
}

// uncover gives what is hidden, but was made inside where nothing is mounted over
// its name, to the tree around it.
func (s *Supervisor) uncover(at *location, makes bool) {
	if at.exists || makes {
		at.tree = s.resolver.unhidden(at.tree)
	}
}

// unhidden is t, or the tree around it where t is hidden by nothing but that it is missing.
func (r *resolver) unhidden(t *policy.Tree) *policy.Tree {
	if t == nil || t.Access != policy.Hidden || r.isMounted(t.Path) {
		return t
	}
	return r.places.treeFor(path.Dir(t.Path))
}

// hiddenByView reports whether the host has a path that is missing in a private tree,
// or the directory in which it would be made.
func (s *Supervisor) hiddenByView(at *location, w want) bool {
	if s.config.HiddenByView == nil || at.exists || at.tree == nil || at.tree.Access != policy.Copy {
		return false
	}
	missing := cmp.Or(at.resolved(), string(at.asked))
	if s.config.HiddenByView(missing) {
		return true
	}
	if at.dir != nil || !w.changes() {
		return false
	}
	missing = path.Dir(missing)
	_, err := os.Lstat(missing)
	return err == nil && s.config.HiddenByView(missing)
}

// judgeMount judges by what there is, and by how it is mounted.
func (s *Supervisor) judgeMount(c *call, at *location, w want, creates bool) (outcome, bool) {
	if at.magic {
		return outcome{}, false
	}
	if at.errno == unix.EACCES {
		return denied(event.LayerPermissions, "", "EACCES"), true
	}
	if at.tree == nil {
		return judgeOutside(c, at, w, creates)
	}
	if errno := c.kindError(at, w, creates); errno != "" {
		return allowed(errno), true
	}
	if at.readOnly(w, creates) {
		if w == wantRemove && !at.exists {
			return allowed("EROFS"), true // nothing was kept from being removed
		}
		if at.exists && c.modeFirst() && !c.proc.creds.may(&at.stat, c.bits(w)) {
			return at.refuseReadOnly("EACCES"), true
		}
		if w == wantCreate || w == wantRemove {
			return at.unnameable(), true
		}
		return at.refuseReadOnly("EROFS"), true
	}
	if !at.exists && w != wantCreate && !creates {
		return allowed("ENOENT"), true
	}
	return outcome{}, false
}

// canReach reports whether c may search the directories that lead to at.
func (c *creds) canReach(at *location) bool {
	d := cmp.Or(at.dir, at.near)
	if d == nil || at.tree == nil || d.tree == nil {
		return true
	}
	for i := range d.gates {
		if !c.may(&d.gates[i], 1) {
			return false
		}
	}
	return at.dir != nil && len(at.name) == 0 && string(at.lastName()) != "." || c.may(&d.stat, 1)
}

// modeFirst reports whether the kernel asks for the mode bits before it asks how the file
// system is mounted.
func (c *call) modeFirst() bool {
	return c.opens() && c.flags&unix.O_TRUNC == 0 && c.flags&unix.O_TMPFILE != unix.O_TMPFILE || c.info.action == event.FileTruncate
}

// readOnly reports whether a call fails because of how the file system is mounted.
// For a name that is made or goes away that is the mount of its directory.
func (at *location) readOnly(w want, creates bool) bool {
	if !w.changes() && (at.exists || !creates) {
		return false
	}
	if w == wantCreate || w == wantRemove || !at.exists {
		return at.dir != nil && at.dir.isReadOnly() && (w == wantCreate || w == wantRemove || creates)
	}
	kind := at.stat.Mode & unix.S_IFMT
	if (w == wantWrite || w == wantBoth) && kind != unix.S_IFREG && kind != unix.S_IFDIR && kind != unix.S_IFLNK {
		return false // a device, pipe or socket can be written to where nothing can be changed
	}
	if at.dir != nil && at.tree == at.dir.tree {
		return at.dir.isReadOnly()
	}
	return at.tree.Access != policy.Write && at.tree.Access != policy.Copy
}

// isReadOnly reports whether nothing can be changed in d. The user may have mounted it
// like that: below a writable tree the view keeps what it finds.
func (d *directory) isReadOnly() bool {
	return d.fixed || d.tree == nil || d.tree.Access != policy.Write && d.tree.Access != policy.Copy
}

// refuseReadOnly is the refusal of a change by what is for reading alone.
func (at *location) refuseReadOnly(errno string) outcome {
	layer := event.LayerReadonly
	if at.tree.Access == policy.ProtectedRead {
		layer = event.LayerProtected
	}
	return denied(layer, at.tree.Rule, errno)
}

// unnameable is the refusal of a name that is made or goes away in a directory for
// reading alone, which the view may have made to lead to a tree.
func (at *location) unnameable() outcome {
	if at.dir.tree == nil {
		return denied(event.LayerView, at.tree.Rule, "EROFS")
	}
	return at.refuseReadOnly("EROFS")
}

// inTree is o, which is what the kernel says, as the boundary's doing where a tree of
// the view is why: a secret has something else in its place, or nothing, what is
// mounted stays where it is, and a private directory has not what the host's has.
func (s *Supervisor) inTree(at *location, w want, o outcome) outcome {
	switch {
	case at.tree == nil || at.magic:
	case at.tree.Access == policy.Hidden:
		return denied(event.LayerHidden, at.tree.Rule, o.errno)
	case o.errno == "EBUSY" && w == wantRemove && (at.dir.tree == nil || at.dir.tree.Access == policy.Copy):
		return denied(event.LayerView, at.tree.Rule, o.errno)
	case o.errno == "EBUSY" && w == wantRemove:
		return denied(event.LayerProtected, at.tree.Rule, o.errno)
	case o.verdict == event.Allowed && o.errno == "ENOENT" && s.hiddenByView(at, w):
		return denied(event.LayerView, "", o.errno)
	}
	return o
}

// judgeOutside judges a path that no tree of the view has.
func judgeOutside(c *call, at *location, w want, creates bool) (outcome, bool) {
	if at.errno != 0 && (at.errno != unix.ENOENT && at.errno != unix.ENOTDIR || at.dir == nil && !strings.HasPrefix(at.place, "/")) {
		return allowed(unix.ErrnoName(at.errno)), true // it is nowhere at all, as is an empty path
	}
	if at.above && !w.changes() {
		return outcome{}, false
	}
	errno := "ENOENT"
	if at.errno == 0 {
		switch misfit := c.kindError(at, w, creates); {
		case misfit != "":
			errno = misfit
		case at.above, at.dir != nil && at.dir.above && (w == wantCreate || w == wantRemove || creates):
			errno = "EROFS"
		}
	}
	return denied(event.LayerView, "", errno), true
}

// permitted judges by owner and mode bits, and then by what a name that goes away is of.
func (s *Supervisor) permitted(c *call, at *location, w want, creates bool) outcome {
	if at.errno != 0 {
		return allowed(unix.ErrnoName(at.errno))
	}
	cr := &c.proc.creds
	switch {
	case w == wantCreate, creates && !at.exists:
		return cr.inDirectory(at, nil)
	case w == wantRemove && c.info.action == event.FileUnlink && at.slashed && !c.removesDirectory():
		return allowed(s.removeError(c, at)) // an error of the path
	case w == wantRemove:
		if o := cr.inDirectory(at, &at.stat); o.verdict != event.Allowed || c.info.action == event.FileRename {
			return o
		}
		return allowed(s.removeError(c, at))
	case !at.exists:
		return allowed("ENOENT")
	case w == wantOwner:
		return s.judgeOwner(c, at)
	case c.opens() && c.flags&unix.O_PATH != 0:
		return allowed("")
	}
	if !cr.may(&at.stat, c.bits(w)) {
		return denied(event.LayerPermissions, "", "EACCES")
	}
	if c.opens() && at.stat.Mode&unix.S_IFMT == unix.S_IFSOCK {
		return allowed("ENXIO")
	}
	return allowed("")
}

// bitsOf says which mode bits a call needs.
var bitsOf = [...]uint32{wantRead: 4, wantWrite: 2, wantBoth: 6, wantExec: 1, wantReach: 2}

// bits is which mode bits c needs: a file without a name is made in its directory.
func (c *call) bits(w want) uint32 {
	if c.opens() && c.flags&unix.O_TMPFILE == unix.O_TMPFILE {
		return 3
	}
	return bitsOf[w]
}

// inDirectory judges making a name, or taking away the one that is old.
func (c *creds) inDirectory(at *location, old *unix.Stat_t) outcome {
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

// mayRedirect reports whether a call may change where other paths lead. What is
// remembered of a directory must go when it, or a link to one, is moved or
// taken away, or is another's or has another mode then.
func (s *Supervisor) mayRedirect(c *call, at *location) bool {
	owns := c.info.action == event.FileChmod || c.info.action == event.FileChown
	if c.info.want != wantRemove && c.info.shape != shapeTwo && !owns || !at.exists {
		return false
	}
	exchanges := c.info.action == event.FileRename && c.flag()&unix.RENAME_EXCHANGE != 0
	switch kind := at.stat.Mode & unix.S_IFMT; {
	case exchanges:
		return true // what is there comes here
	case owns && kind != unix.S_IFDIR:
	case kind == unix.S_IFLNK:
		return true
	case kind == unix.S_IFDIR:
		if c.info.action == event.FileRename {
			return true
		}
		for key, d := range s.resolver.dirs { // of an empty one, only the texts that lead to itself
			if d.stat.Ino == at.stat.Ino && d.stat.Dev == at.stat.Dev {
				s.resolver.forget([]byte(key))
			}
		}
	}
	return false
}
