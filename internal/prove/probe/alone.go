//go:build linux

package probe

import (
	"context"
	"fmt"
	"os"
	"time"

	"holdfast.dev/holdfast/internal/floor/sys"
)

// counted is the file that rows played alone lock: it shows what the machine has
// left, and every user can open it. The lock is machine-wide, because another
// program that plays such a row distorts what this one counts.
const counted = "/proc/meminfo"

// longestTurn limits how long another program may have the machine to itself:
// every row that is played alone takes less.
const longestTurn = 10 * time.Minute

// takeTurn waits until no other program plays a row alone, and returns a function
// that ends the turn.
func takeTurn(ctx context.Context) (end func(), err error) {
	f, err := os.Open(counted)
	if err != nil {
		return nil, fmt.Errorf("waiting for other programs that play rows alone: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, longestTurn)
	defer cancel()
	if err := sys.WaitLock(ctx, f); err != nil {
		f.Close()
		return nil, fmt.Errorf("waiting for other programs that play rows alone: locking %s: %w", counted, err)
	}
	return func() { f.Close() }, nil
}
