//go:build linux

package review

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary/workspace"
)

// plan returns the steps for c, or reports that nothing is left to do, or that it
// cannot be done: then no part of it has been.
func (a *applier) plan(c *Change) ([]*work, error) {
	digest, err := a.digest(c)
	if err != nil {
		return nil, err
	}
	if digest != c.digest {
		return nil, ErrChanged
	}
	d := &appliedState{Digest: digest}
	var steps []*work
	switch {
	case c.Kind == Deleted:
		w, err := a.planRemove(c, string(c.Path))
		if err != nil {
			return nil, err
		}
		steps = append(steps, w...)
	case c.Kind == ModeChanged:
		steps, err = a.planBits(c, d)
	default:
		steps, err = a.planPut(c, d)
	}
	if err == nil && c.Kind == Renamed {
		var more []*work
		more, err = a.planRemove(c, string(c.From))
		steps = append(steps, more...)
	}
	if err != nil {
		return nil, err
	}
	if len(steps) == 0 {
		a.markApplied(c, d) // an apply that died had done it
		return nil, nil
	}
	for _, w := range steps {
		w.in.Done = d
	}
	steps[len(steps)-1].in.Last = true
	return steps, nil
}

func (a *applier) work(c *Change, act act, path string, dir int) *work {
	a.step++
	w := &work{c: c, dir: dir, in: intent{Step: a.step, Act: act, Path: workspace.Name(path), Change: c.Path}}
	w.at, w.name = cut(path)
	if act == put || act == remove {
		w.in.Temp, w.in.Ready = tempName(), a.sameMount(dir)
		w.tempDir = a.tempDir(dir, &w.in)
	}
	return w
}

// planRemove plans that path goes; nil: it has gone.
func (a *applier) planRemove(c *Change, path string) ([]*work, error) {
	at, name := cut(path)
	fd, err := workspace.OpenBeneath(a.trees.tree, at, unix.O_PATH|unix.O_DIRECTORY)
	if absent(err) {
		return nil, nil
	}
	if err != nil {
		return nil, unreachable(at, err)
	}
	unix.Close(fd)
	dir, err := a.dir(at)
	if err != nil {
		return nil, err
	}
	var st unix.Statx_t
	if err := status(dir, name, &st); absent(err) {
		return nil, nil
	}
	of := c
	if path != string(c.Path) { // the old name of a rename
		of = &Change{Path: workspace.Name(path), OldType: c.OldType, Kind: Deleted}
	}
	was, fits, err := a.fits(of, dir, name)
	if err != nil {
		return nil, err
	}
	if !fits {
		return nil, &conflictError{"it is not what it was when the run began"}
	}
	w := a.work(c, remove, path, dir)
	if was.Type == Dir {
		w.in.Act, w.in.Temp = rmdir, ""
	}
	w.in.Was = was
	return []*work{w}, nil
}

// fits finds what must be at the path of c, which is name in dir, and reports whether
// it is there.
func (a *applier) fits(c *Change, dir int, name string) (was targetState, fits bool, err error) {
	if was, fits, err = a.expectedNow(c); fits && err == nil {
		fits, err = was.matches(dir, name, false)
	}
	return was, fits, err
}

// planBits plans the bits of what stays.
func (a *applier) planBits(c *Change, d *appliedState) ([]*work, error) {
	at, name := cut(string(c.Path))
	dir, err := a.dir(at)
	if err != nil {
		return nil, err
	}
	w := a.work(c, chmod, string(c.Path), dir)
	w.ours = State{Type: c.Type, Mode: c.Mode & 0o777}
	was, fits, err := a.fits(c, dir, name)
	if err != nil {
		return nil, err
	}
	w.in.Was = was
	if !fits {
		return nil, a.alreadyDone(w, c)
	}
	var st unix.Statx_t
	if err := status(dir, name, &st); err != nil {
		return nil, err
	}
	if c.Type == File && st.Nlink > 1 { // one of its names was shown: that becomes a file of its own
		return a.planPut(c, d)
	}
	return []*work{w}, nil
}

