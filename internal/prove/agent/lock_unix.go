//go:build unix

package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// lock holds a file until unlock is called or this process ends. It waits for
// others as long as ctx lasts. The file stays: removing it would let two hold
// locks of two files by one name.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			f.Close()
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("waiting for another install: %w", ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}
