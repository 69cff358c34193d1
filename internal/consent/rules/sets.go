package rules

import "holdfast.dev/holdfast/internal/floor/event"

// Set is a set of rules of consent that is shipped, by the name that a
// policy gives under ask and deny.
type Set struct {
	Name  string
	Title string // what it is about, in a line
	Text  string // what to know of it
	Blind string // what it cannot see
	Rules []SetRule
}

// SetRule is one rule of a set. What can be told without evaluating the
// condition stands beside it, so that nothing is compiled for what no rule is
// about.
type SetRule struct {
	ID       string
	When     string
	Reason   string       // what the human is told
	About    []event.Kind // the kinds of attempts that it can be about
	Programs []string     // of what is executed none but these; nil for any
	Verbs    []string     // likewise
}

// Sets are the shipped sets in the order in which they are documented.
func Sets() []Set { return table() }

func setNamed(name string) (Set, bool) {
	for _, s := range table() {
		if s.Name == name {
			return s, true
		}
	}
	return Set{}, false
}

// SetNames are the names of the shipped sets. They are kept apart from the table,
// which is large: reading a policy needs no more of a set than its name.
var SetNames = []string{"install", "git-remotes", "git-push", "publish", "infrastructure", "pipe-to-shell", "outside-writes", "new-hosts"}
