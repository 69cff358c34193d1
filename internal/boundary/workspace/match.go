//go:build linux

package workspace

import (
	"strings"

	"golang.org/x/sys/unix"
)

// match is Rules.match for an entry of the walk, without what unprotect exempts.
func (w *walker) match(d *dir, e entry, s *sub) *Rule {
	best := w.rules.match(dirState{d.states, d.git, d.inGit, d.dep != nil}, e.typ, e.folded, s)
	if best != nil && w.rules.exempt != nil && w.rules.isExempted(w.pathTo(e)) {
		return nil
	}
	w.listed = w.listed || best != nil && e.typ != unix.DT_DIR
	return best
}

// dirState is what counts of a directory when its names are matched.
type dirState struct {
	states []*node
	git    bool
	inGit  bool
	dep    bool // below a tree that is listed as one
}

// match returns the strictest rule for one name in the directory d, nil for a name that
// is not protected, and leaves in s the partial matches.
func (r *Rules) match(d dirState, typ byte, name []byte, s *sub) *Rule {
	var found [8]*node
	hits := found[:0]
	for _, n := range d.states {
		hits = n.step(name, hits)
	}
	hits = r.tree.step(name, hits)
	if d.git {
		hits = r.git.step(name, hits)
	}
	var best *Rule
	for _, n := range hits {
		if typ == unix.DT_DIR && (n.exact != nil || n.globs != nil) {
			s.states = append(s.states, n)
		}
		rule := n.rule
		if rule == nil && typ == unix.DT_LNK {
			rule = n.below // a link here may put a whole listed directory into place
		}
		if rule == nil || rule.Where == Project && (d.inGit || d.dep) || rule.Tier == Flag && (typ == unix.DT_DIR) != rule.Dir {
			continue
		}
		if best == nil || best.Tier == Flag {
			best = rule
		}
	}
	return best
}

// Look is where in a tree names are looked up in a list of rules: it carries
// what the names above have matched already. The zero value is of no use;
// [Rules.Look] gives that of the top.
type Look struct {
	rules  *Rules
	states []*node
	git    bool  // the directory is a repository
	inGit  bool  // or below one
	tree   *Rule // it lies in a tree that is listed as one
}

// Look returns the place of the top of a workspace.
func (r *Rules) Look() Look {
	if r.tree == nil {
		return Look{rules: r}
	}
	return Look{rules: r, states: []*node{r.root}}
}

// Repository says that the directory at l has the shape of a repository, so
// that the names of git's own files count in it.
func (l Look) Repository() Look {
	l.git = true
	return l
}

// Git reports whether the directory at l is a repository by name or by
// Repository, or lies in one by that name.
func (l Look) Git() bool { return l.git || l.inGit }

// Match returns the rule of the deny or flag tier for one name of the directory
// at l, nil for an ordinary name, and the place below it. path is the path of
// the name from the workspace; dir and link say what it is.
func (l Look) Match(path, name string, dir, link bool) (*Rule, Look) {
	below := Look{rules: l.rules, inGit: l.inGit, tree: l.tree}
	if l.rules.tree == nil {
		return nil, below
	}
	e := entry{typ: unix.DT_REG}
	switch {
	case dir:
		e.typ = unix.DT_DIR
	case link:
		e.typ = unix.DT_LNK
	}
	folded := fold([]byte(name), nil)
	if string(folded) == ".git" {
		if !dir {
			return &Rule{Pattern: ".git", Tier: Deny, Reason: "git takes the repository, its config and its hooks from where it points"}, below
		}
		below.git, below.inGit = true, true
	}
	var s sub
	d := dirState{states: l.states, git: l.git, inGit: l.inGit, dep: l.tree != nil}
	best := l.rules.match(d, e.typ, folded, &s)
	below.states = s.states
	if best != nil && l.rules.exempt != nil && l.rules.isExempted(path) {
		return nil, below
	}
	if best != nil && best.Tier == Flag && best.Dir {
		below.tree = best
	}
	return best, below
}

// Find returns the first rule that a path, or a directory above it, has; nil for an
// ordinary one. The path is taken for that of a file.
func (r Rules) Find(path string) *Rule {
	look := r.Look()
	for at, rest := "", path; rest != ""; {
		name, more, below := strings.Cut(rest, "/")
		at = strings.TrimPrefix(at+"/"+name, "/")
		var rule *Rule
		if rule, look = look.Match(at, name, below, false); rule != nil {
			return rule
		}
		rest = more
	}
	return nil
}
