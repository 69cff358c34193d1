//go:build linux

package workspace

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Tier says what happens to a file under a listed name.
type Tier string

// The tiers.
const (
	Deny Tier = "deny" // read-only when present at the start, quarantined when it appeared
	Flag Tier = "flag" // writable, listed at the end when new or changed
	Hide Tier = "hide" // a secret: unreadable when present at the start
	Show Tier = "show" // an exception from the hide tier
)

// Place says where in a tree an entry applies.
type Place string

// The places. The zero value means Project.
const (
	Project  Place = "project"  // anywhere but in git directories and trees of installed dependencies
	Anywhere Place = "anywhere" // there too
	AtRoot   Place = "root"     // at the top of the workspace
	InGit    Place = "gitdir"   // in directories that git takes for a repository
)

// Rule is one entry of the list of names.
type Rule struct {
	Pattern string `yaml:"pattern"` // components joined by "/"; "*" is any run of characters within one
	Tier    Tier   `yaml:"tier"`
	Where   Place  `yaml:"where"`
	Dir     bool   `yaml:"dir"`    // flag tier: the tree below is listed as one
	Key     bool   `yaml:"key"`    // hide tier: only a file that holds a private key
	Reason  string `yaml:"reason"` // what on the host executes it
	Ref     string `yaml:"ref"`    // rows of the escape catalogue
}

// Rules is a compiled list. The zero value protects nothing.
type Rules struct {
	list   []Rule
	exempt []string // paths from the workspace that unprotect named
	tree   *node    // anywhere and project
	root   *node
	git    *node
	hide   *node   // hide and show tiers: names at any depth
	hidden []*Rule // hide tier: paths from the workspace
}

// DefaultRules returns the list that is built in.
func DefaultRules() Rules { return compile(builtIn, nil) }

// List returns the entries, in order.
func (r Rules) List() []Rule { return slices.Clone(r.list) }

// WithSecrets returns the list with names of secrets added and taken away. A
// name without "/" applies at any depth, a path from the top of the workspace.
func (r Rules) WithSecrets(hide, show []string) (Rules, error) {
	list := slices.Clone(r.list)
	for _, one := range []struct {
		tier     Tier
		patterns []string
	}{{Hide, hide}, {Show, show}} {
		for _, p := range one.patterns {
			clean, err := cleanPattern(p)
			if err != nil {
				return Rules{}, fmt.Errorf("%s %q: %w", one.tier, p, err)
			}
			where := Project
			if strings.HasPrefix(p, "/") {
				where = AtRoot
			}
			list = append(list, Rule{Pattern: clean, Tier: one.tier, Where: where, Reason: "named by the policy"})
		}
	}
	return compile(list, r.exempt), nil
}

// With returns the list with entries of the user's added and taken away.
//
// A protect entry is a pattern in the deny tier; one with a leading "/" applies
// at the top of the workspace only. An unprotect entry that equals a pattern of
// the list removes that pattern (those of git directories are written
// ".git/hooks"); any other is a path from the workspace that is exempted with
// all below it.
func (r Rules) With(protect, unprotect []string) (Rules, error) {
	list := slices.Clone(r.list)
	exempt := slices.Clone(r.exempt)
	for _, p := range unprotect {
		clean, err := cleanPattern(p)
		if err != nil {
			return Rules{}, fmt.Errorf("unprotect %q: %w", p, err)
		}
		before := len(list)
		list = slices.DeleteFunc(list, func(e Rule) bool {
			name := e.Pattern
			if e.Where == InGit {
				name = ".git/" + name
			}
			return strings.EqualFold(name, clean)
		})
		if len(list) == before {
			exempt = append(exempt, clean)
		}
	}
	for _, p := range protect {
		clean, err := cleanPattern(p)
		if err != nil {
			return Rules{}, fmt.Errorf("protect %q: %w", p, err)
		}
		where := Anywhere
		if strings.HasPrefix(p, "/") {
			where = AtRoot
		}
		list = append(list, Rule{Pattern: clean, Tier: Deny, Where: where, Reason: "named by the policy"})
	}
	return compile(list, exempt), nil
}

