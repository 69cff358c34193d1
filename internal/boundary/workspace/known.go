//go:build linux

package workspace

import (
	"bytes"
	"errors"
	"io"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/paths"
)

// isKnown reports whether what appeared at a path may stay, because it is in a worktree
// and the workspace had the same at the same path when the run began: the host obeys
// that already.
func (v *settle) isKnown(at string) bool {
	main := v.snap.main
	if main == nil || v.external {
		return false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for top := parent(at); ; top = parent(top) {
		switch {
		case top == "" && v.t == main.trees[0]:
			return false
		case v.isWorktree(top):
			rel := Name(strings.TrimPrefix(at[len(top):], "/"))
			return v.isWhole(top) && slices.ContainsFunc(main.trees[0].Rows, func(r row) bool { return r.Path == rel && !r.Linked })
		case top == "":
			return false
		}
	}
}

// isWorktree reports whether a directory of the tree has a .git file that may stay.
func (v *settle) isWorktree(top string) bool {
	fd, err := OpenBeneath(v.root, top, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	target, ok := readPointer(fd, ".git")
	return ok && v.leadsToRepository(top, target)
}

// isWhole reports whether nothing in a worktree differs from what the workspace had at
// paths that the host obeys. All of them count: a setting that is the same may start a
// program that is not. The caller holds mu.
func (v *settle) isWhole(top string) bool {
	full := v.full(top)
	is, done := v.whole[full]
	if !done {
		is = v.compareWith(v.snap.main, top)
		v.whole[full] = is
	}
	return is
}

func (v *settle) compareWith(main *Snapshot, top string) bool {
	for _, r := range main.obeyed { // outside, where the worktree may have another beside it
		if rel := relativePath(main.Root, string(r.Path)); strings.HasPrefix(rel, "../") {
			if p := path.Join(string(v.full(top)), rel); p != string(r.Path) && (paths.Within(string(v.t.Root), p) || v.inWorkspace(p)) {
				return false
			}
		}
	}
	base, err := openResolved(main.Root, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return false
	}
	defer unix.Close(base)
	in, err := OpenBeneath(v.root, top, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return false
	}
	defer unix.Close(in)
	c := comparison{in: in, base: base, began: main.began, spend: v.budget.spend}
	t := main.trees[0]
	return !slices.ContainsFunc(slices.Concat(t.Rows, t.Absent), func(r row) bool { return !r.Linked && !c.same(string(r.Path), &r) })
}

// relativePath is the way from one absolute path to another, by their texts.
func relativePath(from, to string) string {
	up := ""
	for ; !paths.Within(from, to); from = path.Dir(from) {
		up += "../"
	}
	return up + strings.TrimPrefix(to[len(strings.TrimSuffix(from, "/")):], "/")
}

// comparison compares two directories, of which base is the host's.
type comparison struct {
	in, base int
	began    int64
	spend    func(int64) bool
}

// same reports whether nothing is at rel in in, or the same as in base, where it
// was not changed since before the run: no program can set a time of change. r is what
// it was then; nil for something in a directory that was there.
func (c *comparison) same(rel string, r *row) bool {
	now, err := c.open(c.in, rel)
	if err != nil {
		return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR)
	}
	defer now.close()
	was, err := c.open(c.base, rel)
	if err != nil {
		return false
	}
	defer was.close()
	const bits = typeMask | 0o7000 | 0o100
	if now.st.Mode&bits != was.st.Mode&bits || r != nil && (r.Ino != was.st.Ino || r.Dev != was.st.Dev) {
		return false
	}
	equal := false
	switch now.st.Mode & typeMask {
	case typeReg:
		equal = now.st.Nlink == 1 && c.sameBytes(now, was)
	case typeLink:
		equal = sameLinks(rel, now, was)
	case typeDir:
		equal = c.sameNames(rel, now)
	}
	var st unix.Stat_t
	return equal && unix.Fstat(was.fd, &st) == nil && st.Ctim.Nano() < c.began
}

func (c *comparison) open(dir int, rel string) (*handle, error) {
	fd, err := OpenBeneath(dir, rel, unix.O_PATH|unix.O_NOFOLLOW)
	if err != nil {
		return nil, err
	}
	h := &handle{fd: fd}
	if err := unix.Fstat(fd, &h.st); err != nil {
		h.close()
		return nil, err
	}
	return h, nil
}

func (c *comparison) sameBytes(now, was *handle) bool {
	if now.st.Size != was.st.Size || was.st.Size > maxSum || !c.spend(2*was.st.Size) {
		return false
	}
	var all [2][]byte
	for i, h := range []*handle{now, was} {
		f, err := h.read()
		if err != nil {
			return false
		}
		all[i], err = io.ReadAll(io.LimitReader(f, maxSum+1))
		f.Close()
		if err != nil {
			return false
		}
	}
	return bytes.Equal(all[0], all[1])
}

// sameLinks reports whether two links have one text, which stays in the worktree: then
// it leads to a path that is compared as well.
func sameLinks(rel string, now, was *handle) bool {
	text, err := now.link()
	other, err2 := was.link()
	to := path.Join(path.Dir(rel), text)
	return err == nil && err2 == nil && text == other && path.Clean(text) == text && !path.IsAbs(text) && to != ".." && !strings.HasPrefix(to, "../")
}

// sameNames reports whether all that is in a directory is the same.
func (c *comparison) sameNames(rel string, now *handle) bool {
	fd, err := openAt(now.fd, []byte(".\x00"))
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	var n int
	buf := make([]byte, 64<<10)
	if buf, n, err = readDirents(fd, buf); err != nil {
		return false
	}
	for rest := buf[:n]; len(rest) > 0; {
		var e entry
		if e, rest = next(rest); e.nameZ != nil && !c.same(rel+"/"+string(e.name()), nil) {
			return false
		}
	}
	return true
}
