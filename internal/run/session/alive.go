//go:build linux

package session

import (
	"context"
	"errors"
	"path/filepath"
)

// Alive lists the runs of this user that are looked after now and may write to a
// workspace, to a part of it or to what it lies in.
func Alive(state, root string) []string {
	dirs, err := filepath.Glob(filepath.Join(state, "sessions", "*"))
	if err != nil {
		return nil // the pattern is ours
	}
	var out []string
	for _, dir := range dirs {
		if !supervised(dir) {
			continue
		}
		s := &Session{dir: dir}
		_ = s.load() // a journal that is missing is one of a run that ends at this moment
		if s.concerns(root) {
			out = append(out, filepath.Base(dir))
		}
	}
	return out
}

// supervised reports whether a supervisor holds the lock of the session in dir.
func supervised(dir string) bool {
	lock, err := lockSession(filepath.Join(dir, lockFile), 0, 0)
	if err == nil {
		lock.Close()
	}
	return errors.Is(err, context.DeadlineExceeded)
}
