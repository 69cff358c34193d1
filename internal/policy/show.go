package policy

import (
	"fmt"
	"strings"
)

// Row is one entry of an effective policy, for people and for programs.
type Row struct {
	Section string `json:"section"` // the key it belongs to, "filesystem.read"
	Value   string `json:"value"`
	Origin  string `json:"origin"` // file:line, a flag, or the part of holdfast that adds it
}

// Rows lists all that holds in a run of p, which Compile made of e, in the
// order of the keys. The value of a variable that looks like a secret is not
// shown.
func Rows(e Effective, p Plan) []Row {
	var rows []Row
	add := func(section, value, origin string) { rows = append(rows, Row{section, value, origin}) }
	for _, s := range p.Sources {
		sum := ""
		if s.SHA256 != "" {
			sum = "sha256 " + s.SHA256
		}
		add("source", s.Name, sum)
	}
	for _, key := range []string{"workspace.mode", "workspace.view", "workspace.scratch", "workspace.outputs", "workspace.protect", "workspace.unprotect", "workspace.hide", "workspace.show"} {
		for _, one := range e.of(key) {
			add(key, one.Value, one.Origin.String())
		}
	}
	add("workspace", p.Workspace, "workspace")
	for _, r := range p.Paths {
		value := r.Path
		if r.At != "" {
			value += " (by the link " + r.At + ")"
		}
		add("filesystem."+r.Access.String(), value, r.Origin.String())
	}
	rows = append(rows, networkRows(p)...)
	for _, one := range p.Env {
		add("environment", one.Name+"="+shownValue(one), one.Origin.String())
	}
	for _, k := range limitKeys[1:] {
		if all := e.of(k.name); len(all) > 0 {
			one := all[len(all)-1]
			add(k.name, k.kind.format(p.limit(k.name, one.Amount)), one.Origin.String())
		}
	}
	for _, one := range p.Tools {
		add("tools.deny", one.String(), one.Origin.String())
	}
	rows = append(rows, consentRows(e, p)...)
	rows = append(rows, recordRows(e, p)...)
	for _, one := range e.of("without") {
		add("without", one.Value, one.Origin.String())
	}
	for _, note := range p.Notes {
		add("note", note, "")
	}
	return rows
}

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
