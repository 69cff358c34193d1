package detect

import (
	"slices"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
)

// Attack is the version of ATT&CK of the technique ids. If it has none that
// fits, ids of ATLAS are used, which begin with AML.
const Attack = "v19"

// Severity is how bad it is if it is what it looks like.
type Severity string

// The severities, from the least.
const (
	Info     Severity = "info"
	Low      Severity = "low"
	Medium   Severity = "medium"
	High     Severity = "high"
	Critical Severity = "critical"
)

// Severities are all of them, from the least.
func Severities() []Severity { return []Severity{Info, Low, Medium, High, Critical} }

// Level orders severities: 0 for one that is not known, 1 for Info.
func (s Severity) Level() int { return slices.Index(Severities(), s) + 1 }

// FirstSeen is the rule that reports what is new in a workspace. The key of its
// alerts is the kind of a thing and its name.
const FirstSeen = "first-seen"

// Rule is one thing to look for.
type Rule struct {
	ID             string       `json:"id"`
	Title          string       `json:"title"`
	Severity       Severity     `json:"severity"`
	Technique      []string     `json:"technique"`
	Explanation    string       `json:"explanation"`
	FalsePositives string       `json:"falsePositives"`
	Note           string       `json:"note,omitempty"` // what must be recorded for it
	Match          Match        `json:"match,omitzero"`
	Key            []string     `json:"key,omitempty"` // fields that distinguish alerts; the object if there are none
	Correlation    *Correlation `json:"correlation,omitempty"`
	Tests          Tests        `json:"-"`
	Where          string       `json:"where,omitempty"` // file:line; "" for a built-in one
}

// Match says which events are meant. What can be decided without evaluating the
// condition comes first.
type Match struct {
	Actions   []string `json:"actions,omitempty"`
	Objects   []string `json:"objects,omitempty"` // one of these, exactly; none for any
	Verdict   string   `json:"verdict,omitempty"` // "" for any
	Marks     []string `json:"marks,omitempty"`   // at least one of these
	Unless    []string `json:"unless,omitempty"`  // none of these
	New       []string `json:"new,omitempty"`     // at least one thing of these kinds is new by the baseline of the workspace
	Condition string   `json:"condition,omitempty"`
}

// Correlation says which combination of events is meant, as in Sigma 2.1.
type Correlation struct {
	Type    string        `json:"type"`              // event_count, value_count, temporal or temporal_ordered
	Window  time.Duration `json:"window"`            // between the first and the last of them
	AtLeast int           `json:"atLeast,omitempty"` // of the counts
	Field   string        `json:"field,omitempty"`   // of value_count: what differs
	By      []string      `json:"by,omitempty"`      // fields that are the same; the session always is
	Steps   []Step        `json:"steps,omitempty"`   // of the temporal ones
}

// The types of correlations.
const (
	eventCount      = "event_count"
	valueCount      = "value_count"
	temporal        = "temporal"
	temporalOrdered = "temporal_ordered"
)

// Step is one of the things that come together: a match of one of some rules,
// or events of its own.
type Step struct {
	Rules []string `json:"rules,omitempty"`
	Match Match    `json:"match,omitzero"`
}

// Tests are the sessions that show what a rule does. They are in its file.
type Tests struct {
	Normal []event.Event // that the baseline is learnt from; none for no baseline
	Raises []event.Event
	Honest []event.Event
}

func (m Match) empty() bool {
	return len(m.Actions) == 0 && len(m.Objects) == 0 && m.Verdict == "" && len(m.Marks) == 0 && len(m.Unless) == 0 && len(m.New) == 0 && m.Condition == ""
}

// waits reports whether later steps are of no use without the first: in groups
// by other fields than the session, the program that causes the events could
// push the ones that matter out with groups of later steps alone.
func (r *Rule) waits() bool {
	c := r.Correlation
	return c != nil && c.Type == temporalOrdered && len(c.By) > 0
}
