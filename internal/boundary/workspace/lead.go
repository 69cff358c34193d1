//go:build linux

package workspace

import (
	"context"
	"path"
	"strings"

	"golang.org/x/sys/unix"
)

// LedFrom protects what the tree of another snapshot leads the host to in this one.
// A directory for results that is a tree of its own is one place of those; another
// is a second writable tree, a server in which the settings of the first name.
func LedFrom(around *Snapshot) Option { return func(s *scan) { s.around = around } }

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

// lead finds what programs of the host execute or obey although the list does not
// name it. It is the one judge of that: a run that writes to a tree, a review and
// what agents changed in their copies go by it.
func (s *scan) lead(ctx context.Context) error {
	if err := s.obeyConfigs(); err != nil {
		return err
	}
	s.obeyAgents()
	if s.around != nil {
		for _, r := range s.around.led {
			_, in := s.within(string(r.Path))
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

// leads are the absolute paths of all that lead found.
func (s *scan) leads() []row {
	out := s.outward
	for _, list := range [][]row{s.found.Rows, s.found.Absent} {
		for _, r := range list {
			r.Path = Name(path.Join(string(s.found.Root), string(r.Path)))
			out = append(out, r)
		}
	}
	return out
}

// Leads returns the rule by which the tree has the host obey dir as a whole; nil for
// none.
func (s *Snapshot) Leads(dir string) *Rule {
	for ; dir != "/"; dir = path.Dir(dir) {
		for _, r := range s.led {
			if string(r.Path) == dir && !r.Closed {
				return &Rule{Pattern: r.Rule, Tier: Deny, Reason: r.Reason}
			}
		}
	}
	return nil
}

// special passes over directories that are not to be entered.
func (s *judging) special(w *walker, d *dir, e entry) (bool, error) {
	if err := s.goOn(w); err != nil {
		return false, err
	}
	if s.near == nil || e.typ != unix.DT_DIR || s.near[w.at(e)] {
		return false, nil
	}
	var below sub
	name := fold(e.name(), w.fold)
	rule := w.match(d, e, name, &below)
	return string(name) != ".git" && (rule == nil || rule.Tier != Deny) && len(below.states) == 0, nil
}
