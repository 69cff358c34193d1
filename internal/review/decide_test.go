//go:build linux

package review

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary/workspace"
)

// TestWhoMayDecide: a list and an active run take no decision, what cannot be applied
// can only be rejected, and only lines of a changed file are decided about.
func TestWhoMayDecide(t *testing.T) {
	if a, b := (&BusyError{}).Error(), (&BusyError{PID: 7}).Error(); strings.Contains(a, "process") || !strings.Contains(b, "process 7") {
		t.Errorf("%q, %q", a, b)
	}
	list := (&ChangeList{Changes: []workspace.Difference{{Path: "a", Kind: workspace.KindAdded, Type: "file"}}}).Set()
	if err := list.Decide(list.Find("a"), Accept); !errors.Is(err, errList) {
		t.Errorf("a list: %v", err)
	}
	if _, err := list.Diff(list.Find("a")); err == nil {
		t.Error("a list has sides")
	}
	f := newField(t, Overlay).lower("a=1\n").upper("a=2\n", "new=1\n", "pipe|", "l->a")
	s := f.collect()
	s.running = true
	if err := s.Hold(); err == nil || !strings.Contains(err.Error(), "still going") {
		t.Errorf("while the run goes on: %v", err)
	}
	s.running = false
	pipe := s.Find("pipe")
	if err := s.Decide(pipe, Accept); err == nil || pipe.Decision != Undecided {
		t.Errorf("a pipe was accepted: %v", err)
	}
	if err := s.Decide(pipe, Reject); err != nil || pipe.Decision != Reject {
		t.Errorf("a pipe cannot be rejected: %v", err)
	}
	d, err := s.Diff(s.Find("a"))
	if err != nil {
		t.Fatal(err)
	}
	for name, hunk := range map[string]int{"new": 0, "l": 0, "a": len(d.Hunks)} {
		if err := s.DecideHunk(s.Find(name), d, hunk, Accept); err == nil || !strings.Contains(err.Error(), "a part of") {
			t.Errorf("hunk %d of %s: %v", hunk, name, err)
		}
	}
	if err := s.DecideHunk(s.Find("a"), d, -1, Accept); err == nil {
		t.Error("hunk -1 was accepted")
	}
	if err := s.DecideHunk(&Change{Path: "a", Kind: Modified, Type: Link}, d, 0, Accept); err == nil || !strings.Contains(err.Error(), "a part of") {
		t.Errorf("a line of a link: %v", err)
	}
	gone := &Change{Kind: History, Path: ".git", Type: Dir, parts: []*Change{{Path: "gone", Type: File}}}
	if _, err := s.digest(gone); !errors.Is(err, unix.ENOENT) {
		t.Errorf("a history without one of its files: %v", err)
	}
	if err := s.DecideAll([]*Change{gone}, Accept); !errors.Is(err, unix.ENOENT) {
		t.Errorf("deciding about it: %v", err)
	}
	if err := s.DecideHunk(&Change{Path: "x", Kind: Modified, Type: File}, d, 0, Accept); !errors.Is(err, unix.ENOENT) {
		t.Errorf("deciding about a part of what is gone: %v", err)
	}
}

// TestDecisionOfHunksAsAWhole: one that is open leaves the change open, and one that is
// accepted makes it accepted.
func TestDecisionOfHunksAsAWhole(t *testing.T) {
	for i, row := range []struct {
		of   []Decision
		want Decision
	}{
		{nil, Reject}, {[]Decision{Reject, Reject}, Reject}, {[]Decision{Reject, Accept}, Accept}, {[]Decision{Accept, Undecided, Reject}, Undecided}, {[]Decision{Undecided}, Undecided},
	} {
		c := &choice{by: map[string]Decision{}}
		for n, d := range row.of {
			c.by[string(rune('a'+n))] = d
		}
		if got := c.whole(); got != row.want {
			t.Errorf("row %d: %v", i, got)
		}
	}
}
