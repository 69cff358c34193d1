package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"holdfast.dev/holdfast/internal/floor/document"
)

// table is several runs side by side.
type table struct {
	Schema int        `json:"schema"`
	Kind   string     `json:"kind"`
	Runs   []column   `json:"runs"`
	Rows   []tableRow `json:"rows"`
}

// column is one of the runs.
type column struct {
	Name    string       `json:"name"` // unique among the columns
	Tool    string       `json:"tool"`
	Version string       `json:"version"`
	Started time.Time    `json:"started,omitzero"`
	Target  Target       `json:"target"`
	Host    Host         `json:"host"`
	World   string       `json:"world,omitempty"` // see [Run.World]
	Total   Tally        `json:"total"`
	Classes []ClassTally `json:"classes"`

	reasons []reason // why rows proved nothing
}

type tableRow struct {
	ID      string  `json:"id"`
	Class   string  `json:"class,omitempty"`
	Title   string  `json:"title,omitempty"`
	Promise string  `json:"promise,omitempty"`
	Cells   []*cell `json:"cells"` // nil if the row was not played
}

type cell struct {
	Verdict  string `json:"verdict"`
	Observed string `json:"observed,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// Matrix writes runs side by side, in their order, in one of MatrixFormats; o is
// for text.
func Matrix(w io.Writer, runs []Run, f Format, o TextOptions) error {
	t := sideBySide(runs)
	switch f {
	case FormatText:
		return t.text(w, o)
	case FormatMarkdown:
		return t.markdown(w)
	case FormatHTML:
		return t.html(w)
	case FormatJSON:
		return writeJSON(w, t)
	}
	return unknownFormat(f, MatrixFormats)
}

// sideBySide joins runs by the IDs of their rows. The title of a row comes from
// the first run that has one.
func sideBySide(runs []Run) table {
	t := table{Schema: Schema, Kind: kindMatrix, Runs: []column{}, Rows: []tableRow{}}
	at := map[string]int{}
	for i, r := range runs {
		t.Runs = append(t.Runs, column{
			Name: r.Target.Name, Tool: r.Tool, Version: r.Version, Started: moment(r.Started), Target: r.Target, Host: r.Host, World: r.World,
			Total: r.Total(), Classes: append([]ClassTally{}, r.Classes()...), reasons: r.reasons(Inconclusive),
		})
		for _, row := range byID(r) {
			j, known := at[row.ID]
			if !known {
				j = len(t.Rows)
				at[row.ID] = j
				t.Rows = append(t.Rows, tableRow{ID: row.ID, Class: row.Class, Cells: make([]*cell, len(runs))})
			}
			have := &t.Rows[j]
			have.Title, have.Promise = cmp.Or(have.Title, row.Title), cmp.Or(have.Promise, row.Promise)
			have.Cells[i] = &cell{row.judged(), row.Observed, row.Reason}
		}
	}
	slices.SortFunc(t.Rows, func(a, b tableRow) int {
		return cmp.Or(cmp.Compare(a.Class, b.Class), cmp.Compare(a.ID, b.ID))
	})
	t.nameColumns()
	return t
}

// nameColumns extends the names of columns of one target until they differ.
func (t table) nameColumns() {
	names, worlds := map[string]bool{}, map[string]bool{}
	for _, c := range t.Runs {
		names[c.Name], worlds[c.World] = true, true
	}
	if len(names) == 1 && len(worlds) == len(t.Runs) && len(worlds) > 1 {
		for i, c := range t.Runs {
			t.Runs[i].Name = c.World // the only difference
		}
		return
	}
	more := []func(column) string{
		func(c column) string {
			if len(worlds) == 1 {
				return ""
			}
			return c.World
		},
		func(c column) string { return c.Target.Version },
		func(c column) string { return c.Host.User },
		func(c column) string { return c.Host.Kernel },
	}
	for _, part := range more {
		count := map[string]int{}
		for _, c := range t.Runs {
			count[c.Name]++
		}
		for i, c := range t.Runs {
			if count[c.Name] > 1 && part(c) != "" {
				t.Runs[i].Name += " " + part(c)
			}
		}
	}
}

// names are the printable names of the columns.
func (t table) names() []string {
	var names []string
	for _, c := range t.Runs {
		names = append(names, cmp.Or(document.Clean(c.Name), "a target without a name"))
	}
	return names
}

// classes are the classes of all runs with their rows, sorted.
func (t table) classes() (all []tableClass) {
	for _, row := range t.Rows {
		if len(all) == 0 || all[len(all)-1].name != row.Class {
			all = append(all, tableClass{name: row.Class, tallies: make([]Tally, len(t.Runs))})
		}
		class := &all[len(all)-1]
		class.rows = append(class.rows, row)
		for i, cell := range row.Cells {
			if cell != nil {
				class.tallies[i].add(cell.Verdict)
			}
		}
	}
	return all
}

type tableClass struct {
	name    string
	rows    []tableRow
	tallies []Tally // of each run
}

// brief is a tally for a table cell: how many of how many were held, and what
// escaped.
func (t Tally) brief() string {
	if t.Rows() == 0 {
		return "–"
	}
	parts := []string{fmt.Sprintf("%d/%d", t.Held, t.Rows())}
	for _, p := range t.parts() {
		if p.n > 0 && (p.verdict == Escaped || p.verdict == Unseen) {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.verdict))
		}
	}
	return strings.Join(parts, ", ")
}

func (c *cell) word() string {
	if c == nil {
		return "–"
	}
	return c.Verdict
}
