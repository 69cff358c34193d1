//go:build linux

package review

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary/workspace"
)

// maxName is the longest path in bytes, from the workspace, that is examined: the
// kernel takes no longer one in a call, so it could not be opened later.
const maxName = 4095

// openDir opens a directory for reading.
func openDir(root int, rel string) (*os.File, error) {
	fd, err := workspace.OpenBeneath(root, rel, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_NONBLOCK)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "directory"), nil
}

// openOwn opens a directory of what a run left, which its owner may always
// read: bits that the run took from it are given back for good.
func openOwn(root int, rel string) (f *os.File, opened bool, err error) {
	f, err = openDir(root, rel)
	var st unix.Stat_t
	switch {
	case err == nil && unix.Fstat(int(f.Fd()), &st) == nil && st.Mode&0o700 == 0o700:
		return f, false, nil
	case err == nil:
		f.Close()
	case !errors.Is(err, unix.EACCES):
		return nil, false, err
	}
	fd, err := workspace.OpenBeneath(root, rel, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW)
	if err != nil {
		return nil, false, err
	}
	defer unix.Close(fd)
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, false, err
	}
	if err := unix.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), st.Mode&0o7777|0o700); err != nil {
		return nil, false, err
	}
	f, err = openDir(fd, "")
	return f, true, err
}

// openFile opens a regular file for reading, and nothing else: it never waits for a
// FIFO or disturbs a device. A file that is closed to its owner is opened up for a
// moment if own is set.
func openFile(dir int, name string, own bool) (*os.File, error) {
	fd, err := workspace.OpenBeneath(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY)
	if own && errors.Is(err, unix.EACCES) {
		fd, err = openClosed(dir, name)
	}
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		unix.Close(fd)
		return nil, errors.Join(err, errors.New("it is not a regular file"))
	}
	return os.NewFile(uintptr(fd), "file"), nil
}

func openClosed(dir int, name string) (int, error) {
	p, err := workspace.OpenBeneath(dir, name, unix.O_PATH|unix.O_NOFOLLOW)
	if err != nil {
		return -1, err
	}
	defer unix.Close(p)
	var st unix.Stat_t
	if err := unix.Fstat(p, &st); err != nil {
		return -1, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return -1, unix.EACCES
	}
	self := fmt.Sprintf("/proc/self/fd/%d", p)
	if err := unix.Chmod(self, st.Mode&0o7777|0o400); err != nil {
		return -1, err
	}
	fd, err := unix.Open(self, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	return fd, errors.Join(err, unix.Chmod(self, st.Mode&0o7777))
}

// status fills st for a name of a directory, never for what a link names.
func status(dir int, name string, st *unix.Statx_t) error {
	const mask = unix.STATX_BASIC_STATS | unix.STATX_BTIME
	return unix.Statx(dir, name, unix.AT_SYMLINK_NOFOLLOW|unix.AT_NO_AUTOMOUNT, mask, st)
}

// statusOf fills st for an open file.
func statusOf(fd int, st *unix.Statx_t) error {
	return unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_BASIC_STATS|unix.STATX_BTIME, st)
}

// absent reports whether err says that there is nothing under a name, or no
// directory where one would have to be.
func absent(err error) bool { return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) }

// readLink reads the text of a link. PATH_MAX bounds it.
func readLink(dir int, name string) (string, error) {
	buf := make([]byte, 4097)
	n, err := unix.Readlinkat(dir, name, buf)
	if err != nil {
		return "", err
	}
	return string(buf[:n]), nil
}

func typeOf(mode uint16) Type {
	switch mode & unix.S_IFMT {
	case unix.S_IFREG:
		return File
	case unix.S_IFDIR:
		return Dir
	case unix.S_IFLNK:
		return Link
	case unix.S_IFIFO:
		return FIFO
	case unix.S_IFSOCK:
		return Socket
	}
	return Device
}

// whiteout reports whether st is the device that marks a deleted name.
func whiteout(st *unix.Statx_t) bool {
	return st.Mode&unix.S_IFMT == unix.S_IFCHR && st.Rdev_major == 0 && st.Rdev_minor == 0
}

func nanos(t unix.StatxTimestamp) int64 { return t.Sec*1e9 + int64(t.Nsec) }

func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

// cut splits a path into its directory and its last name.
func cut(p string) (dir, name string) {
	dir, name = path.Split(p)
	return strings.TrimSuffix(dir, "/"), name
}

// names calls f for each name in a directory, in no order.
func names(d *os.File, f func(name string) error) error {
	for {
		list, err := d.Readdirnames(4096)
		for _, n := range list {
			if err := f(n); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
