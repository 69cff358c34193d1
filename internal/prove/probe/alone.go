//go:build linux

package probe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
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
		return nil, fmt.Errorf("waiting for the machine: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, longestTurn)
	defer cancel()
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			f.Close()
			return nil, fmt.Errorf("waiting for the machine: locking %s: %w", counted, err)
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("waiting for the machine: another program has had %s locked for %s: %w", counted, longestTurn, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}
