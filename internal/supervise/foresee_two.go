//go:build linux

package supervise

import (
	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/event"
)

// linked foresees a further name for the file s.to, where first is what making
// the name s.at will come to. It is no reading of the file.
func (s *Supervisor) linked(first outcome) outcome {
	if first.verdict == event.Denied {
		return first
	}
	if o, decided := s.placed(&s.to, wantRead, false); decided {
		return o
	}
	if !s.to.exists {
		return allowed("ENOENT")
	}
	if first.errno != "" || s.at.dir == nil || s.to.tree == nil || s.at.dir.tree == s.to.tree {
		return first
	}
	// Each tree is a mount of its own, and no link leads from one to another.
	switch s.to.tree.Access {
	case Protected:
		return denied(event.LayerProtected, s.to.tree.Rule, "EXDEV")
	case Read:
		return denied(event.LayerReadonly, s.to.tree.Rule, "EXDEV")
	}
	return allowed("EXDEV")
}

// renamed foresees what comes of moving s.at to s.to, where first is what taking
// the old name away will come to.
func (s *Supervisor) renamed(c *call, first outcome) outcome {
	if first.verdict == event.Denied {
		return s.across(first)
	}
	second := s.foresee(c, &s.to, wantCreate, true)
	if second.errno == "EEXIST" {
		if c.info.flags < 0 || c.arg(c.info.flags)&unix.RENAME_NOREPLACE == 0 {
			second = s.foresee(c, &s.to, wantRemove, false) // what is there goes away, or elsewhere
		}
	}
	if second.verdict == event.Denied || first.errno == "" {
		return s.across(second)
	}
	return s.across(first)
}

// across is o for a rename: between two trees the kernel looks at nothing else
// (rename(2), EXDEV). Only where a tree itself refuses is that a denial.
func (s *Supervisor) across(o outcome) outcome {
	from, to := s.at.dir, s.to.dir
	if from == nil || to == nil || from.tree == nil || to.tree == nil || from.tree == to.tree {
		return o
	}
	if o.verdict == event.Denied && o.layer != event.LayerPermissions {
		o.errno = "EXDEV"
		return o
	}
	return allowed("EXDEV")
}

// top says whether something is mounted at s, so that nobody may move it or take
// it away (EBUSY).
func (r *resolver) top(s *spot) bool {
	switch {
	case s.dir == nil || s.tree == nil:
		return false
	case len(s.name) == 0:
		return s.tree.Path == s.dir.real
	}
	return s.dir.below[string(s.name)] == s.tree
}
