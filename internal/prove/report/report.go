package report

import (
	"cmp"
	"path"
	"slices"
	"time"
)

// Schema is the version of the JSON that this package writes and reads,
// described in docs/formats/prove.schema.json.
const Schema = 1

// The verdicts of a row. Any other text, including "", counts as Inconclusive: a
// forgotten verdict proves nothing.
const (
	Held         = "held"
	Escaped      = "ESCAPED"
	Inconclusive = "inconclusive"
	Residual     = "residual" // escaped, in a way that the row documents
	Unseen       = "unseen"   // held, but missing in the target's record
)

// Run is one play of rows against one target.
type Run struct {
	Schema  int       `json:"schema"`  // set by the writers
	Kind    string    `json:"kind"`    // run or baseline; set by the writers
	Tool    string    `json:"tool"`    // what played the rows: holdfast
	Version string    `json:"version"` // of the tool
	Started time.Time `json:"started,omitzero"`
	Took    Seconds   `json:"took,omitzero"`
	// World is what the rows were played in, as prove --world names it; "" for a
	// run from before there were worlds.
	World string `json:"world,omitempty"`
	// Strict says that inconclusive rows count as failures.
	Strict bool `json:"strict,omitempty"`
	// Selection is how the user selected the rows, such as "--class fs.links"; ""
	// for all of them.
	Selection string `json:"selection,omitempty"`
	// Except are IDs of rows, or patterns of them, that may prove nothing even in
	// a strict run; set by [Run.Excepting].
	Except []string `json:"except,omitempty"`
	Target Target   `json:"target"`
	Host   Host     `json:"host"`
	Rows   []Row    `json:"rows"`
}

// Target identifies what was tried, as exactly as possible.
type Target struct {
	Name    string   `json:"name"`
	Version string   `json:"version,omitempty"`
	Path    string   `json:"path,omitempty"`   // of its program
	SHA256  string   `json:"sha256,omitempty"` // of its program, hexadecimal
	Flags   []string `json:"flags,omitempty"`  // its arguments; {} for the command
	Policy  string   `json:"policy,omitempty"` // sha256 of the effective policy, hexadecimal
	Note    string   `json:"note,omitempty"`   // such as the source of the recommended flags
}

// Host is where it was tried.
type Host struct {
	Kernel   string `json:"kernel,omitempty"` // release, as uname -r
	OS       string `json:"os,omitempty"`     // PRETTY_NAME of os-release
	Arch     string `json:"arch,omitempty"`   // GOARCH
	User     string `json:"user,omitempty"`   // root or user, not a name
	CPUs     int    `json:"cpus,omitempty"`
	Landlock int    `json:"landlock,omitempty"` // ABI version; 0 for none
}

// Row is one row of the matrix and its result.
type Row struct {
	ID       string   `json:"id"`
	Class    string   `json:"class,omitempty"`
	Title    string   `json:"title,omitempty"`
	Promise  string   `json:"promise,omitempty"` // P1 to P10; "" for a row that breaks none, such as a control
	Kind     string   `json:"kind,omitempty"`
	Core     bool     `json:"core,omitempty"`
	Refs     []string `json:"refs,omitempty"` // CVEs, addresses, manual pages
	Expected string   `json:"expected,omitempty"`
	Observed string   `json:"observed,omitempty"`
	Verdict  string   `json:"verdict"`
	Reason   string   `json:"reason,omitempty"`  // one sentence
	Effects  []string `json:"effects,omitempty"` // what was seen from outside
	// Denials are how each attempt failed, "ATTEMPT: ERRNO", without anything
	// that differs between runs; they are compared with those of a baseline.
	Denials []string `json:"denials,omitempty"`
	Missing bool     `json:"missing,omitempty"` // inconclusive because the host or the target lacks what the row needs
	// Excepted says that the row proved nothing and was excepted beforehand: it
	// does not fail a strict run.
	Excepted bool    `json:"excepted,omitempty"`
	Took     Seconds `json:"took,omitzero"`
	Rerun    string  `json:"rerun,omitempty"`  // the command that plays this row again
	Advice   string  `json:"advice,omitempty"` // what to do about a failure
}

// judged is the verdict of r; an unknown one is inconclusive.
func (r Row) judged() string {
	switch r.Verdict {
	case Held, Escaped, Residual, Unseen:
		return r.Verdict
	}
	return Inconclusive
}

// Fails reports whether r fails the run that it is part of.
func (r Row) Fails(strict bool) bool {
	v := r.judged()
	return v == Escaped || v == Unseen || v == Inconclusive && strict && !r.Excepted
}

// Excepting returns r with an exception for the rows whose IDs match one of these
// patterns (see path.Match). It only applies to rows that proved nothing: one
// that escaped or was unseen always fails.
func (r Run) Excepting(patterns []string) Run {
	r.Except, r.Rows = patterns, slices.Clone(r.Rows)
	for i, row := range r.Rows {
		r.Rows[i].Excepted = row.judged() == Inconclusive && slices.ContainsFunc(patterns, func(p string) bool {
			ok, err := path.Match(p, row.ID)
			return ok && err == nil
		})
	}
	return r
}

// Failed are the rows that fail the run, in the order of every report.
func (r Run) Failed() []Row {
	return slices.DeleteFunc(r.sorted(), func(row Row) bool { return !row.Fails(r.Strict) })
}

// sorted are the rows in the order of every report: by class, then by ID. Rows
// that share an ID keep their order.
func (r Run) sorted() []Row {
	rows := append([]Row{}, r.Rows...) // never nil: JSON needs a list
	slices.SortStableFunc(rows, byClass)
	return rows
}

func byClass(a, b Row) int {
	return cmp.Or(cmp.Compare(a.Class, b.Class), cmp.Compare(a.ID, b.ID))
}
