//go:build linux

package review

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary/workspace"
)

// entry compares one name that the run left with what was there. files says that a
// regular file of the directory may mark a deleted one.
func (v *comparison) entry(name string, files bool) error {
	if err := v.ctx.Err(); err != nil {
		return err
	}
	path := join(v.path, name)
	if len(path) > maxName {
		v.addUnseen(v.path, "what is below has names that are longer than %d bytes", maxName)
		return nil
	}
	if v.apart[path] || v.apart["."] {
		return nil // the run did not see what is here, and what it saw is not here
	}
	var st unix.Statx_t
	if err := status(int(v.l.upper.Fd()), name, &st); err != nil {
		v.addUnseen(path, "it cannot be examined: %v", err)
		return nil
	}
	var was old
	var had bool
	if v.which == both {
		var err error
		if was, had, err = v.l.old(name); err != nil {
			v.addUnseen(path, "what was there before cannot be examined: %v", err)
			return nil
		}
	}
	if v.copied != nil {
		i, ok := v.copied[path]
		if ok && typeOf(st.Mode) != Dir && sameState(i, workspace.IdentityOf(&st), false) {
			return nil // not touched
		}
		if ok && typeOf(st.Mode) == Dir && i.Mode == uint32(st.Mode) && had && typeOf(was.st.Mode) == Dir {
			was.st.Mode = st.Mode // its bits are not of the run, whatever changed them
		}
		had = had && ok
	}
	if v.mode == Overlay && (whiteout(&st) || files && st.Size == 0 && v.whiteoutFile(name, &st)) {
		if had {
			return v.addDeleted(name)
		}
		return nil
	}
	v.addChange(path, name, &st, was, had)
	return nil
}

// addChange makes a change of a name whose two sides were examined.
func (v *comparison) addChange(path, name string, st *unix.Statx_t, was old, had bool) {
	c := &Change{Path: workspace.Name(path), Type: typeOf(st.Mode), Mode: uint32(st.Mode) & 0o7777, Size: int64(st.Size)}
	if had {
		c.OldType, c.OldMode, c.OldSize = typeOf(was.st.Mode), uint32(was.st.Mode)&0o7777, int64(was.st.Size)
	} else {
		v.fresh = append(v.fresh, name)
	}
	rule, below := v.look.Match(path, name, c.Type == Dir, c.Type == Link)
	v.links(c, name, was)
	switch {
	case c.Type == Dir:
		v.newDir(c, rule, below)
	case c.OldType == Dir:
		c.Kind = TypeChanged
		v.keepChange(c, rule)
		_, below := v.look.Match(path, name, true, false)
		v.push(job{path: path, which: onlyLower, look: below}, c, rule)
	case had && c.OldType != c.Type:
		c.Kind = TypeChanged
		v.readHead(c, name)
		v.keepChange(c, rule)
	case had:
		v.compare(c, rule, name, st, was)
	default:
		c.Kind = Added
		if st.Nlink > 1 && c.Type == File {
			c.note("another name has the same content; here it becomes a file of its own")
		}
		v.readHead(c, name)
		v.keepChange(c, rule)
	}
}

// inCopy reports whether a copy of the workspace had a name of this directory.
func (v *comparison) inCopy(name string) bool {
	if v.copied == nil {
		return true
	}
	_, ok := v.copied[join(v.path, name)]
	return ok
}

// links completes what both sides of a link point to.
func (v *comparison) links(c *Change, name string, was old) {
	if c.Type == Link {
		t, err := readLink(int(v.l.upper.Fd()), name)
		if err != nil {
			c.Cannot = fmt.Sprintf("the link cannot be read: %v", err)
		}
		c.Target = workspace.Name(t)
	}
	if c.OldType == Link {
		t, _ := readLink(int(was.dir.Fd()), name)
		c.OldTarget = workspace.Name(t)
	}
}

// newDir lists a directory of what the run left.
func (v *comparison) newDir(c *Change, rule *workspace.Rule, below workspace.Look) {
	which := both
	switch c.OldType {
	case Dir:
		if c.Mode != c.OldMode {
			c.Kind = ModeChanged
			v.keepChange(c, rule)
		}
	case None:
		which = onlyUpper
	default:
		c.Kind, which = TypeChanged, onlyUpper
		v.keepChange(c, rule)
	}
	v.push(job{path: string(c.Path), which: which, perm: c.Mode, look: below}, c, rule)
}

// push hands a directory on, with the flag that all in it has.
func (v *comparison) push(j job, c *Change, rule *workspace.Rule) {
	j.over = v.over
	switch {
	case j.over != nil:
	case rule != nil:
		j.over = &Flag{rule.Pattern, fmt.Sprintf("it lies in %q: %s", c.Path, rule.Reason)}
	case c.Kind == TypeChanged:
		j.over = &Flag{"below", fmt.Sprintf("it lies in %q, which became a directory or was one", c.Path)}
	}
	v.subs = append(v.subs, j)
}

