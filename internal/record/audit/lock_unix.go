//go:build unix

package audit

import (
	"errors"
	"os"
	"syscall"
)

// openPlain keeps an open from following a link at the end of a path, and from
// waiting for the other side of a pipe.
const openPlain = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// lockFile marks f as the log of a run that is going on; the mark goes with its
// writer. A reader holds the lock for a moment only, so this does not wait long.
func lockFile(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// tryLock takes a lock on f, until it is closed, and reports whether it has it: false
// while another process has.
func tryLock(f *os.File) bool {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}

// locked reports whether a process is writing the log f.
func locked(f *os.File) bool {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if err != nil {
		return errors.Is(err, syscall.EWOULDBLOCK)
	}
	syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
	return false
}
