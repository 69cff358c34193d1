//go:build linux

package review

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary/workspace"
)

// disk makes the system calls that change something. Tests break each of them.
type disk struct {
	hook func(op string, done bool) error // nil outside of tests
	uid  int                              // owner of what is made; -1: the current user
	gid  int
}

func (d *disk) do(op string, call func() error) error {
	if d.hook != nil {
		if err := d.hook(op, false); err != nil {
			return err
		}
	}
	err := call()
	for errors.Is(err, unix.EINTR) {
		err = call()
	}
	if d.hook != nil && err == nil {
		err = d.hook(op, true)
	}
	return err
}

func (d *disk) rename(from int, name string, to int, other string, flags uint) error {
	return d.do("rename", func() error { return unix.Renameat2(from, name, to, other, flags) })
}

func (d *disk) unlink(dir int, name string) error {
	return d.do("unlink", func() error { return unix.Unlinkat(dir, name, 0) })
}

func (d *disk) rmdir(dir int, name string) error {
	return d.do("rmdir", func() error { return unix.Unlinkat(dir, name, unix.AT_REMOVEDIR) })
}

func (d *disk) sync(fd int) error {
	err := d.do("fsync", func() error {
		if d.hook != nil {
			return nil // no test pulls the plug
		}
		return unix.Fsync(fd)
	})
	if errors.Is(err, unix.EINVAL) {
		return nil // a file system that keeps nothing
	}
	return err
}

// mkdir makes a directory with the owner of the workspace.
func (d *disk) mkdir(dir int, name string, mode uint32, group int) error {
	if err := d.do("mkdir", func() error { return unix.Mkdirat(dir, name, 0o700) }); err != nil {
		return err
	}
	f, err := openDir(dir, name)
	if err != nil {
		return err
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return err
	}
	// The name may lead to something else by then: in the workspace of another user, a
	// directory of root that would be given away with all that is in it.
	if _, err := f.Readdirnames(1); !errors.Is(err, io.EOF) || int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%q was replaced while it was being made", name)
	}
	return d.setOwnerAndMode(int(f.Fd()), mode, group)
}

// setOwnerAndMode gives an open new file or directory its owner, its group and its
// bits. A group of -1 means that of the workspace, or our own. A group that we may not
// give is left as it is.
func (d *disk) setOwnerAndMode(fd int, mode uint32, group int) error {
	if d.uid >= 0 {
		gid := d.gid
		if group >= 0 {
			gid = group
		}
		if err := d.do("chown", func() error { return unix.Fchown(fd, d.uid, gid) }); err != nil {
			return err
		}
	} else if group >= 0 && group != os.Getegid() {
		err := d.do("chown", func() error { return unix.Fchown(fd, -1, group) })
		if err != nil && !errors.Is(err, unix.EPERM) {
			return err
		}
	}
	return d.do("chmod", func() error { return unix.Fchmod(fd, mode) })
}

// create makes a new file that no other user may open yet.
func (d *disk) create(dir int, name string) (*os.File, error) {
	var fd int
	err := d.do("create", func() (err error) {
		fd, err = unix.Openat(dir, name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		return err
	})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// symlink makes a link. Its owner is set through a descriptor, because the name may
// lead to something else by then.
func (d *disk) symlink(target string, dir int, name string) error {
	if err := d.do("symlink", func() error { return unix.Symlinkat(target, dir, name) }); err != nil || d.uid < 0 {
		return err
	}
	fd, err := unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFLNK || st.Nlink != 1 {
		return errors.Join(err, fmt.Errorf("%q was replaced while it was being made", name))
	}
	return d.do("chown", func() error {
		return unix.Fchownat(fd, "", d.uid, d.gid, unix.AT_EMPTY_PATH|unix.AT_SYMLINK_NOFOLLOW)
	})
}

func (d *disk) write(f *os.File, b []byte) error {
	return d.do("write", func() error {
		_, err := f.Write(b)
		return err
	})
}

// copy fills to with size bytes of from, with the holes that it has.
func (d *disk) copy(to, from *os.File, size int64) error {
	return d.do("write", func() error {
		if unix.IoctlFileClone(int(to.Fd()), int(from.Fd())) == nil {
			return to.Truncate(size)
		}
		for at := int64(0); at < size; {
			if at = workspace.DataFrom(int(from.Fd()), at, size); at >= size {
				break
			}
			end := size
			if hole, err := unix.Seek(int(from.Fd()), at, unix.SEEK_HOLE); err == nil && hole > at {
				end = min(end, hole)
			}
			if _, err := to.Seek(at, io.SeekStart); err != nil {
				return err
			}
			if _, err := from.Seek(at, io.SeekStart); err != nil {
				return err
			}
			n, err := io.CopyN(to, from, end-at)
			if err != nil {
				return fmt.Errorf("copying: %w", err)
			}
			at += n
		}
		return to.Truncate(size)
	})
}
