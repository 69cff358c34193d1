//go:build linux

package review

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary/workspace"
)

// tempPrefix begins the names under which Apply prepares things. If one is left after
// an interrupted apply, another apply removes it.
const tempPrefix = ".holdfast-apply-"

func tempName() string { return tempPrefix + strings.ToLower(rand.Text()) }

// dir opens the directory of the workspace at path and keeps it open until the
// batch is over. Directories that the run made are made where they are missing.
func (a *applier) dir(path string) (int, error) {
	if fd, ok := a.dirs[path]; ok {
		return fd, nil
	}
	fd, err := workspace.OpenBeneath(a.trees.tree, path, unix.O_RDONLY|unix.O_DIRECTORY)
	if errors.Is(err, unix.ENOENT) && path != "" {
		if err := a.makeDir(path); err != nil {
			return -1, err
		}
		fd, err = workspace.OpenBeneath(a.trees.tree, path, unix.O_RDONLY|unix.O_DIRECTORY)
	}
	if err != nil {
		return -1, unreachable(path, err)
	}
	a.dirs[path] = fd
	return fd, nil
}

// makeDir makes one directory as the run had it, and those above it first.
func (a *applier) makeDir(path string) error {
	above, name := cut(path)
	in, err := a.dir(above)
	if err != nil {
		return err
	}
	fd, err := workspace.OpenBeneath(a.trees.upper, path, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return fmt.Errorf("the directory %q does not exist, and the run did not create it", path)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	a.step++
	w := &work{in: intent{Step: a.step, Act: put, Path: workspace.Name(path), Temp: tempName(), Ready: a.sameMount(in)}, dir: in, ours: State{Type: Dir}}
	w.tempDir = a.tempDir(in, &w.in)
	if err := a.j.appendNotes(false, note{Intent: &w.in}); err != nil {
		return err
	}
	a.j.open++
	group, inherit := a.group(w)
	err = a.d.mkdir(w.tempDir, w.in.Temp, st.Mode&0o777|0o700|inherit, group)
	if err == nil {
		err = a.d.rename(w.tempDir, w.in.Temp, in, name, unix.RENAME_NOREPLACE)
	}
	a.removeTemp(w) // it is under its own name, or not wanted
	if errors.Is(err, unix.EXDEV) && w.in.Ready {
		a.crossMount = true // see retryBeside
		return a.makeDir(path)
	}
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("making directory %q: %w", path, err)
	}
	return nil
}

func unreachable(path string, err error) error {
	switch {
	case errors.Is(err, unix.ELOOP), errors.Is(err, unix.ENOTDIR):
		return fmt.Errorf("%q, or a directory above it, is now a link or a file in the workspace", path)
	case errors.Is(err, unix.EXDEV):
		return fmt.Errorf("%q leads out of the workspace", path)
	}
	return fmt.Errorf("opening directory %q: %w", path, err)
}

