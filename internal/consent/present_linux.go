//go:build linux

package consent

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// presentFile is locked by each process that follows what runs ask, so that a
// new run knows that somebody is there before that process has found it.
const presentFile = "attending"

// announcePresence says that somebody is there to answer, until leave is called.
func announcePresence(state string) (leave func(), err error) {
	if err := os.MkdirAll(state, 0o700); err != nil {
		return nil, fmt.Errorf("announcing that an approver is present: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(state, presentFile), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("announcing that an approver is present: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_SH); err != nil {
		f.Close()
		return nil, fmt.Errorf("announcing that an approver is present: %w", err)
	}
	return func() { f.Close() }, nil
}

// Present reports whether a process follows what the runs below a state directory ask.
func Present(state string) bool {
	f, err := os.OpenFile(filepath.Join(state, presentFile), os.O_RDWR|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return false
	}
	defer f.Close()
	return errors.Is(syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), syscall.EWOULDBLOCK)
}
