//go:build linux

package workspace

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Directory returns the device and inode of the workspace.
func (s *Snapshot) Directory() (dev, ino uint64) { return s.trees[0].Dev, s.trees[0].Ino }

// maxHeldForReview is how many things are copied for a review, which a human looks through.
const maxHeldForReview = 500

// HoldForReview moves what was quarantined out of the workspace itself into upper, the
// upper directory of a review, under the paths that it had, and sets Held of each to
// where it is then. It is copied: another run may still have the file open, or another
// name of it, and what was shown is not to change. What is not whole, is no file,
// directory or link, has a path that is taken, or is one too many stays in the quarantine.
func (s *Snapshot) HoldForReview(all []Quarantined, upper string) error {
	to, err := openState(upper)
	if err != nil {
		return fmt.Errorf("opening the review: %w", err)
	}
	defer unix.Close(to)
	root, err := openResolved(s.Root, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return fmt.Errorf("opening the workspace: %w", err)
	}
	defer unix.Close(root)
	var errs []error
	count, more := 0, 0
	for i := range all {
		rel, inside := strings.CutPrefix(string(all[i].Path), s.Root+"/")
		if !inside || all[i].Cut || all[i].Type == "special" {
			continue
		}
		if count == maxHeldForReview {
			more++
			continue
		}
		count++
		held, err := s.holdOne(&all[i], root, to, rel)
		if err == nil && held {
			slot := filepath.Dir(filepath.Dir(string(all[i].Held)))
			all[i].Held = Name(filepath.Join(upper, rel))
			err = RemoveTree(slot)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("holding %q for a review: %w", all[i].Path, err))
		}
	}
	if more > 0 {
		errs = append(errs, fmt.Errorf("a review holds %d files at most: %d more stay in the quarantine", maxHeldForReview, more))
	}
	return errors.Join(errs...)
}

// holdOne copies one thing to rel in the directory to. held is false if it stays where
// it is.
func (s *Snapshot) holdOne(q *Quarantined, root, to int, rel string) (held bool, err error) {
	from, err := openState(filepath.Dir(string(q.Held)))
	if err != nil {
		return false, err
	}
	defer unix.Close(from)
	name := path.Base(rel)
	h, err := openHandle(from, name)
	if err != nil {
		return false, err
	}
	defer h.close()
	in, err := makeLike(root, to, path.Dir(rel))
	if err != nil {
		return false, err
	}
	defer unix.Close(in)
	if unix.Fstatat(in, name, new(unix.Stat_t), unix.AT_SYMLINK_NOFOLLOW) == nil {
		return false, nil
	}
	c := copier{left: maxHeldCopy, afford: s.Budget.spend, modes: true}
	if err := c.copyTo(h, name, in, 0); err != nil || c.cut {
		return false, errors.Join(err, removeEntry(in, name))
	}
	if !h.is(typeReg) {
		return true, nil
	}
	made, err := openHandle(in, name) // in the quarantine it has no executable bits
	if err == nil {
		err = setMode(made.fd, q.Mode&0o777)
		made.close()
	}
	return true, err
}

// makeLike makes the directory rel in the tree to, with the permission bits that the
// directories of that path have in the tree root, and opens it.
func makeLike(root, to int, rel string) (int, error) {
	fd, err := openAt(to, []byte(".\x00"))
	if err != nil || rel == "." {
		return fd, err
	}
	at := ""
	for part := range strings.SplitSeq(rel, "/") {
		at = joinPath(at, part)
		mode := uint32(0o755)
		if was, err := OpenBeneath(root, at, unix.O_PATH|unix.O_DIRECTORY); err == nil {
			var st unix.Stat_t
			if unix.Fstat(was, &st) == nil {
				mode = st.Mode & 0o7777
			}
			unix.Close(was)
		}
		next := -1
		err = unix.Mkdirat(fd, part, 0o700)
		made := err == nil
		if made || errors.Is(err, unix.EEXIST) {
			next, err = openAt(fd, append([]byte(part), 0))
		}
		if err == nil && made {
			err = unix.Fchmod(next, mode|0o700)
		}
		unix.Close(fd)
		if err != nil {
			return -1, &os.PathError{Op: "mkdir", Path: at, Err: err}
		}
		fd = next
	}
	return fd, nil
}