func cleanPattern(p string) (string, error) {
	if strings.ContainsAny(p, "\x00\n") {
		return "", errors.New("holds a control character")
	}
	p = strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(p, "/"), "/**"), "/")
	p = strings.TrimPrefix(p, "./")
	if p == "" || p == "." || p == "**" {
		return "", errors.New("would name the whole workspace")
	}
	if slices.Contains(strings.Split(p, "/"), "..") || path.Clean(p) != p {
		return "", errors.New("is not a plain path below the workspace")
	}
	if strings.Contains(p, "**") {
		return "", errors.New("holds ** elsewhere than at its end; patterns apply at any depth already")
	}
	return p, nil
}

func compile(list []Rule, exempt []string) Rules {
	r := Rules{list: list, exempt: exempt, tree: &node{}, root: &node{}, git: &node{}, hide: &node{}}
	for i := range list {
		e := &list[i]
		if e.Where == "" {
			e.Where = Project
		}
		if e.Tier == Hide || e.Tier == Show {
			r.secret(e)
			continue
		}
		at := r.tree
		switch e.Where {
		case AtRoot:
			at = r.root
		case InGit:
			at = r.git
		}
		for c := range strings.SplitSeq(e.Pattern, "/") {
			if e.Tier == Deny && at.below == nil {
				at.below = e
			}
			at = at.edge(string(fold([]byte(c), nil)))
		}
		if at.rule == nil || at.rule.Tier == Flag {
			at.rule = e
		}
	}
	return r
}

// exempted reports whether unprotect named path or a directory above it.
func (r Rules) exempted(path string) bool {
	return slices.ContainsFunc(r.exempt, func(e string) bool {
		return path == e || strings.HasPrefix(path, e+"/")
	})
}

// node is one step of the compiled patterns.
type node struct {
	exact map[string]*node
	globs *globs // nil where no pattern has "*"
	rule  *Rule  // the pattern that ends here
	below *Rule  // a deny pattern that goes on from here
}

// globs are the patterns with "*" of a node.
type globs struct {
	first [256][]glob // by their first byte
	last  [256][]glob // those that begin with "*", by their last byte
}

type glob struct {
	pattern string
	to      *node
}

func (n *node) edge(c string) *node {
	if strings.Contains(c, "*") {
		if n.globs == nil {
			n.globs = &globs{}
		}
		at := &n.globs.first[c[0]]
		if c[0] == '*' {
			at = &n.globs.last[c[len(c)-1]]
		}
		for _, g := range *at {
			if g.pattern == c {
				return g.to
			}
		}
		*at = append(*at, glob{c, &node{}})
		return (*at)[len(*at)-1].to
	}
	if n.exact == nil {
		n.exact = map[string]*node{}
	}
	if n.exact[c] == nil {
		n.exact[c] = &node{}
	}
	return n.exact[c]
}

// step appends the nodes that a folded name leads to.
func (n *node) step(name []byte, to []*node) []*node {
	if len(name) == 0 {
		return to
	}
	if m := n.exact[string(name)]; m != nil {
		to = append(to, m)
	}
	if n.globs == nil {
		return to
	}
	for _, g := range n.globs.first[name[0]] {
		if globMatch(g.pattern, name) {
			to = append(to, g.to)
		}
	}
	for _, list := range [2][]glob{n.globs.last[name[len(name)-1]], n.globs.last['*']} {
		for _, g := range list {
			if globMatch(g.pattern, name) {
				to = append(to, g.to)
			}
		}
	}
	return to
}

// globMatch matches name with a pattern in which only "*" is special.
func globMatch(p string, name []byte) bool {
	star := strings.IndexByte(p, '*')
	if star < 0 {
		return p == string(name)
	}
	if len(name) < len(p)-strings.Count(p, "*") || string(name[:star]) != p[:star] {
		return false
	}
	p, name = p[star+1:], name[star:]
	if strings.IndexByte(p, '*') < 0 {
		return len(name) >= len(p) && string(name[len(name)-len(p):]) == p
	}
	for i := range len(name) + 1 {
		if globMatch(p, name[i:]) {
			return true
		}
	}
	return false
}
