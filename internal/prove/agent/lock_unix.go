//go:build unix

package agent

import (
	"context"
	"fmt"
	"os"

	"holdfast.dev/holdfast/internal/floor/sys"
)

// lock locks a file until unlock is called or this process ends. It waits for
// other holders until ctx ends. The file is never removed: otherwise two
// processes could lock different files with the same name.
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
