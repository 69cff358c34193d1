//go:build linux

package workspace

import (
	"context"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// obeyedBy protects what the tree of another snapshot makes the host obey in this one:
// in a directory for results that is a tree of its own, or in a second writable tree with
// a server that settings in the first name.
func obeyedBy(around *Snapshot) Option { return func(s *scan) { s.obeyedBy = around } }

// Around has FindObeyed enter only the directories above the paths, which are
// relative to the root, those of the list, and repositories: of a home directory all
// would be too much. What leads there from another directory is not found.
func Around(paths ...string) Option {
	return func(s *scan) {
		s.near = map[string]bool{}
		for _, p := range paths {
			for p = parent(p); p != "" && !s.near[p]; p = parent(p) {
				s.near[p] = true
			}
		}
	}
}

// findObeyed finds what programs of the host execute or obey although the list does not
// name it. Runs that write to a tree, reviews, and copies of agents' state all use it.
func (s *scan) findObeyed(ctx context.Context) error {
	if err := s.obeyConfigs(); err != nil {
		return err
	}
	s.obeyAgents()
	if s.obeyedBy != nil {
		for _, r := range s.obeyedBy.obeyed {
			_, in := s.relativeToRoot(string(r.Path))
			if whole := strings.HasPrefix(string(s.found.Root)+"/", string(r.Path)+"/"); whole && !r.Closed {
				s.all = &Rule{Pattern: r.Rule, Tier: Deny, Reason: r.Reason}
				s.warn("%s is %s, or holds it, and stays writable (%s)", r.Rule, s.found.Root, r.Reason)
			} else if in {
				s.resolve(string(r.Path), r.Rule, r.Reason)
			}
		}
	}
	return s.followLinks(ctx)
}

// absoluteRows are all rows that findObeyed added, with absolute paths.
func (s *scan) absoluteRows() []row {
	out := s.outward
	for _, list := range [][]row{s.found.Rows, s.found.Absent} {
		for _, r := range list {
			r.Path = Name(path.Join(string(s.found.Root), string(r.Path)))
			out = append(out, r)
		}
	}
	return out
}

// obeysAll returns the rule by which the tree makes the host obey all of dir; nil for
// none.
func (s *Snapshot) obeysAll(dir string) *Rule {
	for ; dir != "/"; dir = path.Dir(dir) {
		for _, r := range s.obeyed {
			if string(r.Path) == dir && !r.Closed {
				return &Rule{Pattern: r.Rule, Tier: Deny, Reason: r.Reason}
			}
		}
	}
	return nil
}

// beforeRules passes over directories that are not to be entered.
func (s *obeyVisitor) beforeRules(w *walker, d *dir, e entry) (bool, error) {
	if err := s.countEntry(w); err != nil {
		return false, err
	}
	if s.near == nil || e.typ != unix.DT_DIR || s.near[w.pathTo(e)] {
		return false, nil
	}
	var below sub
	rule := w.match(d, e, &below)
	return string(e.folded) != ".git" && (rule == nil || rule.Tier != Deny) && len(below.states) == 0, nil
}
