//go:build linux

package review

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// trees are the three trees of a review, as descriptors of their tops.
type trees struct {
	upper int // what the run left; -1 in a list
	base  int // what was kept of the start; -1 while nothing was
	tree  int // the workspace
	ready int // what Apply prepares, where no run can write; -1 while nothing is

	// gone are paths that Apply knows were not there at the start.
	gone  map[string]bool
	modes map[string]uint32 // of what was kept, when the run began; 0: not known
}

const openTop = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_CLOEXEC

func openTrees(src Source) (*trees, error) {
	t := &trees{upper: -1, base: -1, tree: -1, ready: -1}
	var err error
	if t.tree, err = unix.Open(src.Workspace, openTop|unix.O_NOFOLLOW, 0); err != nil {
		return nil, fmt.Errorf("opening the workspace: %w", &os.PathError{Op: "open", Path: src.Workspace, Err: err})
	}
	if t.upper, err = unix.Open(src.Dir+"/upper", openTop|unix.O_NOFOLLOW, 0); err != nil {
		t.close()
		return nil, fmt.Errorf("opening the run's changes: %w", &os.PathError{Op: "open", Path: src.Dir + "/upper", Err: err})
	}
	if err := t.openBase(src.Dir); err != nil && !errors.Is(err, unix.ENOENT) {
		t.close()
		return nil, fmt.Errorf("opening the saved start state: %w", err)
	}
	return t, nil
}

func (t *trees) openBase(dir string) (err error) {
	if t.base < 0 {
		t.base, err = unix.Open(dir+"/base", openTop|unix.O_NOFOLLOW, 0)
	}
	return err
}

func (t *trees) openReady(dir string) (err error) {
	if t.ready < 0 {
		t.ready, err = unix.Open(dir+"/ready", openTop|unix.O_NOFOLLOW, 0)
	}
	return err
}

func (t *trees) close() {
	for _, fd := range []*int{&t.upper, &t.base, &t.tree, &t.ready} {
		if *fd >= 0 {
			unix.Close(*fd)
		}
		*fd = -1
	}
}

// level is one directory in the three trees. A tree that has none there is nil.
type level struct {
	path              string
	upper, base, tree *os.File
	t                 *trees
}

func (l *level) close() {
	for _, f := range []*os.File{l.upper, l.base, l.tree} {
		if f != nil {
			f.Close()
		}
	}
}

// old is the old side of a name: what was kept of it, or else what is in the
// workspace.
type old struct {
	st   unix.Statx_t
	dir  *os.File
	kept bool
}

// old looks a name up as it was. Nothing there is no error.
func (l *level) old(name string) (o old, ok bool, err error) {
	if l.t.gone[join(l.path, name)] {
		return o, false, nil
	}
	for _, d := range []*os.File{l.base, l.tree} {
		if d == nil {
			continue
		}
		err := status(int(d.Fd()), name, &o.st)
		if err == nil {
			o.dir, o.kept = d, d == l.base
			if o.kept {
				o.st.Mode = l.t.mode(join(l.path, name), o.st.Mode)
			}
			if o.kept && typeOf(o.st.Mode) == Dir {
				// A directory is kept for what is in it: its own bits are those of
				// the workspace while that has one.
				var st unix.Statx_t
				if l.tree != nil && status(int(l.tree.Fd()), name, &st) == nil && typeOf(st.Mode) == Dir {
					o.st, o.kept, o.dir = st, false, l.tree
				}
			}
			return o, true, nil
		}
		if !absent(err) && !errors.Is(err, unix.ENAMETOOLONG) {
			return o, false, err
		}
	}
	return o, false, nil
}

// oldNames calls f once for each name that the directory had.
func (l *level) oldNames(f func(string) error) error {
	for _, d := range []*os.File{l.base, l.tree} {
		if d == nil {
			continue
		}
		var st unix.Statx_t
		err := names(d, func(n string) error {
			if d == l.tree && l.base != nil && status(int(l.base.Fd()), n, &st) == nil {
				return nil // already visited
			}
			if l.t.gone[join(l.path, n)] {
				return nil
			}
			return f(n)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// openLevel opens the directory at path in the trees that are asked for.
func (t *trees) openLevel(path string, upper, lower bool) (l *level, opened bool, err error) {
	l = &level{path: path, t: t}
	if upper {
		if l.upper, opened, err = openOwn(t.upper, path); err != nil {
			return nil, false, err
		}
	}
	if !lower {
		return l, opened, nil
	}
	if t.base >= 0 {
		if l.base, err = openDir(t.base, path); err != nil && !absent(err) && !errors.Is(err, unix.ELOOP) {
			l.close()
			return nil, false, err
		}
	}
	if l.tree, err = openDir(t.tree, path); err != nil && !absent(err) && !errors.Is(err, unix.ELOOP) {
		l.close()
		return nil, false, err
	}
	return l, opened, nil
}

// rewind makes the old names be listed from the beginning again.
func (l *level) rewind() error {
	for _, d := range []*os.File{l.base, l.tree} {
		if d == nil {
			continue
		}
		if _, err := d.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
	return nil
}
