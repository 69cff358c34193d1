package report

import (
	"cmp"
	"slices"
	"time"
)

// Kill is the kill matrix: which row escapes without which control. A wall is
// known to hold a row only when the row escapes where the wall is missing.
type Kill struct {
	Schema   int           `json:"schema"` // set by the writer
	Kind     string        `json:"kind"`   // kill; set by the writer
	Tool     string        `json:"tool"`
	Version  string        `json:"version"`
	Started  time.Time     `json:"started,omitzero"`
	Took     Seconds       `json:"took,omitzero"`
	Host     Host          `json:"host"`
	Controls []KillControl `json:"controls"`
	Rows     []KillRow     `json:"rows"`
}

// KillControl is something that was switched off, and what escaped then.
type KillControl struct {
	Name    string   `json:"name"`
	Omit    []string `json:"omit,omitempty"`    // the switches; several where one wall alone is held by another
	Why     string   `json:"why,omitempty"`     // what it is for, or why no row can need it
	Played  []string `json:"played,omitempty"`  // IDs of the rows that were played without it
	Escaped []string `json:"escaped,omitempty"` // IDs of those that escaped, or lost their trace
	Unclear []string `json:"unclear,omitempty"` // IDs of those that proved nothing
	// Excused says that Why tells why no row can need it, so that it is no finding.
	Excused bool `json:"excused,omitempty"`
}

// KillRow is a row that was held with every control in place.
type KillRow struct {
	ID    string `json:"id"`
	Class string `json:"class,omitempty"`
	Title string `json:"title,omitempty"`
	// Excused says why no control of the table can hold it alone; "" makes it a
	// finding when none does.
	Excused string `json:"excused,omitempty"`
}

// Needless are the names of the controls that no row needs, sorted.
func (k Kill) Needless() []string {
	var names []string
	for _, c := range k.Controls {
		if len(c.Escaped) == 0 && !c.Excused {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	return names
}

// HeldBy are the names of the controls without which the row escapes, sorted.
func (k Kill) HeldBy(id string) []string {
	var names []string
	for _, c := range k.Controls {
		if slices.Contains(c.Escaped, id) {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	return names
}

// Unheld are the rows that no control holds, by class and ID.
func (k Kill) Unheld() []KillRow {
	held := map[string]bool{}
	for _, c := range k.Controls {
		for _, id := range c.Escaped {
			held[id] = true
		}
	}
	return slices.DeleteFunc(k.sorted(), func(r KillRow) bool { return held[r.ID] || r.Excused != "" })
}

func (k Kill) sorted() []KillRow {
	rows := append([]KillRow{}, k.Rows...) // never nil: JSON has a list
	slices.SortStableFunc(rows, func(a, b KillRow) int {
		return cmp.Or(cmp.Compare(a.Class, b.Class), cmp.Compare(a.ID, b.ID))
	})
	return rows
}
