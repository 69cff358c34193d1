//go:build unix

package agent

import (
	"context"
	"fmt"
	"os"

	"holdfast.dev/holdfast/internal/floor/sys"
)

// lock holds a file until unlock is called or this process ends. It waits for
// others as long as ctx lasts. The file stays: removing it would let two hold
// locks of two files by one name.
func lock(ctx context.Context, path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := sys.WaitLock(ctx, f); err != nil {
		f.Close()
		return nil, fmt.Errorf("waiting for another install: locking %s: %w", path, err)
	}
	return func() { f.Close() }, nil
}