// isInPlace reports whether the directory that is held open for path is still at that
// path.
func (a *applier) isInPlace(path string) bool {
	fd, err := workspace.OpenBeneath(a.trees.tree, path, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	var now, held unix.Stat_t
	return unix.Fstat(fd, &now) == nil && unix.Fstat(a.dirs[path], &held) == nil && now.Ino == held.Ino && now.Dev == held.Dev
}

// closeDirs puts the directories of a batch on disk and closes them.
func (a *applier) closeDirs() error {
	var errs []error
	for path, fd := range a.dirs {
		if err := a.d.sync(fd); err != nil {
			errs = append(errs, fmt.Errorf("writing directory %q: %w", path, err))
		}
		unix.Close(fd)
	}
	clear(a.dirs)
	return errors.Join(errs...)
}

// work is one step that is being carried out.
type work struct {
	c       *Change
	part    *Change // of a history, that it is about
	in      intent
	dir     int    // of the workspace
	tempDir int    // where the private name is: ready, or dir
	at      string // path of dir
	name    string
	ours    State    // what put makes
	data    []byte   // content of a file that is made of hunks; nil: the run's file
	whole   bool     // the run's file is taken
	temp    *os.File // open until it is on disk
	ino     tempInode
	failed  bool
}

// conflictError is a target that is not what it was.
type conflictError struct{ why string }

func (e *conflictError) Error() string { return e.why }

// make prepares the new thing under its private name.
func (a *applier) make(w *work) error {
	switch w.ours.Type {
	case Link:
		if err := a.d.symlink(string(w.ours.Target), w.tempDir, w.in.Temp); err != nil {
			return err
		}
	case Dir:
		group, inherit := a.group(w)
		if err := a.d.mkdir(w.tempDir, w.in.Temp, w.ours.Mode|0o700|inherit, group); err != nil {
			return err
		}
	case File:
		if err := a.makeFile(w); err != nil {
			return err
		}
	default:
		return fmt.Errorf("%s is never applied", article(w.ours.Type))
	}
	var st unix.Stat_t
	if err := unix.Fstatat(w.tempDir, w.in.Temp, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if w.temp != nil {
		var own unix.Stat_t
		if err := unix.Fstat(int(w.temp.Fd()), &own); err != nil || own.Ino != st.Ino || own.Dev != st.Dev {
			return errors.Join(err, errors.New("the prepared file was replaced in the meantime"))
		}
	}
	w.ino = tempInode{Step: w.in.Step, Ino: st.Ino, Dev: st.Dev}
	return nil
}

func (a *applier) makeFile(w *work) (err error) {
	if w.temp, err = a.d.create(w.tempDir, w.in.Temp); err != nil {
		return err
	}
	if !w.whole {
		if err := a.d.write(w.temp, w.data); err != nil {
			return err
		}
	} else if err := a.copyRun(w); err != nil {
		return err
	}
	group, _ := a.group(w)
	return a.d.setOwnerAndMode(int(w.temp.Fd()), w.ours.Mode, group)
}

// copyRun copies the run's file, and sees that it was the one that was decided
// about all the while.
func (a *applier) copyRun(w *work) error {
	from, err := openFile(a.trees.upper, string(w.in.Path), true)
	if err != nil {
		return err
	}
	defer from.Close()
	var before, after unix.Statx_t
	if err := statusOf(int(from.Fd()), &before); err != nil {
		return err
	}
	if err := a.d.copy(w.temp, from, int64(before.Size)); err != nil {
		return err
	}
	if err := statusOf(int(from.Fd()), &after); err != nil {
		return err
	}
	if fileDigest(&before) != fileDigest(&after) {
		return ErrChanged
	}
	if a.ctx.Err() != nil {
		return a.ctx.Err()
	}
	var sum string
	if w.ours.SHA256 == "" && before.Size <= MaxSum {
		if sum, err = sumFile(w.temp); err != nil {
			return err
		}
	}
	w.ours.Size, w.ours.SHA256 = int64(before.Size), sum
	return nil
}

// strayError is a file of the workspace that is left under a private name.
type strayError struct{ temp string }

func (e *strayError) Error() string {
	return fmt.Sprintf("it was replaced twice in the meantime; what was there before is now named %q", e.temp)
}

// keepReplaced moves what was swapped out or renamed into the review, unless the review
// has a state of that path already.
func (a *applier) keepReplaced(dir int, temp, path string) error {
	var st unix.Statx_t
	if err := status(dir, temp, &st); err != nil {
		return err
	}
	if typeOf(st.Mode) == Dir {
		return a.d.rmdir(dir, temp)
	}
	if d := a.saved.list[workspace.Name(path)]; d == nil || d.Done == nil {
		kept, err := a.moveToReview(dir, temp, path, &st)
		if err != nil || kept {
			return err
		}
	}
	return a.d.unlink(dir, temp)
}

// maxKept is the size up to which a replaced file is copied to another file
// system to be kept.
const maxKept = 64 << 20

// moveToReview moves a replaced or removed file into the review. false: there is one
// already, or it cannot be kept.
func (a *applier) moveToReview(dir int, temp, path string, st *unix.Statx_t) (bool, error) {
	above, name := cut(path)
	in, err := a.keepDir(above)
	if err != nil {
		return false, err
	}
	if in < 0 {
		return false, nil
	}
	defer unix.Close(in)
	err = a.d.rename(dir, temp, in, name, unix.RENAME_NOREPLACE)
	switch {
	case err == nil:
		return true, a.d.sync(in)
	case errors.Is(err, unix.EEXIST):
		return false, nil
	case !errors.Is(err, unix.EXDEV):
		return false, err
	}
	return false, a.keepCopy(dir, temp, in, name, st)
}

// keepDir opens the directory of the review for what was at path, and makes it.
func (a *applier) keepDir(path string) (int, error) {
	fd, err := workspace.OpenBeneath(a.trees.base, path, unix.O_RDONLY|unix.O_DIRECTORY)
	if err == nil || !errors.Is(err, unix.ENOENT) {
		if absent(err) {
			return -1, nil // the old side has a file where a directory would have to be
		}
		return fd, err
	}
	above, name := cut(path)
	in, err := a.keepDir(above)
	if err != nil || in < 0 {
		return in, err
	}
	defer unix.Close(in)
	if err := a.d.do("mkdir", func() error { return unix.Mkdirat(in, name, 0o700) }); err != nil && !errors.Is(err, unix.EEXIST) {
		return -1, err
	}
	return workspace.OpenBeneath(a.trees.base, path, unix.O_RDONLY|unix.O_DIRECTORY)
}

// keepCopy copies to another file system, under a name that only becomes the right one
// when all is there. What an interrupted apply has left there under the private name is
// made again.
func (a *applier) keepCopy(dir int, temp string, in int, name string, st *unix.Statx_t) error {
	if err := a.remove(in, temp); err != nil || unix.Fstatat(in, name, new(unix.Stat_t), unix.AT_SYMLINK_NOFOLLOW) == nil {
		return err // or it was kept already
	}
	if typeOf(st.Mode) == Link {
		target, err := readLink(dir, temp)
		if err != nil {
			return err
		}
		return a.d.do("symlink", func() error { return unix.Symlinkat(target, in, name) })
	}
	if typeOf(st.Mode) != File || st.Size > maxKept {
		return nil
	}
	from, err := openFile(dir, temp, false)
	if err != nil {
		return nil // it was not readable before, either
	}
	defer from.Close()
	to, err := a.d.create(in, temp)
	if err != nil {
		return err
	}
	defer to.Close()
	if err := a.d.copy(to, from, int64(st.Size)); err != nil {
		return errors.Join(err, a.d.unlink(in, temp))
	}
	if err := errors.Join(unix.Fchmod(int(to.Fd()), uint32(st.Mode)&0o777), a.d.sync(int(to.Fd()))); err != nil {
		return err
	}
	return a.d.rename(in, temp, in, name, unix.RENAME_NOREPLACE)
}

// remove takes a private name out of the review, if it is there.
func (a *applier) remove(in int, temp string) error {
	if unix.Fstatat(in, temp, new(unix.Stat_t), unix.AT_SYMLINK_NOFOLLOW) != nil {
		return nil
	}
	return a.d.unlink(in, temp)
}
