//go:build linux

package session

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/policy"
)

// TestRecoverWaitsForTheLock: the janitor hears of the supervisor's death before the
// kernel has closed all its files.
func TestRecoverWaitsForTheLock(t *testing.T) {
	s, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(100*time.Millisecond, func() { s.lock.Close() })
	if err := Recover(t.Context(), s.dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(filepath.Join(s.dir, lockFile)); err == nil {
		t.Error("the session was not settled")
	}
}

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

// Of runs at the same time each knows that it is not alone, whichever ends first.
func TestAlone(t *testing.T) {
	state := t.TempDir()
	begin := func() *Session {
		s, err := Open(state)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		return s
	}
	first := begin()
	if !first.alone() {
		t.Error("a run by itself is not alone")
	}
	second := begin()
	if first.alone() || second.alone() {
		t.Errorf("of two runs the first is alone: %v, the second: %v", first.alone(), second.alone())
	}
	second.Close()
	if first.alone() {
		t.Error("a run is alone once the other has ended")
	}
	first.Close()
	if !begin().alone() {
		t.Error("a run after others is not alone")
	}
}

// What a run that is alive may write to concerns it, and everything while it begins.
func TestAlive(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(filepath.Join(dir, "state"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	alive := func(at string) bool { return len(Alive(s.state, filepath.Join(dir, at))) > 0 }
	if !alive("elsewhere") {
		t.Error("a run that begins concerns nothing")
	}
	if err := os.MkdirAll(filepath.Join(dir, "ws/sub"), 0o700); err != nil {
		t.Fatal(err)
	}
	plan := policy.Plan{Workspace: filepath.Join(dir, "ws"), Dir: filepath.Join(dir, "ws")}
	scan := make(chan error)
	go func() {
		time.Sleep(scanPatience / 10)
		scan <- s.scan(t.Context(), &plan)
	}()
	if alive("elsewhere") {
		t.Error("its scan was not waited for")
	}
	if err := <-scan; err != nil {
		t.Fatal(err)
	}
	for at, want := range map[string]bool{"elsewhere": false, "ws": true, "ws/sub": true, ".": true} {
		if alive(at) != want {
			t.Errorf("that a run concerns %s is %v", at, !want)
		}
	}
}