// planPut plans that something new takes the place of what is there.
func (a *applier) planPut(c *Change, d *appliedState) ([]*work, error) {
	at, name := cut(string(c.Path))
	dir, err := a.dir(at)
	if err != nil {
		return nil, err
	}
	w := a.work(c, put, string(c.Path), dir)
	w.ours = State{Type: c.Type, Mode: c.Mode & 0o777, Target: c.Target}
	switch {
	case c.hunks != nil:
		if err := a.planHunks(w, d); err != nil {
			return nil, err
		}
	case c.Type == File:
		w.whole = true
	}
	was, fits, err := a.fits(c, dir, name)
	if err != nil {
		return nil, err
	}
	w.in.Was = was
	if !fits || was.State == w.ours {
		d.Left = w.ours
		return nil, a.alreadyDone(w, c)
	}
	return []*work{w}, nil
}

// alreadyDone returns nil if what is at the path of w is what w would make of it
// already, and a conflict otherwise.
func (a *applier) alreadyDone(w *work, c *Change) error {
	now, err := readAt(w.dir, w.name, false)
	if err != nil {
		return err
	}
	want := w.ours
	if c.Type == File && w.data == nil {
		side, err := readSide(a.trees.upper, string(c.Path), true)
		if err != nil {
			return err
		}
		want.Size, want.SHA256 = side.Size, side.SHA256
	}
	if c.Type != File {
		now.Size, want.Size = 0, 0
	}
	if c.Type == Link {
		now.Mode, want.Mode = 0, 0
	}
	if now.state() != want || c.Type == File && want.SHA256 == "" {
		if now.Type == None {
			return &conflictError{"it was removed after the run began"}
		}
		if c.OldType == None {
			return &conflictError{"something else is there"}
		}
		return &conflictError{"it is not what it was when the run began"}
	}
	return nil
}

// planHunks makes the content of w of the old side and the accepted hunks.
func (a *applier) planHunks(w *work, d *appliedState) error {
	from, to, err := a.sides(w.c)
	if err != nil {
		return err
	}
	list := DiffSides(from, to).Hunks
	known := map[string]bool{}
	for _, h := range list {
		known[h.ID] = true
	}
	d.Hunks = []string{}
	for id, decision := range w.c.hunks.by {
		if !known[id] {
			return ErrChanged
		}
		if decision == Accept {
			d.Hunks = append(d.Hunks, id)
		}
	}
	w.data = patch(from.data, list, func(h Hunk) bool { return w.c.hunks.by[h.ID] == Accept })
	sum := sha256.Sum256(w.data)
	w.ours.Size, w.ours.SHA256 = int64(len(w.data)), hex.EncodeToString(sum[:])
	if len(d.Hunks) < len(list) && !bytes.Equal(w.data, to.data) {
		// The bits belong to the whole: a part of the lines does not take them.
		w.ours.Mode = w.c.OldMode & 0o777
	}
	if w.data == nil {
		w.data = []byte{}
	}
	return nil
}

// chmodStep gives a path the bits that the run gave it.
func (a *applier) chmodStep(w *work) error {
	fd, err := workspace.OpenBeneath(w.dir, w.name, unix.O_PATH|unix.O_NOFOLLOW)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Statx_t
	if err := statusOf(fd, &st); err != nil {
		return err
	}
	if typeOf(st.Mode) != w.ours.Type || w.in.Was.ID != nil && w.in.Was.ID.Ino != st.Ino {
		return &conflictError{"it was replaced in the meantime"}
	}
	if w.ours.Type == File && st.Nlink > 1 {
		return &conflictError{"it was given another name in the meantime, which would have the mode too"}
	}
	if w.ours.Type == Dir && a.d.uid > 0 && int(st.Uid) != a.d.uid {
		return fmt.Errorf("it belongs to user %d, and the workspace to user %d, who may have put it there", st.Uid, a.d.uid)
	}
	if ok, err := w.in.Was.descriptorMatches(fd, &st); err != nil || !ok {
		return errors.Join(err, &conflictError{"it was changed in the meantime"})
	}
	mode := w.ours.Mode
	if w.ours.Type == Dir {
		mode |= 0o700 // a directory closed to its owner was closed to the review too
	}
	return a.d.do("chmod", func() error { return unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), mode) })
}

func (a *applier) rmdirStep(w *work) error {
	if !a.isInPlace(w.at) {
		return &conflictError{fmt.Sprintf("directory %q was moved away in the meantime", w.at)}
	}
	err := a.d.rmdir(w.dir, w.name)
	switch {
	case errors.Is(err, unix.ENOTEMPTY):
		return errors.New("it holds something that the run did not know, or whose removal was not accepted")
	case absent(err):
		return nil
	case err != nil:
		return err
	}
	fd, err := a.keepDir(string(w.in.Path))
	if fd >= 0 {
		unix.Close(fd)
	}
	return err
}
