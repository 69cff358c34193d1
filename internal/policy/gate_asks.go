package policy

import (
	"slices"

	"holdfast.dev/holdfast/internal/floor/event"
)

// Asks says whether any rule can ask a human about a kind of attempts, at a
// moment when somebody is there to answer, or not.
func (g *Gates) Asks(k event.Kind, attended bool) bool {
	if !g.Wants(k) || g.lanes[k] == nil {
		return false
	}
	return slices.ContainsFunc(g.lanes[k].all, func(r *gate) bool {
		return !r.denies() && (attended || !r.rule.Attended)
	})
}
