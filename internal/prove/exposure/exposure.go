package exposure

import (
	"cmp"
	"slices"
	"time"
)

// Schema is the version of the JSON of a Report.
const Schema = 1

// Level is how much an attacker gains from a thing.
type Level string

// The levels, from least to most.
const (
	Info   Level = "info"   // worth knowing
	Low    Level = "low"    // helps together with something else
	Medium Level = "medium" // useful by itself, within bounds
	High   Level = "high"   // another account, another machine, or root
)

// Levels are all levels, the lowest first.
var Levels = []Level{Info, Low, Medium, High}

// Rank is the position of l among Levels, from 1; 0 for an unknown text.
func (l Level) Rank() int { return slices.Index(Levels, l) + 1 }

// The columns of a report.
const (
	Here     = "here"     // the account, measured
	Clean    = "clean"    // a freshly created account on this machine, computed
	GitHub   = "github"   // a hosted runner of GitHub, from a table
	GitLab   = "gitlab"   // a hosted runner of gitlab.com, from a table
	Holdfast = "holdfast" // the account inside Holdfast, under the effective policy
)

// Column is one side of the comparison.
type Column struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	Kind  string `json:"kind"`  // measured, computed or model
	Basis string `json:"basis"` // how it was determined, in a sentence or two
}

// Check is one thing to look for.
type Check struct {
	ID     string `json:"id"`
	Class  string `json:"class"`
	Title  string `json:"title"`
	Why    string `json:"why"`              // why it matters, in one line
	Do     string `json:"do"`               // what to do about it, in one line
	Via    Via    `json:"-"`                // how it reaches a program
	Inside string `json:"inside,omitempty"` // what Holdfast does with it, if that is always the same
}

// Via is the way by which something reaches a program; it determines which part
// of a policy decides about it.
type Via int

// The ways.
const (
	ByReading  Via = iota // of the path that is the finding's object
	ByWriting             // to that path
	BySocket              // at that path, or of that abstract name
	ByVariable            // of that name
	ByPort                // of the loopback
	ByMetadata            // of a cloud, at its well-known address
	ByKernel              // for every process alike; see Check.Inside for what happens to it
)

// Finding is one thing that a column gives away.
type Finding struct {
	Check  string   `json:"check"`
	Column string   `json:"column"`
	Level  Level    `json:"level"`
	What   string   `json:"what"`             // in a few words
	Object string   `json:"object,omitempty"` // absolute path, name of a variable, port, name of a group, pid and program
	Detail []string `json:"detail,omitempty"` // mode, size, age, kinds of tokens
	Source string   `json:"source,omitempty"` // of a model: where it is documented
	Inside *Fate    `json:"inside,omitempty"` // for column here; nil if no policy could be made
}

// Fate is what happens to a thing inside Holdfast.
type Fate struct {
	Kind string `json:"kind"` // one of the kinds below
	Why  string `json:"why"`
	Rule string `json:"rule,omitempty"` // of the policy, as file:line or the name of a built-in part
}

// The kinds of a Fate.
const (
	Absent  = "not in view" // it does not exist inside
	Masked  = "masked"      // something worthless is in its place
	Refused = "refused"     // it is there, but does not work
	Handed  = "handed over" // because the policy says so
)

// Account is the examined account.
type Account struct {
	User      string   `json:"user"`
	UID       int      `json:"uid"`
	GID       int      `json:"gid"`
	Groups    []string `json:"groups,omitempty"`
	Home      string   `json:"home"`
	Workspace string   `json:"workspace,omitempty"`
	CI        string   `json:"ci,omitempty"` // the CI service that the environment indicates
}

// Report is a whole comparison.
type Report struct {
	Schema   int       `json:"schema"`
	Kind     string    `json:"kind"` // exposure
	Version  string    `json:"version,omitempty"`
	Time     time.Time `json:"time,omitzero"`
	Account  Account   `json:"account"`
	Columns  []Column  `json:"columns"`
	Checks   []Check   `json:"checks"` // all, including those that found nothing
	Findings []Finding `json:"findings"`
	Notes    []string  `json:"notes,omitempty"` // what could not be examined, and why
}

// Of lists the findings of one column, of one check or (for "") of all, the most
// severe first.
func (r Report) Of(column, check string) []Finding {
	var out []Finding
	for _, f := range r.Findings {
		if check != "" && f.Check != check {
			continue
		}
		if f.Column == column || column == Holdfast && f.Column == Here && f.Inside != nil && f.Inside.Kind == Handed {
			out = append(out, f)
		}
	}
	slices.SortStableFunc(out, func(a, b Finding) int { return cmp.Compare(b.Level.Rank(), a.Level.Rank()) })
	return out
}

// Most is the highest level in a column; "" if it gives nothing away.
func (r Report) Most(column string) Level {
	if found := r.Of(column, ""); len(found) > 0 {
		return found[0].Level
	}
	return ""
}

// check returns the check with this ID, and whether it exists.
func (r Report) check(id string) (Check, bool) {
	i := slices.IndexFunc(r.Checks, func(c Check) bool { return c.ID == id })
	if i < 0 {
		return Check{}, false
	}
	return r.Checks[i], true
}

// has reports whether the report has a column.
func (r Report) has(column string) bool {
	return slices.ContainsFunc(r.Columns, func(c Column) bool { return c.ID == column })
}
