//go:build linux

package supervise

import (
	"bytes"
	"path"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/event"
)

const xattrNameMax = 255 // XATTR_NAME_MAX

// opens reports whether c is an open of a file.
func (c *call) opens() bool { return c.info.shape == shapeOpen }

// removesDirectory reports whether c is rmdir(2) or means it.
func (c *call) removesDirectory() bool {
	return c.nr == sysRmdir || c.nr == unix.SYS_UNLINKAT && c.args[2]&unix.AT_REMOVEDIR != 0
}

// invalid is the error of a call whose flags or mode the kernel refuses before it looks
// at a path.
func (c *call) invalid() string {
	flags, bad := c.flag(), false
	switch c.info.action {
	case event.FileOpen, event.FileWrite:
		const unnamed = unix.O_TMPFILE &^ unix.O_DIRECTORY
		switch f := c.flags; {
		case !c.opens() || f&unix.O_PATH != 0:
		case f&unnamed != 0:
			bad = f&(unix.O_TMPFILE|unix.O_CREAT) != unix.O_TMPFILE || f&unix.O_ACCMODE == unix.O_RDONLY
		default:
			bad = f&(unix.O_DIRECTORY|unix.O_CREAT) == unix.O_DIRECTORY|unix.O_CREAT
		}
	case event.FileRename:
		bad = flags&^(unix.RENAME_NOREPLACE|unix.RENAME_EXCHANGE|unix.RENAME_WHITEOUT) != 0 ||
			flags&unix.RENAME_EXCHANGE != 0 && flags != unix.RENAME_EXCHANGE
	case event.FileLink:
		bad = flags&^(unix.AT_SYMLINK_FOLLOW|unix.AT_EMPTY_PATH) != 0
	case event.FileChmod, event.FileChown:
		bad = flags&^(unix.AT_SYMLINK_NOFOLLOW|unix.AT_EMPTY_PATH) != 0
	case event.FileUnlink:
		bad = c.nr == unix.SYS_UNLINKAT && c.args[2]&^unix.AT_REMOVEDIR != 0
	case event.FileXattr:
		if n := len(c.attribute); n == 0 || n > xattrNameMax {
			return "ERANGE"
		}
		bad = c.setFlags()&^(unix.XATTR_CREATE|unix.XATTR_REPLACE) != 0
	case event.FileTruncate:
		bad = int64(c.args[1]) < 0
	case event.FileMknod:
		switch c.arg(c.info.arg) & unix.S_IFMT {
		case unix.S_IFDIR:
			return "EPERM"
		case 0, unix.S_IFREG, unix.S_IFCHR, unix.S_IFBLK, unix.S_IFIFO, unix.S_IFSOCK:
		default:
			bad = true
		}
	}
	if bad {
		return "EINVAL"
	}
	return ""
}

// kindError is the error of a call of the wrong kind for the file, as far as the kernel
// reports it before it checks how the file system is mounted; "" for none.
func (c *call) kindError(at *location, w want, creates bool) string {
	if creates && w != wantCreate && at.slashed {
		return "EISDIR"
	}
	if at.errno != 0 {
		return unix.ErrnoName(at.errno)
	}
	slash, directory := at.slashed, isDirectory(at)
	switch {
	case w == wantCreate && at.exists:
		return "EEXIST"
	case w == wantCreate && slash && c.info.action != event.FileMkdir:
		return "ENOENT"
	case w == wantRemove && len(at.name) == 0 && at.dir != nil:
		return c.removesDots(at)
	case w == wantCreate || w == wantRemove:
		return ""
	case slash && at.exists && !directory:
		return "ENOTDIR"
	case c.opens() && at.exists:
		return c.openError(at, creates)
	case c.info.action == event.FileTruncate && directory:
		return "EISDIR"
	case c.info.action == event.FileTruncate && at.exists && at.stat.Mode&unix.S_IFMT != unix.S_IFREG:
		return "EINVAL"
	}
	return ""
}

// openError has the errors of open that come before the mode bits.
func (c *call) openError(at *location, creates bool) string {
	kind, f := at.stat.Mode&unix.S_IFMT, c.flags
	switch directory := kind == unix.S_IFDIR; {
	case creates && f&unix.O_EXCL != 0:
		return "EEXIST"
	case creates && directory:
		return "EISDIR"
	case !directory && f&unix.O_DIRECTORY != 0:
		return "ENOTDIR"
	case f&unix.O_PATH != 0, f&unix.O_TMPFILE == unix.O_TMPFILE:
	case kind == unix.S_IFLNK:
		return "ELOOP"
	case directory && f&(unix.O_ACCMODE|unix.O_TRUNC) != 0:
		return "EISDIR"
	}
	return ""
}

// removesDots is the outcome of removing a path that ends in dots, or the root.
func (c *call) removesDots(at *location) string {
	switch {
	case c.info.action == event.FileRename:
		return "EBUSY"
	case !c.removesDirectory():
		return "EISDIR"
	}
	switch string(at.lastName()) {
	case ".":
		return "EINVAL"
	case "..":
		return "ENOTEMPTY"
	}
	return "EBUSY"
}

// removeError is the error of removing a name that the caller may remove.
func (s *Supervisor) removeError(c *call, at *location) string {
	directory := at.stat.Mode&unix.S_IFMT == unix.S_IFDIR
	switch {
	case !directory && (c.removesDirectory() || at.slashed):
		return "ENOTDIR"
	case directory && !c.removesDirectory():
		return "EISDIR"
	case s.resolver.top(at):
		return "EBUSY"
	case directory && s.resolver.hasEntries(join(at.dir.real, at.name)):
		return "ENOTEMPTY"
	}
	return ""
}

// lastName is the last name of the path as it was asked for, without slashes; empty for
// the root.
func (at *location) lastName() []byte {
	name := bytes.TrimRight(at.asked, "/")
	return name[bytes.LastIndexByte(name, '/')+1:]
}

// top reports whether something is mounted at s, so that it cannot be moved or removed
// (EBUSY).
func (r *resolver) top(s *location) bool {
	switch {
	case s.dir == nil || s.tree == nil:
		return false
	case len(s.name) == 0:
		return s.tree.Path == s.dir.real
	}
	return s.dir.below[string(s.name)] == s.tree
}

// hasEntries reports whether there is anything in a directory of the view.
func (r *resolver) hasEntries(dir string) bool {
	fd, errno := openIn(r.root, append([]byte(dir), 0), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_NONBLOCK)
	if errno != 0 {
		return false
	}
	defer unix.Close(fd)
	var buf [1024]byte
	for {
		n, err := unix.Getdents(fd, buf[:])
		if err != nil || n <= 0 {
			return false
		}
		if _, _, names := unix.ParseDirent(buf[:n], 1, nil); len(names) > 0 { // dots are left out
			return true
		}
	}
}

// isMounted reports whether a path of the view is what is mounted there.
func (r *resolver) isMounted(at string) bool {
	dir, name := path.Split(at)
	fd, errno := openIn(r.root, append([]byte(dir), 0), unix.O_PATH|unix.O_DIRECTORY)
	if errno != 0 {
		return false
	}
	defer unix.Close(fd)
	var st unix.Statx_t
	err := unix.Statx(fd, name, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, 0, &st)
	return err == nil && st.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0
}
