//go:build linux

package supervise

import (
	"cmp"
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// CaughtUp returns when every call that was answered so far is recorded: a caller
// continues before its call is written down.
func (s *Supervisor) CaughtUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
}

// Hidden reports whether a call arrived after which a file can be changed without an event
// in its directory before the end (fanotify(7)): one that makes a hard link, or one that
// can put a descriptor in flight. Every such call arrives, whatever its arguments.
func (s *Supervisor) Hidden() bool { return s.hidden.Load() }

// Close waits until Serve has ended, which it does when everything inside is dead.
// Calls that wait for a human are refused. An error means that something inside lives
// on, or that the record is broken.
func (s *Supervisor) Close() error {
	err := s.cancelHeld()
	if err != nil {
		s.fail(err)
		return err // what is in use stays open
	}
	if s.started.Load() {
		select {
		case <-s.served:
			s.reading.Wait()
			s.outlast()
		case <-time.After(closeWait):
			err = errors.New("ending the record of system calls: something inside is still alive")
			s.fail(err)
			return err // what is in use stays open
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeWait)
	defer cancel()
	if err = s.inlets.close(ctx); err != nil {
		s.fail(err)
	}
	s.lookups.close()
	s.release()
	return cmp.Or(err, s.failed.err(), s.hashes.save())
}

// closeWait is how long Close waits for the last process, which is dead by then.
const closeWait = 10 * time.Second

// outlast waits a moment for the ends of processes that are dead already but
// not all reaped, and records the rest without.
func (s *Supervisor) outlast() {
	for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		s.collect()
		s.mu.Lock()
		left := 0
		for _, p := range s.table.procs {
			if p.known {
				left++
			}
		}
		s.mu.Unlock()
		if left == 0 {
			return
		}
	}
}

// release closes what was opened.
func (s *Supervisor) release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.table.procs {
		s.ended(p)
	}
	s.looked.close()
	unix.Close(s.table.dir)
	s.watch.close()
	s.resolver.flush()
	if s.resolver.root >= 0 {
		unix.Close(s.resolver.root)
	}
	s.listener.file.Close()
}
