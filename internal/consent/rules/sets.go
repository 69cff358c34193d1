package rules

import "holdfast.dev/holdfast/internal/floor/event"

// Set is a shipped set of rules of consent, by the name that a policy gives
// under ask and deny.
type Set struct {
	Name  string
	Title string // what it is about, in a line
	Text  string // what to know of it
	Blind string // what it cannot see
	Rules []SetRule
}

// SetRule is one rule of a set. What can be decided without evaluating the condition
// is beside it, so that nothing is compiled for attempts that no rule is about.
type SetRule struct {
	ID       string
	When     string
	Reason   string       // for the human
	About    []event.Kind // the kinds of attempts that it can be about
	Programs []string     // of what is executed only these; nil for any
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

// SetNames are the names of the shipped sets. They are separate from the table,
// which is large: reading a policy needs only the names of sets.
var SetNames = []string{"install", "git-remotes", "git-push", "publish", "infrastructure", "pipe-to-shell", "outside-writes", "new-hosts"}
