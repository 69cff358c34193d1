//go:build linux

package workspace

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// RemoveTree removes a directory that a hostile program has filled: also one
// whose directories are closed, or deeper in each other than descriptors and
// paths reach. No other process may be able to change what is above it.
func RemoveTree(dir string) error {
	above, err := openState(filepath.Dir(dir))
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err == nil {
		err = removeEntry(above, filepath.Base(dir))
		unix.Close(above)
	}
	if err != nil {
		return fmt.Errorf("removing %s: %w", dir, err)
	}
	return nil
}

// removeEntry removes the file with a name, and all below it. Others may be changing
// it: nothing outside the directory that was opened is removed, and what they add may
// be left, which is an error.
func removeEntry(dir int, name string) error {
	err := unix.Unlinkat(dir, name, 0)
	if !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM) { // unlink(2) of a directory
		return ignoreGone(err)
	}
	h, herr := openHandle(dir, name)
	if herr != nil {
		return ignoreGone(herr)
	}
	defer h.close()
	if !h.is(typeDir) {
		return err
	}
	r := &treeRemover{top: h.fd}
	if err := r.empty(h); err != nil {
		return err
	}
	for i := 0; i < r.moved; i++ {
		if err := r.drop(movedName(i)); err != nil {
			return err
		}
	}
	return ignoreGone(unix.Unlinkat(dir, name, unix.AT_REMOVEDIR))
}

// treeRemover empties directories of one tree; those found in them are moved to its
// top, so that none is deeper than one.
type treeRemover struct {
	top   int
	moved int
}

// movedName is under what name the nth directory waits. It is unlikely to be
// there, and if it is, nothing is lost by taking its place: all of it goes.
func movedName(n int) string { return ".holdfast-removed-" + strconv.Itoa(n) }

func (r *treeRemover) drop(name string) error {
	h, err := openHandle(r.top, name)
	if err != nil {
		return ignoreGone(err)
	}
	defer h.close()
	if !h.is(typeDir) {
		return ignoreGone(unix.Unlinkat(r.top, name, 0))
	}
	if err := r.empty(h); err != nil {
		return err
	}
	return ignoreGone(unix.Unlinkat(r.top, name, unix.AT_REMOVEDIR))
}

// empty removes the files of a directory and moves its directories to the top.
func (r *treeRemover) empty(h *handle) error {
	list, err := h.openOwned()
	if err != nil {
		return err
	}
	defer unix.Close(list)
	names, err := readNames(list)
	if err != nil {
		return err
	}
	for _, name := range names {
		err := unix.Unlinkat(list, name, 0)
		if errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EPERM) { // unlink(2) of a directory
			err = r.moveToTop(list, name)
		}
		if ignoreGone(err) != nil {
			return err
		}
	}
	return nil
}

// moveToTop brings a directory to the top. It must be open to be moved: its ".." is
// written to.
func (r *treeRemover) moveToTop(parent int, name string) error {
	h, err := openHandle(parent, name)
	if err != nil {
		return err
	}
	defer h.close()
	if !h.is(typeDir) {
		return unix.EPERM // a file that cannot be removed
	}
	if err := chmodFD(h.fd, 0o700); err != nil {
		return err
	}
	for {
		to := movedName(r.moved)
		r.moved++
		if err = unix.Renameat2(parent, name, r.top, to, unix.RENAME_NOREPLACE); !errors.Is(err, unix.EEXIST) {
			return err
		}
	}
}
