// Package report is what a run of the escape matrix is as data, and every form
// in which it is handed on: for a terminal, as JSON, JUnit, SARIF and one page
// of HTML; a baseline that is committed, and what changed against one; several
// runs side by side; and which control holds which row.
//
// It judges nothing. Verdicts come from the package that plays the rows, and
// most texts come from sandboxed programs, so every format takes every string
// for hostile. What is written depends on the data alone: the order is that of
// classes and IDs, and no format reads the clock, the host or the environment.
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

// The verdicts of a row. Any other text, "" too, counts as Inconclusive: a
// verdict that was forgotten proves nothing.
const (
	Held         = "held"
	Escaped      = "ESCAPED"
	Inconclusive = "inconclusive"
	Residual     = "residual" // escaped, in a way that the row documents
	Unseen       = "unseen"   // held, and the target's record does not say so
)

// Run is one play of rows against one target.
type Run struct {
	Schema  int       `json:"schema"`  // set by the writers
	Kind    string    `json:"kind"`    // run or baseline; set by the writers
	Tool    string    `json:"tool"`    // what played the rows: holdfast
	Version string    `json:"version"` // of the tool
	Started time.Time `json:"started,omitzero"`
	Took    Seconds   `json:"took,omitzero"`
	// World is what the rows were played in, as prove --world names it; "" for a run
	// that is older than worlds.
	World string `json:"world,omitempty"`
	// Strict says that inconclusive rows count as failures.
	Strict bool `json:"strict,omitempty"`
	// Selection is how the rows were chosen, as the user said it, such as
	// "--class fs.links"; "" for all of them.
	Selection string `json:"selection,omitempty"`
	// Except are IDs of rows, or patterns of them, that may prove nothing although
	// the run is strict; set by [Run.Excepting].
	Except []string `json:"except,omitempty"`
	Target Target   `json:"target"`
	Host   Host     `json:"host"`
	Rows   []Row    `json:"rows"`
}

// Target is what was tried, as exactly as it can be named.
type Target struct {
	Name    string   `json:"name"`
	Version string   `json:"version,omitempty"`
	Path    string   `json:"path,omitempty"`   // of its program
	SHA256  string   `json:"sha256,omitempty"` // of its program, hexadecimal
	Flags   []string `json:"flags,omitempty"`  // as it was called; {} for the command
	Policy  string   `json:"policy,omitempty"` // sha256 of the effective policy, hexadecimal
	Note    string   `json:"note,omitempty"`   // such as where the flags are recommended
}

// Host is where it was tried.
type Host struct {
	Kernel   string `json:"kernel,omitempty"` // release, as uname -r
	OS       string `json:"os,omitempty"`     // PRETTY_NAME of os-release
	Arch     string `json:"arch,omitempty"`   // as Go calls it
	User     string `json:"user,omitempty"`   // root, or user; no name
	CPUs     int    `json:"cpus,omitempty"`
	Landlock int    `json:"landlock,omitempty"` // version of its ABI; 0 for none
}

// Row is one row of the matrix and what became of it.
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
	Effects  []string `json:"effects,omitempty"` // what was seen from the outside
	// Denials are how each attempt failed, "ATTEMPT: ERRNO", without anything
	// that differs from run to run; they are compared with those of a baseline.
	Denials []string `json:"denials,omitempty"`
	Missing bool     `json:"missing,omitempty"` // inconclusive because the host or the target lacks what the row needs
	// Excepted says that it proved nothing, and that this was said beforehand: it
	// does not fail a strict run.
	Excepted bool    `json:"excepted,omitempty"`
	Took     Seconds `json:"took,omitzero"`
	Rerun    string  `json:"rerun,omitempty"`  // the command that plays this row again
	Advice   string  `json:"advice,omitempty"` // what to do about a failure
}

// judged is the verdict of r, where anything unknown is inconclusive.
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

// Excepting is r with the rows excepted whose IDs match one of these patterns (as
// of path.Match). Only a row that proved nothing can be: what escaped, or was not
// seen, fails whatever was said.
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
// that share an ID keep the order in which they stand.
func (r Run) sorted() []Row {
	rows := append([]Row{}, r.Rows...) // never nil: JSON has a list
	slices.SortStableFunc(rows, byClass)
	return rows
}

func byClass(a, b Row) int {
	return cmp.Or(cmp.Compare(a.Class, b.Class), cmp.Compare(a.ID, b.ID))
}
