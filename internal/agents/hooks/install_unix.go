//go:build unix

package hooks

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// openPlain opens a file, but neither a link nor a pipe.
func openPlain(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
}

// ownedByUs refuses files of other users, world-writable ones, and files with
// several hard links.
func ownedByUs(path string, st fs.FileInfo, dir bool) error {
	sys, ok := st.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("%s: its owner is not known", path)
	}
	switch {
	case int(sys.Uid) != os.Geteuid():
		return fmt.Errorf("%s belongs to user %d", path, sys.Uid)
	case st.Mode().Perm()&0o002 != 0:
		return fmt.Errorf("every user can change %s", path)
	case !dir && sys.Nlink > 1:
		return fmt.Errorf("%s has other names (hard links), whose purpose is not known", path)
	}
	return nil
}

// lock prevents concurrent edits.
func (p Place) lock() (unlock func(), err error) {
	if err := os.MkdirAll(p.State, 0o700); err != nil {
		return nil, fmt.Errorf("making the state directory: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(p.State, "hooks.lock"), os.O_CREATE|os.O_RDWR|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the settings of agents: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		f.Close()
		return nil, fmt.Errorf("locking the settings of agents: %w", err)
	}
	return func() { f.Close() }, nil
}
