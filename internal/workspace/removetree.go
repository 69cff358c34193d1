//go:build linux

package workspace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// RemoveTree removes a directory that a hostile program has filled: also one
// whose directories are closed, or deeper in each other than descriptors and
// paths reach. Nobody else may be writing to it.
func RemoveTree(dir string) error {
	if err := os.RemoveAll(dir); err == nil {
		return nil
	}
	top, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("removing %s: %w", dir, err)
	}
	defer unix.Close(top)
	if err := chmodFD(top, 0o700); err != nil {
		return fmt.Errorf("removing %s: %w", dir, err)
	}
	r := &treeRemover{top: top}
	if err := r.empty(top); err != nil {
		return fmt.Errorf("removing %s: %w", dir, err)
	}
	for i := 0; i < r.moved; i++ {
		if err := r.drop(movedName(i)); err != nil {
			return fmt.Errorf("removing %s: %w", dir, err)
		}
	}
	return os.Remove(filepath.Clean(dir))
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
	fd, err := unix.Openat(r.top, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return gone(err)
	}
	err = r.empty(fd)
	unix.Close(fd)
	if err != nil {
		return err
	}
	return gone(unix.Unlinkat(r.top, name, unix.AT_REMOVEDIR))
}

// empty removes the files of the directory at fd and moves its directories to
// the top.
func (r *treeRemover) empty(fd int) error {
	list, err := openAt(fd, []byte(".\x00"))
	if err != nil {
		return err
	}
	defer unix.Close(list)
	names, err := readNames(list)
	if err != nil {
		return err
	}
	for _, name := range names {
		err := unix.Unlinkat(fd, name, 0)
		if errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EPERM) { // unlink(2) of a directory
			err = r.move(fd, name)
		}
		if gone(err) != nil {
			return err
		}
	}
	return nil
}

// move brings a directory to the top. It must be open to be moved: its ".." is
// written to.
func (r *treeRemover) move(parent int, name string) error {
	fd, err := unix.Openat(parent, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	err = chmodFD(fd, 0o700)
	unix.Close(fd)
	if err != nil {
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

// readNames lists what a directory holds.
func readNames(fd int) ([]string, error) {
	var names []string
	buf := make([]byte, 32<<10)
	for {
		n, err := unix.Getdents(fd, buf)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n == 0 {
			if errors.Is(err, unix.ENOENT) {
				err = nil
			}
			return names, err
		}
		for list := buf[:n]; len(list) > 0; {
			var e entry
			if e, list = next(list); e.nameZ != nil {
				names = append(names, string(e.name()))
			}
		}
	}
}
