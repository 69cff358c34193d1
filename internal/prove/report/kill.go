package report

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Kill is the kill matrix: which row escapes without which control. A wall is
// known to hold a row only if the row escapes when the wall is missing.
type Kill struct {
	Schema   int           `json:"schema"` // set by the writer
	Kind     string        `json:"kind"`   // kill; set by the writer
	Tool     string        `json:"tool"`
	Version  string        `json:"version"`
	Started  time.Time     `json:"started,omitzero"`
	Took     Seconds       `json:"took,omitzero"`
	Host     Host          `json:"host"`
	Also     []Host        `json:"also,omitempty"` // the hosts of the runs that were merged in
	Controls []KillControl `json:"controls"`
	Rows     []KillRow     `json:"rows"`
	// Unproved are rows that were not held with every control in place, so that
	// they show nothing.
	Unproved []KillUnproved `json:"unproved,omitempty"`
}

// KillUnproved is a row that was not held with every control in place.
type KillUnproved struct {
	ID      string `json:"id"`
	As      string `json:"as,omitempty"` // the user of that run
	Verdict string `json:"verdict"`
	Reason  string `json:"reason,omitempty"`
}

// KillControl is a control that was switched off, and what escaped then.
type KillControl struct {
	Name    string   `json:"name"`
	Omit    []string `json:"omit,omitempty"`    // the switches; several if another wall holds the same rows
	Why     string   `json:"why,omitempty"`     // its purpose, or why no row can need it
	Played  []string `json:"played,omitempty"`  // IDs of the rows that were played without it
	Escaped []string `json:"escaped,omitempty"` // IDs of those that escaped, or lost their trace
	Unclear []string `json:"unclear,omitempty"` // IDs of those that proved nothing
	As      []string `json:"as,omitempty"`      // the users for whom rows escaped: root, user
	// Excused means that Why says why no row can need it, so that it is no
	// finding.
	Excused bool `json:"excused,omitempty"`
}

// KillRow is a row that was held with every control in place.
type KillRow struct {
	ID    string `json:"id"`
	Class string `json:"class,omitempty"`
	Title string `json:"title,omitempty"`
	// Excused says why no control of the table can hold it alone; if "" and none
	// does, the row is a finding.
	Excused string `json:"excused,omitempty"`
}

// Needless are the names of the controls that no row needs, sorted.
func (k Kill) Needless() []string { return k.named(func(c KillControl) bool { return !c.unknown() }) }

// Unknown are the names of the controls about which nothing is known, sorted:
// their rows proved nothing.
func (k Kill) Unknown() []string { return k.named(KillControl.unknown) }

// named are the names of controls without which nothing escaped, and that have no
// excuse.
func (k Kill) named(which func(KillControl) bool) []string {
	var names []string
	for _, c := range k.Controls {
		if len(c.Escaped) == 0 && !c.Excused && which(c) {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	return names
}

// unknown reports whether every row that was played without c proved nothing.
func (c KillControl) unknown() bool { return len(c.Played) == len(c.Unclear) }

// Covered counts the controls that hold a row, and those that have a reason instead.
func (k Kill) Covered() (held, excused int) {
	for _, c := range k.Controls {
		switch {
		case len(c.Escaped) > 0:
			held++
		case c.Excused && c.Why != "":
			excused++
		}
	}
	return held, excused
}

// Merge adds the run of another user, made by the same build, to k.
func (k Kill) Merge(other Kill) (Kill, error) {
	if k.Tool != other.Tool || k.Version != other.Version {
		return Kill{}, fmt.Errorf("it was made by %s %s, and this is %s %s", other.Tool, other.Version, k.Tool, k.Version)
	}
	k.Also = append(append(slices.Clone(k.Also), other.Host), other.Also...)
	k.Took += other.Took
	k.Controls, k.Rows = slices.Clone(k.Controls), slices.Clone(k.Rows)
	for _, c := range other.Controls {
		i := slices.IndexFunc(k.Controls, func(mine KillControl) bool { return mine.Name == c.Name })
		if i < 0 {
			k.Controls = append(k.Controls, c)
			continue
		}
		k.Controls[i] = k.Controls[i].merge(c)
	}
	for _, r := range other.Rows {
		if !slices.ContainsFunc(k.Rows, func(mine KillRow) bool { return mine.ID == r.ID }) {
			k.Rows = append(k.Rows, r)
		}
	}
	k.Unproved = append(slices.Clone(k.Unproved), other.Unproved...)
	return k, nil
}

// merge adds what another run shows about c. An excuse of only one run does not
// count: the other run played the control.
func (c KillControl) merge(other KillControl) KillControl {
	if c.Excused && !other.Excused {
		c.Why = other.Why
	}
	c.Excused = c.Excused && other.Excused
	c.Played, c.Escaped = union(c.Played, other.Played), union(c.Escaped, other.Escaped)
	c.Unclear, c.As = union(c.Unclear, other.Unclear), union(c.As, other.As)
	return c
}

func union(a, b []string) []string {
	all := slices.Sorted(slices.Values(slices.Concat(a, b)))
	return slices.Compact(all)
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
	rows := append([]KillRow{}, k.Rows...) // never nil: JSON needs a list
	slices.SortStableFunc(rows, func(a, b KillRow) int {
		return cmp.Or(cmp.Compare(a.Class, b.Class), cmp.Compare(a.ID, b.ID))
	})
	return rows
}
