//go:build linux

package session

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// TestSweepLeavesWhatIsKept has many runs settle a session at the moment in which
// its own finishes it: what it keeps stays.
func TestSweepLeavesWhatIsKept(t *testing.T) {
	for range 200 {
		s, err := Open(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		held := filepath.Join(s.dir, "quarantine")
		if err := os.Mkdir(held, 0o700); err != nil {
			t.Fatal(err)
		}
		s.keep = true
		var others sync.WaitGroup
		for range 8 {
			others.Go(func() {
				for range 20 {
					Recover(t.Context(), s.dir)
				}
			})
		}
		s.Close()
		others.Wait()
		if _, err := os.Stat(held); err != nil {
			t.Fatalf("what was kept is gone: %v", err)
		}
	}
}
