//go:build linux

package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/policy"
)

// CopyReport says what became of a tree that was copied.
type CopyReport struct {
	Files  int64         // that were copied, of every type
	Bytes  int64         // that were written; not those shared with the original (ioctl_ficlone(2))
	Shared bool          // the file system shares contents
	Left   []Name        // what was left out, each with the reason
	From   policy.FileID // the directory that was copied
}

// SpaceError says that a copy would take more than it may.
type SpaceError struct {
	Root  string
	Limit int64 // bytes
	Free  bool  // the limit is what the file system has left
}

func (e *SpaceError) Error() string {
	if e.Free {
		return fmt.Sprintf("copying %s: the state's file system has room for no more than %d MiB of it", e.Root, e.Limit>>20)
	}
	return fmt.Sprintf("copying %s: it is larger than the limit of disk, %d MiB", e.Root, e.Limit>>20)
}

// Hint names the ways out.
func (e *SpaceError) Hint() string {
	if e.Free {
		return "free some space, set XDG_STATE_HOME to a directory on a larger file system, or let a layer be used: workspace.view: auto"
	}
	return "raise it with --disk, choose a smaller --workspace, or let a layer be used: workspace.view: auto"
}

// CopyTree copies the tree at src into the empty directory dst: contents, modes,
// times, links, names of one file among themselves, attributes of the kind user.
// and access control lists, holes; as root the owners too. Devices, FIFOs,
// sockets and what cannot be read are left out. limit is in bytes, 0 for none.
// Neither path has a link in it.
func CopyTree(ctx context.Context, src, dst string, limit int64) (CopyReport, error) {
	c := &treeCopier{ctx: ctx, root: src, limit: limit, links: map[inode]string{}, owners: os.Geteuid() == 0}
	err := c.tree(src, dst)
	var space *SpaceError
	if err != nil && !errors.As(err, &space) {
		err = fmt.Errorf("copying %s: %w", src, err)
	}
	return c.report, err
}

func (c *treeCopier) tree(src, dst string) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dst, &st); err != nil {
		return err
	}
	if room := int64(st.Bavail) * st.Bsize / 10 * 9; c.limit <= 0 || room < c.limit {
		c.limit, c.free = room, true
	}
	from, err := openResolved(src, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return err
	}
	defer unix.Close(from)
	var root unix.Stat_t
	if err := unix.Fstat(from, &root); err != nil {
		return err
	}
	c.report.From = policy.FileID{Dev: root.Dev, Ino: root.Ino}
	if c.dst, err = openState(dst); err != nil {
		return err
	}
	defer unix.Close(c.dst)
	if err := c.dir(from, c.dst, 0); err != nil {
		return err
	}
	return c.finishDir(from, c.dst)
}

// treeCopier is one copy.
type treeCopier struct {
	ctx     context.Context
	root    string
	dst     int // the directory that the copy is in
	path    []byte
	links   map[inode]string // files with several names → the first of them
	limit   int64
	free    bool // limit is what the file system has left
	owners  bool
	noClone bool
	report  CopyReport
}

// maxLeft bounds how many files that were left out are named.
const maxLeft = 1000

func (c *treeCopier) leave(why string) {
	if len(c.report.Left) < maxLeft {
		c.report.Left = append(c.report.Left, Name(string(c.path)+": "+why))
	}
}

// dir copies what is in a directory.
func (c *treeCopier) dir(from, to, depth int) error {
	if depth == factsDepth {
		c.leave("directories too deep in each other")
		return nil
	}
	names, err := readNames(from)
	if err != nil {
		return err
	}
	base := len(c.path)
	for _, name := range names {
		if err := c.ctx.Err(); err != nil {
			return context.Cause(c.ctx)
		}
		if base > 0 {
			c.path = append(c.path[:base], '/')
		}
		c.path = append(c.path, name...)
		if err := c.entry(from, to, name, depth); err != nil {
			return err
		}
		c.path = c.path[:base]
	}
	return nil
}

func (c *treeCopier) entry(from, to int, name string, depth int) error {
	var st unix.Stat_t
	if err := unix.Fstatat(from, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return ignoreGone(err)
	}
	switch st.Mode & typeMask {
	case typeDir:
		return c.subdir(from, to, name, depth)
	case typeReg:
		return c.file(from, to, name, &st)
	case typeLink:
		return c.link(from, to, name, &st)
	case unix.S_IFIFO:
		c.leave("a FIFO")
	case unix.S_IFSOCK:
		c.leave("a socket")
	default:
		c.leave("a device")
	}
	return nil
}

