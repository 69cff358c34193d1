package sys

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// What Access asks for; they can be combined.
const (
	MayExecute = unix.X_OK // of a directory: enter
	MayWrite   = unix.W_OK // of a socket: connect
	MayRead    = unix.R_OK
)

// ErrNotRegular is the error of OpenRegular for anything but a regular file.
var ErrNotRegular = errors.New("not a regular file")

// Access reports whether this process may use path, by its effective ids and
// capabilities and whatever else the kernel looks at (faccessat2(2)). Nothing is
// opened.
func Access(path string, mode uint32) error {
	if err := unix.Faccessat(unix.AT_FDCWD, path, mode, unix.AT_EACCESS); err != nil {
		return &fs.PathError{Op: "access", Path: path, Err: err}
	}
	return nil
}

// OpenRegular opens a regular file for reading. Anything else is never opened,
// also when it takes the place of a regular file meanwhile: opening a device or a
// fifo is an action. Links are followed. It needs /proc.
func OpenRegular(path string) (*os.File, error) {
	fd, err := retry(func() (int, error) { return unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0) })
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, &fs.PathError{Op: "fstat", Path: path, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, fmt.Errorf("%s: %w", path, ErrNotRegular)
	}
	held := "/proc/self/fd/" + strconv.Itoa(fd)
	opened, err := retry(func() (int, error) {
		return unix.Open(held, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(opened), path), nil
}

func retry(f func() (int, error)) (int, error) {
	for {
		n, err := f()
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}

// Owner returns the user and the group that a file belongs to; ok is false where
// info does not say so.
func Owner(info fs.FileInfo) (uid, gid int, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return int(st.Uid), int(st.Gid), true
}
