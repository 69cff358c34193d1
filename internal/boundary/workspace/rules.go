//go:build linux

package workspace

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
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

// The places.
const (
	Project  Place = "project"  // anywhere but in git directories and trees of installed dependencies
	Anywhere Place = "anywhere" // there too
	AtRoot   Place = "root"     // at the top of the workspace
	InGit    Place = "gitdir"   // in directories that git takes for a repository
)

// Rule is one entry of the list of names.
type Rule struct {
	Pattern string // components joined by "/"; "*" is any run of characters within one
	Tier    Tier
	Where   Place
	Dir     bool   // flag tier: the tree below is listed as one
	Key     bool   // hide tier: only a file that holds a private key
	Judged  bool   // git's, flag tier: held back where what it says can do harm
	Reason  string // what on the host executes it
	Ref     string // rows of the escape catalogue
	Checked string // how the entry is known; "" of secrets
}

// Rules is a compiled list. The zero value protects nothing.
type Rules struct {
	own    []Rule   // the user's
	lacks  []string // patterns of the built-in list that the user took away
	exempt []string // paths from the workspace that unprotect named
	tree   *node    // anywhere and project
	root   *node
	git    *node
	hide   *node   // hide and show tiers: names at any depth
	hidden []*Rule // hide tier: paths from the workspace
}

// DefaultRules returns the list that is built in.
func DefaultRules() Rules { return builtInRules() }

// builtInRules is compiled once: most runs add nothing to it.
var builtInRules = sync.OnceValue(func() Rules { return compile(builtIn(), nil, nil, nil) })

// List returns the entries, in order.
func (r Rules) List() []Rule {
	list := slices.DeleteFunc(slices.Clone(builtIn()), func(e Rule) bool { return isTakenAway(e, r.lacks) })
	return append(list, r.own...)
}

// Changes are what a user adds to the built-in list and takes from it.
type Changes struct {
	// Protect are patterns for the deny tier, Hide for the hide tier; one with
	// a leading "/" applies at the top of the workspace only.
	Protect, Hide []string
	// Unprotect that equals a pattern of the list removes that pattern (those
	// of git directories are written ".git/hooks"); any other is a path from
	// the workspace that is exempted with all below it.
	Unprotect []string
	// Show are names that are not hidden.
	Show []string
}

// RulesWith returns the built-in list with changes.
func RulesWith(c Changes) (Rules, error) {
	if len(c.Protect)+len(c.Hide)+len(c.Unprotect)+len(c.Show) == 0 {
		return DefaultRules(), nil
	}
	var own []Rule
	var lacks, exempt []string
	for _, p := range c.Unprotect {
		clean, err := cleanPattern(p)
		if err != nil {
			return Rules{}, fmt.Errorf("unprotect %q: %w", p, err)
		}
		if slices.ContainsFunc(builtIn(), func(e Rule) bool { return isTakenAway(e, []string{clean}) }) {
			lacks = append(lacks, clean)
		} else {
			exempt = append(exempt, clean)
		}
	}
	for _, one := range []struct {
		name     string
		tier     Tier
		where    Place
		patterns []string
	}{{"protect", Deny, Anywhere, c.Protect}, {"hide", Hide, Anywhere, c.Hide}, {"show", Show, Anywhere, c.Show}} {
		for _, p := range one.patterns {
			clean, err := cleanPattern(p)
			if err != nil {
				return Rules{}, fmt.Errorf("%s %q: %w", one.name, p, err)
			}
			where := one.where
			if strings.HasPrefix(p, "/") {
				where = AtRoot
			}
			own = append(own, Rule{Pattern: clean, Tier: one.tier, Where: where, Reason: "named by the policy"})
		}
	}
	return compile(builtIn(), own, lacks, exempt), nil
}

// isTakenAway reports whether names takes e away.
func isTakenAway(e Rule, names []string) bool {
	name := e.Pattern
	if e.Where == InGit {
		name = ".git/" + name
	}
	return (e.Tier == Deny || e.Tier == Flag) && slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(name, n) })
}

func cleanPattern(p string) (string, error) {
	if strings.ContainsAny(p, "\x00\n") {
		return "", errors.New("contains a control character")
	}
	p = strings.TrimSuffix(strings.TrimSuffix(strings.TrimPrefix(p, "/"), "/**"), "/")
	p = strings.TrimPrefix(p, "./")
	if p == "" || p == "." || p == "**" {
		return "", errors.New("covers the whole workspace")
	}
	if slices.Contains(strings.Split(p, "/"), "..") || path.Clean(p) != p {
		return "", errors.New("is not a plain path below the workspace")
	}
	if strings.Contains(p, "**") {
		return "", errors.New("may have ** only at its end; patterns match at any depth without it")
	}
	return p, nil
}

func compile(list, own []Rule, lacks, exempt []string) Rules {
	r := Rules{own: own, lacks: lacks, exempt: exempt, tree: &node{}, root: &node{}, git: &node{}, hide: &node{}}
	for i := range len(list) + len(own) {
		var e *Rule
		if i < len(list) {
			e = &list[i]
		} else {
			e = &own[i-len(list)]
		}
		if isTakenAway(*e, lacks) && i < len(list) {
			continue
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

// isExempted reports whether unprotect named path or a directory above it.
func (r Rules) isExempted(path string) bool {
	return slices.ContainsFunc(r.exempt, func(e string) bool {
		return path == e || strings.HasPrefix(path, e+"/")
	})
}

// node is one step of the compiled patterns.
type node struct {
	exact map[string]*node
	globs *globs // nil where no pattern has "*"
	rule  *Rule  // the pattern that ends here
	below *Rule  // a deny pattern that continues from here
}

// globs are the patterns with "*" of a node, in lists; the tables say which list, 0
// being empty.
type globs struct {
	first [256]uint16 // of the patterns by their first byte
	last  [256]uint16 // of those that begin with "*", by their last byte
	lists [][]glob
}

type glob struct {
	pattern string
	to      *node
}

// list is where the pattern c belongs.
func (g *globs) list(c string) *[]glob {
	at := &g.first[c[0]]
	if c[0] == '*' {
		at = &g.last[c[len(c)-1]]
	}
	if *at == 0 {
		*at = uint16(len(g.lists))
		g.lists = append(g.lists, nil)
	}
	return &g.lists[*at]
}

func (n *node) edge(c string) *node {
	if strings.Contains(c, "*") {
		if n.globs == nil {
			n.globs = &globs{lists: make([][]glob, 1)}
		}
		at := n.globs.list(c)
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
	g := n.globs
	for _, list := range [3]uint16{g.first[name[0]], g.last[name[len(name)-1]], g.last['*']} {
		for _, g := range g.lists[list] {
			if globMatch(g.pattern, name) {
				to = append(to, g.to)
			}
		}
	}
	return to
}

// globMatch matches name with a pattern in which only "*" is special. The end of the
// pattern is compared first: most names differ there.
func globMatch(p string, name []byte) bool {
	for len(p) > 0 && p[len(p)-1] != '*' {
		last := len(name) - 1
		if last < 0 || name[last] != p[len(p)-1] {
			return false
		}
		p, name = p[:len(p)-1], name[:last]
	}
	for len(p) > 0 && p[0] != '*' {
		if len(name) == 0 || name[0] != p[0] {
			return false
		}
		p, name = p[1:], name[1:]
	}
	switch p {
	case "":
		return len(name) == 0
	case "*":
		return true
	}
	for i := range len(name) + 1 {
		if (p[1] == '*' || i < len(name) && name[i] == p[1]) && globMatch(p[1:], name[i:]) {
			return true
		}
	}
	return false
}
