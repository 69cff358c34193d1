//go:build linux

package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"holdfast.dev/holdfast/internal/boundary/workspace"
	"holdfast.dev/holdfast/internal/floor/paths"
)

// deathWait is how long after a supervisor's death is heard of it may still have the
// lock: the kernel closes the files of a process one by one, and on a busy machine the
// janitor is faster than that.
const deathWait = 10 * time.Second

// Recover finishes the session in dir, whose supervisor died. It does nothing when the
// session is still looked after, or was settled.
func Recover(ctx context.Context, dir string) error {
	s, err := adopt(dir, deathWait)
	if s == nil || err != nil {
		return err
	}
	return s.finish(ctx, User{})
}

// finish settles a session that was taken over, and writes down what that found.
func (s *Session) finish(ctx context.Context, u User) error {
	defer s.Close()
	report, err := s.settleFor(ctx, u)
	return errors.Join(err, s.leaveAftermath(report))
}

// adopt takes over a session whose supervisor died; nil for one that is settled, or
// supervised for as long as wait.
func adopt(dir string, wait time.Duration) (*Session, error) {
	lock, err := lockSession(filepath.Join(dir, lockFile), 0, wait)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, context.DeadlineExceeded) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	// The supervisor may have finished the session after we opened the lock and
	// before we got it. What is kept then is not ours to settle.
	held, err := lock.Stat()
	if err != nil {
		lock.Close()
		return nil, err
	}
	if named, err := os.Lstat(filepath.Join(dir, lockFile)); err != nil || !os.SameFile(held, named) {
		lock.Close()
		return nil, nil
	}
	s := &Session{dir: dir, lock: lock, adopted: true}
	if err := s.load(); err != nil {
		lock.Close()
		return nil, err
	}
	return s, nil
}

// load reads the journals. One that is not whole belongs to a run that had not started
// anything: it is written before the launch.
func (s *Session) load() error {
	for _, name := range s.journals() {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		if snap, err := workspace.Load(f); err == nil {
			s.snapshots = append(s.snapshots, snap)
		}
		f.Close()
	}
	return nil
}

// UnsettledError means that an earlier run in the same workspace died and that what it
// left could not be looked through.
type UnsettledError struct {
	Dir string // of the session
	Err error
}

func (e *UnsettledError) Error() string {
	return "an earlier run here was killed, and the workspace could not be settled: " + e.Err.Error()
}
func (e *UnsettledError) Unwrap() error { return e.Err }

// Hint is the next command to type.
func (e *UnsettledError) Hint() string {
	return "look at what changed in the workspace, then remove the record of that run: rm -r " + e.Dir
}

// Sweep settles sessions below a state directory whose supervisor died: the janitor of a killed
// supervisor does so at once, but it may have been killed as well. Only what
// concerns the workspace is an error, which stops this run. It returns what killed
// runs left there and was not reported yet.
func Sweep(ctx context.Context, state, root string, u User) (found []Aftermath, err error) {
	defer sweepReviews(context.WithoutCancel(ctx), state)
	entries, err := os.ReadDir(sessionsDir(state))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the state directory: %w", err)
	}
	note := func(dir string) {
		if a := takeAftermath(dir, root); a != nil {
			found = append(found, *a)
		}
	}
	for _, e := range entries {
		dir := filepath.Join(sessionsDir(state), e.Name())
		if _, err := os.Lstat(filepath.Join(dir, lockFile)); err != nil {
			note(dir)
			continue
		}
		s, err := adopt(dir, 0)
		if err != nil || s == nil {
			continue // we may not, or it is supervised
		}
		err = s.finish(ctx, u)
		note(dir)
		if err != nil && s.concerns(root) {
			return found, &UnsettledError{Dir: dir, Err: err}
		}
	}
	return found, nil
}

// concerns reports whether one of the session's trees, repositories outside the workspace
// among them, is a directory, in it or around it.
func (s *Session) concerns(dir string) bool {
	return slices.ContainsFunc(s.snapshots, func(snap *workspace.Snapshot) bool {
		return slices.ContainsFunc(snap.Roots(), func(root string) bool { return concerns(root, dir) })
	})
}

// concerns reports whether one directory is the other, in it or around it.
func concerns(root, dir string) bool {
	return paths.Within(root, dir) || paths.Within(dir, root)
}

// patience is how long settling may wait for what other runs are just making: a
// file that git renames into place in a moment is not to be taken from it.
func (s *Session) patience() time.Duration {
	others := false
	_ = eachLive(filepath.Dir(s.dir), func(dir string) bool { // no directory, no others
		others = dir != s.dir
		return !others
	})
	if others {
		return 2 * time.Second
	}
	return 0
}
