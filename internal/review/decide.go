//go:build linux

package review

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary/workspace"
)

// BusyError means that another process is reviewing the same run.
type BusyError struct {
	Dir string
	PID int // 0 when it is not known
}

func (e *BusyError) Error() string {
	if e.PID == 0 {
		return "another holdfast is reviewing this run"
	}
	return fmt.Sprintf("another holdfast (process %d) is reviewing this run", e.PID)
}

// Hint names the way out.
func (e *BusyError) Hint() string { return "end that review first; what it decided is kept" }

// choice are the decisions about the hunks of a change.
type choice struct {
	digest string
	by     map[string]Decision // by Hunk.ID
}

var errList = errors.New("the run wrote into the workspace: there is nothing to decide")

// Hold takes the lock of the review, so that no other process decides or applies, and
// rereads the decisions. Decide, DecideHunk and Apply call it if it was not called; the
// error is a *BusyError when another process has it.
func (s *Set) Hold() error {
	if s.saved == nil {
		return errList
	}
	if s.running {
		return errors.New("the run is still going: its changes can be decided when it has ended")
	}
	if s.saved.isLocked() {
		return nil
	}
	if err := s.saved.acquire(); err != nil {
		return err
	}
	if err := s.saved.read(); err != nil {
		return errors.Join(err, s.saved.release())
	}
	s.saved.restore(s)
	return nil
}

// DecideAll records one decision for several changes with one write.
func (s *Set) DecideAll(list []*Change, d Decision) error {
	if err := s.Hold(); err != nil {
		return err
	}
	for _, c := range list {
		if d == Accept && c.Cannot != "" {
			return fmt.Errorf("accepting %q: %s", c.Path, c.Cannot)
		}
		digest, err := s.digest(c)
		if err != nil {
			return fmt.Errorf("deciding about %q: %w", c.Path, err)
		}
		if c.digest != "" && c.digest != digest {
			return fmt.Errorf("deciding about %q: %w", c.Path, ErrChanged)
		}
		c.digest, c.Decision, c.hunks = digest, d, nil
		e := s.saved.entry(c)
		e.Decision, e.Digest, e.Hunks = d, digest, nil
		c.Applied = e.isApplied(digest)
	}
	return s.saved.write()
}

// DecideHunk records what is to become of one hunk of d, which Diff returned for
// c. The other hunks keep what was decided about them, or about c as a whole.
func (s *Set) DecideHunk(c *Change, d *Diff, hunk int, decision Decision) error {
	if err := s.Hold(); err != nil {
		return err
	}
	if c.Kind != Modified || c.Type != File || hunk < 0 || hunk >= len(d.Hunks) {
		return fmt.Errorf("deciding about a part of %q: single lines can only be chosen in a file that existed before and still does", c.Path)
	}
	digest, err := s.digest(c)
	if err != nil {
		return fmt.Errorf("deciding about %q: %w", c.Path, err)
	}
	if digest != c.digest {
		return fmt.Errorf("deciding about %q: %w", c.Path, ErrChanged)
	}
	if c.hunks == nil || c.hunks.digest != digest {
		by := map[string]Decision{}
		for _, h := range d.Hunks {
			by[h.ID] = c.Decision
		}
		c.hunks = &choice{digest, by}
	}
	c.hunks.by[d.Hunks[hunk].ID] = decision
	d.Hunks[hunk].Decision = decision
	c.Decision = c.hunks.whole()
	e := s.saved.entry(c)
	e.Decision, e.Digest, e.Hunks = c.Decision, digest, c.hunks.by
	c.Applied = e.isApplied(digest)
	return s.saved.write()
}

// whole is what the decisions about hunks make of the change: undecided while
// one of them is, rejected when all are.
func (c *choice) whole() Decision {
	d := Reject
	for _, one := range c.by {
		switch one {
		case Undecided:
			return Undecided
		case Accept:
			d = Accept
		}
	}
	return d
}

// digest identifies what the run left under a path, so that a decision holds
// for that and nothing that came later. A file is not read for it: no program
// can set the change time.
func (s *Set) digest(c *Change) (string, error) { return s.digestWith(c, "") }

// digestWith is digest where the part of the file is known already.
func (s *Set) digestWith(c *Change, mark string) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%s %q %q %s %s %o %q", c.Kind, c.Path, c.From, c.Type, c.OldType, c.Mode, c.Target)
	for _, p := range c.parts {
		d, err := s.digest(p)
		if err != nil {
			return "", err
		}
		fmt.Fprint(h, d)
	}
	if c.Type == File && len(c.parts) == 0 && mark == "" {
		dir, name := cut(string(c.Path))
		d, err := workspace.OpenBeneath(s.trees.upper, dir, unix.O_PATH|unix.O_DIRECTORY)
		if err != nil {
			return "", err
		}
		defer unix.Close(d)
		var st unix.Statx_t
		if err := status(d, name, &st); err != nil {
			return "", err
		}
		mark = fileDigest(&st)
	}
	io.WriteString(h, mark)
	return hex.EncodeToString(h.Sum(nil)[:16]), nil
}

// fileDigest is the part of a digest that represents a file's content. Reading a file
// that is closed to its owner moves its change time.
func fileDigest(st *unix.Statx_t) string {
	i := workspace.IdentityOf(st)
	if i.Mode&0o400 == 0 {
		i.Ctime = 0
	}
	b := make([]byte, 0, 96)
	for _, n := range [...]uint64{uint64(i.Mode), i.Ino, i.Dev, uint64(i.Size), uint64(i.Mtime), uint64(i.Ctime)} {
		b = append(strconv.AppendUint(b, n, 10), ' ')
	}
	return string(b)
}
