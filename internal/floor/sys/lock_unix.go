//go:build unix

package sys

import (
	"context"
	"errors"
	"os"
	"syscall"
	"time"
)

// WaitLock takes an exclusive lock of an open file (flock(2)), and waits as long as
// ctx lasts while somebody else has it. Closing f gives the lock back.
func WaitLock(ctx context.Context, f *os.File) error {
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return os.NewSyscallError("flock", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}
