//go:build linux

package workspace

import (
	"context"
	"fmt"
	"path"

	"golang.org/x/sys/unix"
)

// Obeyed is what programs of the host execute or obey in a workspace although
// the rules do not name it: targets of links under listed names, what git's
// configuration names, and the programs that settings of agents start. It is what
// Scan protects in a workspace that a run writes to. The zero value is nothing.
type Obeyed struct {
	at   map[string]*Rule
	ways map[string]*Rule // directories above those paths
}

// FindObeyed looks at the workspace as it is, and as it would be with all that is
// in the directory upper laid over it; "" is nothing.
func FindObeyed(ctx context.Context, root, upper string, r Rules, options ...Option) (*Obeyed, error) {
	if r.tree == nil {
		return nil, nil // rules that name nothing
	}
	s := &obeyVisitor{scan{rules: &r}}
	for _, o := range options {
		o(&s.scan)
	}
	if err := s.open(root); err != nil {
		return nil, err
	}
	defer unix.Close(s.root)
	err := run(ctx, s.root, &r, maxPath, false, s, walkMemory{})
	if err == nil {
		err = s.findObeyed(ctx)
	}
	if err == nil && upper != "" {
		err = s.overlay(ctx, upper)
	}
	if err != nil {
		return nil, fmt.Errorf("looking for what the host obeys in %s: %w", root, err)
	}
	return s.obeyed(), nil
}

// obeyVisitor finds what the host obeys, and nothing else.
type obeyVisitor struct{ scan }

func (s *obeyVisitor) file(*walker, *dir, entry, *unix.Statx_t) error  { return nil }
func (s *obeyVisitor) closed(*walker, *dir, entry, error) (int, error) { return -1, nil }
func (s *obeyVisitor) flag(w *walker, d *dir, e entry, st *unix.Statx_t) error {
	if e.typ == unix.DT_LNK {
		_, err := s.deny(w, d, e) // what it leads to is obeyed under this name
		return err
	}
	return nil
}

// overlay looks again, with what is in upper in place of what it replaces.
func (s *obeyVisitor) overlay(ctx context.Context, upper string) error {
	fd, err := openState(upper)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := run(ctx, fd, s.rules, maxPath, false, s, walkMemory{}); err != nil {
		return err
	}
	s.over, s.roots = upper, append(s.roots, fd)
	for _, c := range s.configs { // of a repository that upper has in part, and not in its shape
		for _, name := range []string{"config", "config.worktree"} {
			if c.data = s.read(path.Join(string(s.found.Root), c.dir, name)); c.data != nil {
				s.configs = append(s.configs, c)
			}
		}
	}
	return s.findObeyed(ctx)
}

func (s *obeyVisitor) obeyed() *Obeyed {
	o := &Obeyed{at: map[string]*Rule{}, ways: map[string]*Rule{}}
	for _, list := range [][]row{s.found.Rows, s.found.Absent} {
		for _, r := range list {
			rule := &Rule{Pattern: r.Rule, Tier: Deny, Reason: r.Reason}
			if o.at[string(r.Path)] == nil {
				o.at[string(r.Path)] = rule
			}
			for p := parent(string(r.Path)); p != "" && o.ways[p] == nil; p = parent(p) {
				o.ways[p] = rule
			}
		}
	}
	if s.all != nil {
		o.at[""] = s.all
	}
	return o
}

// Rule returns why path, or what it lies in, is obeyed; nil where it is not.
func (o *Obeyed) Rule(p string) *Rule {
	if o == nil {
		return nil
	}
	for ; p != ""; p = parent(p) {
		if r := o.at[p]; r != nil {
			return r
		}
	}
	return o.at[""]
}

// Above returns the rule of something that is obeyed below the directory p; nil
// for none.
func (o *Obeyed) Above(p string) *Rule {
	if o == nil {
		return nil
	}
	return o.ways[p]
}
