package policy

import (
	"fmt"
	"slices"
	"strings"
)

// Row is one entry of an effective policy, for people and for programs.
type Row struct {
	Section string `json:"section"` // the key it belongs to, "filesystem.read"
	Value   string `json:"value"`
	Origin  string `json:"origin"` // file:line, a flag, or the part of holdfast that adds it
}

// Rows lists all that holds in a run of p, which Compile made of e. Each section
// says its own.
func Rows(e Effective, p Plan) []Row {
	var rows []Row
	for _, s := range p.Sources {
		sum := ""
		if s.SHA256 != "" {
			sum = "sha256 " + s.SHA256
		}
		rows = append(rows, Row{"source", s.Name, sum})
	}
	rows = slices.Concat(rows, workspaceRows(e, p), filesystemRows(p), networkRows(p), credentialRows(p), environmentRows(p), limitRows(e, p),
		toolRows(p), consentRows(p), programRows(e, p), approvalRows(e, p), recordRows(p), alertRows(e, p), e.rows("without"))
	for _, note := range p.Notes {
		rows = append(rows, Row{"note", note, ""})
	}
	return rows
}

// rows are the entries of some keys as they were written.
func (e Effective) rows(keys ...string) (out []Row) {
	for _, key := range keys {
		for _, one := range e.entriesFor(key) {
			out = append(out, Row{key, one.Value, one.Origin.String()})
		}
	}
	return out
}

// rowsOf are rows of a section, one for each element of a list.
func rowsOf[T any](section string, all []T, row func(T) (value fmt.Stringer, origin Origin)) (out []Row) {
	for _, one := range all {
		value, origin := row(one)
		out = append(out, Row{section, value.String(), origin.String()})
	}
	return out
}

// cellText is a text that a row shows.
type cellText string

func (s cellText) String() string { return string(s) }

// Text lays rows out in columns, one section after the other.
func Text(rows []Row) string {
	section, value := 0, 0
	for _, r := range rows {
		section = max(section, len(r.Section))
		value = max(value, min(len(r.Value), 60))
	}
	var b strings.Builder
	for i, r := range rows {
		name := r.Section
		if i > 0 && rows[i-1].Section == name {
			name = ""
		}
		line := fmt.Sprintf("%-*s  %-*s  %s", section, name, value, r.Value, r.Origin)
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}