func (c *treeCopier) subdir(from, to int, name string, depth int) error {
	src, err := unix.Openat(from, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		if errors.Is(err, unix.EACCES) {
			c.leave("it cannot be read")
			return nil
		}
		return ignoreGone(err)
	}
	defer unix.Close(src)
	if err := unix.Mkdirat(to, name, 0o700); err != nil {
		return c.withPath(err)
	}
	dst, err := unix.Openat(to, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return c.withPath(err)
	}
	defer unix.Close(dst)
	c.report.Files++
	if err := c.dir(src, dst, depth+1); err != nil {
		return err
	}
	return c.finishDir(src, dst)
}

// finishDir gives a directory the attributes of the original, once it is filled.
func (c *treeCopier) finishDir(src, dst int) error {
	var st unix.Stat_t
	if err := unix.Fstat(src, &st); err != nil {
		return err
	}
	return c.attributes(src, dst, &st)
}

// attributes gives the file at dst what the one at src has.
func (c *treeCopier) attributes(src, dst int, st *unix.Stat_t) error {
	if c.owners {
		if err := unix.Fchown(dst, int(st.Uid), int(st.Gid)); err != nil {
			return c.withPath(err)
		}
	}
	copyXattrs(src, dst)
	if err := unix.Fchmod(dst, st.Mode&0o7777); err != nil {
		return c.withPath(err)
	}
	times := []unix.Timespec{st.Atim, st.Mtim}
	return c.withPath(unix.UtimesNanoAt(unix.AT_FDCWD, selfPath(dst), times, 0))
}

func (c *treeCopier) withPath(err error) error {
	var space *SpaceError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &space):
		return err
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return &SpaceError{Root: c.root, Limit: c.report.Bytes, Free: true}
	}
	return fmt.Errorf("%q: %w", c.path, err)
}

func (c *treeCopier) link(from, to int, name string, st *unix.Stat_t) error {
	buf := make([]byte, unix.PathMax)
	n, err := unix.Readlinkat(from, name, buf)
	if err != nil {
		return ignoreGone(err)
	}
	if err := unix.Symlinkat(string(buf[:n]), to, name); err != nil {
		return c.withPath(err)
	}
	c.report.Files++
	if c.owners {
		if err := unix.Fchownat(to, name, int(st.Uid), int(st.Gid), unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return c.withPath(err)
		}
	}
	return c.withPath(unix.UtimesNanoAt(to, name, []unix.Timespec{st.Atim, st.Mtim}, unix.AT_SYMLINK_NOFOLLOW))
}

func (c *treeCopier) file(from, to int, name string, st *unix.Stat_t) error {
	key := inode{uint64(st.Dev), st.Ino}
	if st.Nlink > 1 {
		if first, ok := c.links[key]; ok {
			if unix.Linkat(c.dst, first, to, name, 0) == nil {
				c.report.Files++
				return nil
			} // too many names, or a path that is too long: a file of its own then
		} else {
			c.links[key] = string(c.path)
		}
	}
	src, err := unix.Openat(from, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		if errors.Is(err, unix.EACCES) || errors.Is(err, unix.EPERM) {
			c.leave("it cannot be read")
			return nil
		}
		return ignoreGone(err)
	}
	defer unix.Close(src)
	if err := unix.Fstat(src, st); err != nil {
		return c.withPath(err)
	}
	if st.Mode&typeMask != typeReg {
		c.leave("it was replaced meanwhile")
		return nil
	}
	dst, err := unix.Openat(to, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return c.withPath(err)
	}
	defer unix.Close(dst)
	if err := c.contents(src, dst, st); err != nil {
		return c.withPath(err)
	}
	c.report.Files++
	return c.attributes(src, dst, st)
}

// contents copies what is in a file, holes as holes.
func (c *treeCopier) contents(src, dst int, st *unix.Stat_t) error {
	if st.Size == 0 {
		return nil
	}
	if !c.noClone {
		err := unix.IoctlFileClone(dst, src)
		if err == nil {
			c.report.Shared = true
			return nil
		}
		c.noClone = errors.Is(err, unix.EXDEV) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOTTY)
	}
	if c.report.Bytes += st.Blocks * 512; c.report.Bytes > c.limit {
		return &SpaceError{Root: c.root, Limit: c.limit, Free: c.free}
	}
	return copyContents(c.ctx, src, dst, st.Size, st.Blocks*512 < st.Size)
}

// copyXattrs copies the attributes that a program may have set. Those that cannot be
// copied are left out: a copy is no worse for work without them.
func copyXattrs(src, dst int) {
	var list [16 << 10]byte
	n, err := unix.Flistxattr(src, list[:])
	if err != nil {
		return
	}
	for _, name := range strings.Split(string(list[:n]), "\x00") {
		if strings.HasPrefix(name, "user.overlay.") || !strings.HasPrefix(name, "user.") && !strings.HasPrefix(name, "system.posix_acl_") {
			continue
		}
		value := make([]byte, 64<<10)
		if m, err := unix.Fgetxattr(src, name, value); err == nil {
			unix.Fsetxattr(dst, name, value[:m], 0) // not supported there, or no room: see above
		}
	}
}