// addDeleted lists a name that the run took away, and all below it.
func (v *comparison) addDeleted(name string) error {
	if err := v.ctx.Err(); err != nil {
		return err
	}
	path := join(v.path, name)
	if len(path) > maxName {
		v.addUnseen(v.path, "what was deleted below has names that are longer than %d bytes", maxName)
		return nil
	}
	if v.apart[path] || v.apart["."] {
		return nil
	}
	was, had, err := v.l.old(name)
	if err != nil || !had {
		if err != nil {
			v.addUnseen(path, "what was deleted cannot be examined: %v", err)
		}
		return nil
	}
	if v.mode == Copy && v.copied == nil && !was.kept && v.began != 0 && nanos(was.st.Btime) >= v.began {
		return nil // it was made after the copy was taken
	}
	c := &Change{Path: workspace.Name(path), Kind: Deleted, OldType: typeOf(was.st.Mode), OldMode: uint32(was.st.Mode) & 0o7777, OldSize: int64(was.st.Size)}
	v.links(c, name, was)
	v.noteLate(c, was)
	rule, below := v.look.Match(path, name, c.OldType == Dir, c.OldType == Link)
	v.keepChange(c, rule)
	if c.OldType == Dir {
		v.push(job{path: path, which: onlyLower, look: below}, c, rule)
	}
	return nil
}

// compare looks at a file or a link that was there under the same type.
func (v *comparison) compare(c *Change, rule *workspace.Rule, name string, st *unix.Statx_t, was old) {
	if v.mode == Copy && v.copied == nil && v.began != 0 && nanos(st.Ctime) < v.began {
		return // not touched since the copy was taken
	}
	v.noteLate(c, was)
	same := false
	switch c.Type {
	case File:
		same = c.Size == c.OldSize && v.equal(c, name, was)
		if !same {
			v.readHead(c, name)
		}
	case Link:
		same = c.Target == c.OldTarget
		if same {
			return
		}
	default:
		same = true
		if st.Rdev_major != was.st.Rdev_major || st.Rdev_minor != was.st.Rdev_minor {
			same = false
		}
	}
	switch {
	case !same:
		c.Kind = Modified
	case c.Mode != c.OldMode && c.Type != Link:
		c.Kind = ModeChanged
	default:
		return
	}
	v.keepChange(c, rule)
}

// noteLate notes that the file in the workspace changed after the run began.
func (v *comparison) noteLate(c *Change, was old) {
	if !was.kept && v.began != 0 && nanos(was.st.Ctime) >= v.began && c.OldType != Dir {
		c.Notes = append(c.Notes, "the workspace's own file changed after the run began: the two sides shown are that one and the run's")
	}
}

// equal reports whether the contents of two files of one size are the same.
func (v *comparison) equal(c *Change, name string, was old) bool {
	if c.Size == 0 {
		return true
	}
	if !v.mayRead(2 * c.Size) {
		c.Notes = append(c.Notes, "too large to be compared: treated as changed")
		return false
	}
	a, err := openFile(int(v.l.upper.Fd()), name, true)
	if err != nil {
		return false
	}
	defer a.Close()
	b, err := openFile(int(was.dir.Fd()), name, false)
	if err != nil {
		return false
	}
	defer b.Close()
	return workspace.SameContent(int(a.Fd()), int(b.Fd()), c.Size)
}

// readHead reads the first bytes of a new or changed file.
func (v *comparison) readHead(c *Change, name string) {
	c.Huge = c.Size > MaxText || c.OldType == File && c.OldSize > MaxText
	if c.Type != File || c.Size == 0 {
		return
	}
	f, err := openFile(int(v.l.upper.Fd()), name, true)
	if err != nil {
		c.Cannot = fmt.Sprintf("it cannot be read: %v", err)
		return
	}
	defer f.Close()
	c.head(f)
}

func (v *comparison) whiteoutFile(name string, st *unix.Statx_t) bool {
	if typeOf(st.Mode) != File {
		return false
	}
	f, err := openFile(int(v.l.upper.Fd()), name, true)
	if err != nil {
		return false
	}
	defer f.Close()
	var buf [1]byte
	for _, space := range []string{"user.", "trusted."} {
		if _, err := unix.Fgetxattr(int(f.Fd()), space+"overlay.whiteout", buf[:]); err == nil {
			return true
		}
	}
	return false
}

// keepChange keeps a change.
func (v *comparison) keepChange(c *Change, rule *workspace.Rule) {
	if !v.reserve(string(c.Path)) {
		return
	}
	v.flag(c, rule)
	v.found = append(v.found, c)
}

// head looks at the first bytes of a file.
func (c *Change) head(f *os.File) {
	buf := make([]byte, 8<<10)
	n, err := f.ReadAt(buf, 0)
	if n == 0 && err != nil {
		return
	}
	b := buf[:n]
	c.Binary = !text(b, int64(n) < c.Size)
	c.program = program(b)
}
