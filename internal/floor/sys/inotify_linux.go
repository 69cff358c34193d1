package sys

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Events of inotify(7).
const (
	InAccess     = unix.IN_ACCESS
	InModify     = unix.IN_MODIFY
	InOpen       = unix.IN_OPEN
	InMoveSelf   = unix.IN_MOVE_SELF
	InCreate     = unix.IN_CREATE
	InDelete     = unix.IN_DELETE
	InDeleteSelf = unix.IN_DELETE_SELF
	InMoved      = unix.IN_MOVE // from or to
	InAttrib     = unix.IN_ATTRIB
	InCloseWrite = unix.IN_CLOSE_WRITE
	InIgnored    = unix.IN_IGNORED    // the watch is gone
	InOverflow   = unix.IN_Q_OVERFLOW // events were lost
)

// Inotify returns a descriptor that watches nothing yet. It can be read with a
// deadline.
func Inotify() (*os.File, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if errors.Is(err, unix.EMFILE) { // of the process or, more often, of the user
		return nil, fmt.Errorf("%w (the limit for a user is fs.inotify.max_user_instances)", os.NewSyscallError("inotify_init1", err))
	}
	if err != nil {
		return nil, os.NewSyscallError("inotify_init1", err)
	}
	return os.NewFile(uintptr(fd), "inotify"), nil
}

// InotifyAdd watches the file at path, which is not a link, and returns the number of
// the watch. The watch is on the inode: it stays when the name changes.
func InotifyAdd(f *os.File, path string, mask uint32) (int32, error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, fmt.Errorf("watching %s: %w", path, err)
	}
	var wd int
	var failed error
	err = raw.Control(func(fd uintptr) {
		wd, failed = unix.InotifyAddWatch(int(fd), path, mask|unix.IN_DONT_FOLLOW)
	})
	if err := errors.Join(err, failed); err != nil {
		return 0, os.NewSyscallError("inotify_add_watch", err)
	}
	return int32(wd), nil
}

// ReadNow reads what is there, whatever the deadline of f; 0 when there is
// nothing. F must not block.
func ReadNow(f *os.File, p []byte) (n int, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, fmt.Errorf("reading pending events: %w", err)
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		for {
			if n, failed = unix.Read(int(fd), p); !errors.Is(failed, unix.EINTR) {
				return
			}
		}
	})
	if errors.Is(failed, unix.EAGAIN) {
		return 0, err
	}
	if err := errors.Join(err, failed); err != nil {
		return 0, os.NewSyscallError("read", err)
	}
	return n, nil
}
