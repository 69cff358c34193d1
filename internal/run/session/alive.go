//go:build linux

package session

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"holdfast.dev/holdfast/internal/boundary/workspace"
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
		lock, err := lockSession(filepath.Join(dir, lockFile), 0)
		if err == nil {
			lock.Close() // nobody holds it
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			continue
		}
		s := &Session{dir: dir}
		for _, name := range s.journals() {
			f, err := os.Open(name)
			if err != nil {
				continue // the run ends just now
			}
			if snap, err := workspace.Load(f); err == nil {
				s.snapshots = append(s.snapshots, snap)
			}
			f.Close()
		}
		if s.concerns(root) {
			out = append(out, filepath.Base(dir))
		}
	}
	return out
}
