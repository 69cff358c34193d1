package policy

import (
	"fmt"
	"strings"

	"holdfast.dev/holdfast/internal/floor/event"
)

// GateSet is a set of rules of consent that is shipped, by the name that a
// policy gives under ask and deny.
type GateSet struct {
	Name  string
	Title string // what it is about, in a line
	Text  string // what to know of it
	Blind string // what it cannot see
	Rules []GateSetRule
}

// GateSetRule is one rule of a set. What can be told without evaluating the
// condition stands beside it, so that nothing is compiled for what no rule is
// about.
type GateSetRule struct {
	ID       string
	When     string
	Reason   string       // what the human is told
	About    []event.Kind // the kinds of attempts that it can be about
	Programs []string     // of what is executed none but these; nil for any
	Verbs    []string     // likewise
}

// GateSets are the shipped sets in the order in which they are documented.
func GateSets() []GateSet { return gateTable() }

func gateSet(name string) (GateSet, bool) {
	for _, s := range gateTable() {
		if s.Name == name {
			return s, true
		}
	}
	return GateSet{}, false
}

// gateSetNames are kept apart from the table, which is large: reading a policy
// needs no more of a set than its name.
var gateSetNames = []string{"install", "git-remotes", "git-push", "publish", "infrastructure", "pipe-to-shell", "outside-writes", "new-hosts"}

func unknownSet(name string) error {
	if near := nearest(name, gateSetNames); near != "" {
		return fmt.Errorf("there is no rule set %q, did you mean %q?", printable(name), near)
	}
	return fmt.Errorf("there is no rule set %q; known: %s", printable(name), strings.Join(gateSetNames, ", "))
}
