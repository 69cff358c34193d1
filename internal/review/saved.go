//go:build linux

package review

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary/workspace"
)

// decisionFile is decisions.json of a review, and the lock that guards it.
type decisionFile struct {
	dir  string
	lock *os.File
	list map[workspace.Name]*savedChange
	fast bool // tests pull no plug
}

// savedChange is what was decided about a path, and what was done.
type savedChange struct {
	Decision Decision            `json:"decision"`
	Digest   string              `json:"digest"`          // of the change that was decided about
	Hunks    map[string]Decision `json:"hunks,omitempty"` // by Hunk.ID
	Done     *appliedState       `json:"done,omitempty"`
	Made     []workspace.Name    `json:"made,omitempty"` // paths that Apply made for it, where nothing was
}

// appliedState is what Apply made of a path.
type appliedState struct {
	Digest string   `json:"digest"`          // of the change
	Hunks  []string `json:"hunks,omitempty"` // that were applied; nil: all of it
	Left   State    `json:"left"`            // what the path was then
}

// savedFile is the form of decisions.json.
type savedFile struct {
	Version int                             `json:"version"`
	Changes map[workspace.Name]*savedChange `json:"changes"`
}

func loadDecisions(dir string) (*decisionFile, error) {
	s := &decisionFile{dir: dir}
	return s, s.read()
}

func (s *decisionFile) read() error {
	s.list = map[workspace.Name]*savedChange{}
	name := s.dir + "/decisions.json"
	b, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the decisions: %w", err)
	}
	f := savedFile{Changes: s.list}
	if err := json.Unmarshal(b, &f); err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	if f.Version != 1 {
		return fmt.Errorf("reading %s: version %d is not known", name, f.Version)
	}
	for _, e := range f.Changes {
		if e == nil {
			return fmt.Errorf("reading %s: an entry is empty", name)
		}
	}
	return nil
}

// write replaces the file, so that a reader or a crash finds the old one or the
// new one.
func (s *decisionFile) write() error {
	b, err := json.Marshal(savedFile{Version: 1, Changes: s.list})
	if err != nil {
		return fmt.Errorf("writing the decisions: %w", err)
	}
	if err := workspace.ReplaceFile(s.dir+"/decisions.json", b, !s.fast); err != nil {
		return fmt.Errorf("writing the decisions: %w", err)
	}
	return nil
}

func (s *decisionFile) isLocked() bool { return s.lock != nil }

func (s *decisionFile) acquire() error {
	f, err := os.OpenFile(s.dir+"/lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("locking the review: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer f.Close()
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return fmt.Errorf("locking the review: %w", err)
		}
		var buf [20]byte
		n, _ := f.Read(buf[:])
		pid, _ := strconv.Atoi(strings.TrimSpace(string(buf[:n])))
		return &BusyError{s.dir, pid}
	}
	s.lock = f
	f.Truncate(0)
	f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0) // for the message alone
	return nil
}

func (s *decisionFile) release() error {
	if s.lock == nil {
		return nil
	}
	f := s.lock
	s.lock = nil
	f.Truncate(0)
	return f.Close()
}

// entry returns the entry of a change, a new one if there is none.
func (s *decisionFile) entry(c *Change) *savedChange {
	e := s.list[c.Path]
	if e == nil {
		e = &savedChange{}
		s.list[c.Path] = e
	}
	return e
}

// createdPaths lists the paths that Apply made where nothing was, an apply that died
// among them.
func (s *decisionFile) createdPaths() (map[string]bool, error) {
	gone := map[string]bool{}
	for _, e := range s.list {
		for _, p := range e.Made {
			gone[string(p)] = true
		}
	}
	dead, err := readJournal(s.dir)
	if dead == nil {
		return gone, err
	}
	for _, in := range dead.steps {
		if in.Was.Type == None && in.Act == put && in.Change != "" {
			gone[string(in.Path)] = true
		}
	}
	return gone, nil
}

// restore sets the saved decisions on the changes that they are about.
func (s *decisionFile) restore(set *Set) {
	for p, e := range s.list {
		c := set.index[string(p)]
		if c == nil {
			continue
		}
		digest, err := set.digest(c)
		if err != nil || digest != e.Digest && (e.Done == nil || digest != e.Done.Digest) {
			c.note("it changed after it was decided: that decision no longer holds")
			continue
		}
		c.digest = digest
		if digest == e.Digest {
			c.Decision, c.hunks = e.Decision, nil
			if e.Hunks != nil {
				c.hunks = &choice{digest, e.Hunks}
			}
		}
		c.Applied = e.isApplied(digest)
	}
}

// isApplied reports whether all that is accepted of the change is in the workspace,
// and nothing else of it.
func (e *savedChange) isApplied(digest string) bool {
	if e.Done == nil || e.Done.Digest != digest {
		return false
	}
	if e.Hunks == nil {
		return e.Done.Hunks == nil
	}
	in := map[string]bool{}
	for _, id := range e.Done.Hunks {
		in[id] = true
	}
	for id, d := range e.Hunks {
		if e.Done.Hunks != nil && (d == Accept) != in[id] || e.Done.Hunks == nil && d != Accept {
			return false
		}
	}
	return true
}
