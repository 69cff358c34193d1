//go:build linux

package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// scanPatience is how long Alive waits for the runs that begin.
const scanPatience = time.Second

// Alive lists the runs of this user that are looked after now and may write to a
// directory, to a part of it or to what it lies in, or that may yet: those of which that is
// not known soon, because they begin.
func Alive(state, root string) []string {
	var out []string
	until := time.Now().Add(scanPatience)
	_ = eachLive(sessionsDir(state), func(dir string) bool { // no directory, no runs
		_, begins := os.Lstat(filepath.Join(dir, scannedMark))
		for begins != nil && supervised(dir) && time.Now().Before(until) {
			time.Sleep(scanPatience / 50)
			_, begins = os.Lstat(filepath.Join(dir, scannedMark))
		}
		s := &Session{dir: dir}
		if err := s.load(); (err != nil || begins != nil || s.concerns(root)) && supervised(dir) {
			out = append(out, filepath.Base(dir))
		}
		return true
	})
	return out
}

// eachLive calls f with each session below a directory that is looked after now, until f
// returns false.
func eachLive(sessions string, f func(dir string) (more bool)) error {
	entries, err := os.ReadDir(sessions)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if dir := filepath.Join(sessions, e.Name()); supervised(dir) && !f(dir) {
			break
		}
	}
	return nil
}

// supervised reports whether a supervisor holds the lock of the session in dir.
func supervised(dir string) bool {
	lock, err := lockSession(filepath.Join(dir, lockFile), 0, 0)
	if err == nil {
		lock.Close()
	}
	return errors.Is(err, context.DeadlineExceeded)
}

// noteCompany notes, in this session and in each other of this user that is looked after
// now, that they are not alone. Each holds its lock before it looks: of two that begin at
// the same time one at least sees the other. It precedes the scan, which sees what was done
// before.
func (s *Session) noteCompany() error {
	var failed error
	err := eachLive(filepath.Dir(s.dir), func(dir string) bool {
		if dir == s.dir {
			return true
		}
		s.company = true
		if failed = noteIn(filepath.Join(dir, lockFile)); errors.Is(failed, fs.ErrNotExist) {
			failed = nil // it has ended
		}
		return failed == nil
	})
	if err = cmp.Or(err, failed); err != nil {
		return fmt.Errorf("telling other runs of this one: %w", err)
	}
	return nil
}

func noteIn(lock string) error {
	f, err := os.OpenFile(lock, os.O_WRONLY|os.O_APPEND|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString("there was another run\n")
	return errors.Join(err, f.Close())
}

// alone reports whether no other run of this user was there at the same time. The other may
// make a second name of a file, through which this one writes without an event in the
// directory that is watched.
func (s *Session) alone() bool {
	st, err := s.lock.Stat()
	return err == nil && st.Size() == 0 && !s.company
}
