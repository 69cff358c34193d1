//go:build linux

package review

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// swap lets what was prepared take the place of what is there, looks at what went
// in and at what came out, and puts it back if either is not what was expected.
func (a *applier) swap(w *work) error {
	if !a.isInPlace(w.at) {
		return &conflictError{fmt.Sprintf("directory %q was moved away in the meantime", w.at)}
	}
	if w.in.Was.Type == None {
		return a.placeNew(w)
	}
	err := a.d.rename(w.tempDir, w.in.Temp, w.dir, w.name, unix.RENAME_EXCHANGE)
	if errors.Is(err, unix.ENOENT) {
		return &conflictError{"it was removed in the meantime"}
	}
	if errors.Is(err, unix.EINVAL) {
		return errors.New("the file system cannot exchange two names at once (renameat2), without which a file could be lost")
	}
	if err != nil {
		return err
	}
	ok, err := w.in.Was.matches(w.tempDir, w.in.Temp, true)
	why := "it was changed in the meantime"
	if ok && err == nil && !a.isInPlace(w.at) {
		ok, why = false, fmt.Sprintf("directory %q was moved away in the meantime", w.at)
	}
	if ok && err == nil {
		if other := a.checkPlaced(w); other != nil {
			return errors.Join(other, a.takeOut(w))
		}
		err = a.keepReplaced(w.tempDir, w.in.Temp, string(w.in.Path))
		if !errors.Is(err, unix.ENOTEMPTY) {
			return err
		}
		why = "it holds something that the run did not know, or whose removal was not accepted"
	}
	if e := a.swapBack(w.tempDir, w.dir, w.in.Temp, w.name, w.ino); e != nil {
		return errors.Join(err, e)
	}
	return &conflictError{why}
}

// placeNew is swap for a path where nothing was.
func (a *applier) placeNew(w *work) error {
	err := a.d.rename(w.tempDir, w.in.Temp, w.dir, w.name, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EEXIST) {
		return &conflictError{"something appeared there in the meantime"}
	}
	if err != nil {
		return err
	}
	if !a.isInPlace(w.at) {
		if err := a.d.rename(w.dir, w.name, w.tempDir, w.in.Temp, unix.RENAME_NOREPLACE); err != nil {
			return err
		}
		return &conflictError{fmt.Sprintf("directory %q was moved away in the meantime", w.at)}
	}
	if other := a.checkPlaced(w); other != nil {
		return errors.Join(other, a.takeOut(w))
	}
	return nil
}

// swapBack undoes an exchange. If another program put yet another file into the place,
// that file stays there, and what came out is left under its private name.
func (a *applier) swapBack(room, dir int, temp, name string, ours tempInode) error {
	err := a.d.rename(room, temp, dir, name, unix.RENAME_EXCHANGE)
	if errors.Is(err, unix.ENOENT) { // another program removed ours
		err = a.d.rename(room, temp, dir, name, unix.RENAME_NOREPLACE)
	}
	if err != nil {
		return fmt.Errorf("putting it back (it is named %q now): %w", temp, err)
	}
	var st unix.Stat_t
	if err := unix.Fstatat(room, temp, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return nil // taken by another program: it was ours
	}
	if st.Ino == ours.Ino && st.Dev == ours.Dev {
		return nil
	}
	if err := a.d.rename(room, temp, dir, name, unix.RENAME_EXCHANGE); err != nil {
		return fmt.Errorf("putting it back (it is named %q now): %w", temp, err)
	}
	return &strayError{temp}
}
