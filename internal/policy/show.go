package policy

import (
	"fmt"
	"slices"
	"strconv"
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
	for _, k := range keys {
		if !strings.HasPrefix(k.name, "limits.") {
			continue
		}
		if all := e.of(k.name); len(all) > 0 {
			one := all[len(all)-1]
			add(k.name, formatAmount(k.kind, p.limit(k.name, one.Amount)), one.Origin.String())
		}
	}
	for _, one := range p.Tools {
		add("tools.deny", one.String(), one.Origin.String())
	}
	rows = append(rows, gateRows(e, p)...)
	rows = append(rows, recordRows(e, p)...)
	for _, one := range e.of("without") {
		add("without", one.Value, one.Origin.String())
	}
	for _, note := range p.Notes {
		add("note", note, "")
	}
	return rows
}

func networkRows(p Plan) (rows []Row) {
	for _, one := range p.Allow {
		rows = append(rows, Row{"network.allow", one.String(), one.Origin.String()})
	}
	for _, one := range p.HostPorts {
		rows = append(rows, Row{"network.host-ports", strconv.Itoa(one.Inside), one.Origin.String()})
	}
	for _, one := range p.Publish {
		rows = append(rows, Row{"network.publish", strconv.Itoa(one.Host) + ":" + strconv.Itoa(one.Inside), one.Origin.String()})
	}
	for _, one := range p.Credentials {
		rows = append(rows, Row{"credentials", one.String(), one.Origin.String()})
	}
	return rows
}

func gateRows(e Effective, p Plan) (rows []Row) {
	for _, one := range p.Ask {
		rows = append(rows, Row{"ask", one.String(), one.Origin.String()})
	}
	for _, one := range p.Deny {
		rows = append(rows, Row{"deny", one.String(), one.Origin.String()})
	}
	for _, one := range p.Programs.Allow {
		value := one.Text
		if len(one.Paths) > 0 && !slices.Equal(one.Paths, []string{value}) {
			value += " (" + strings.Join(one.Paths, ", ") + ")"
		}
		rows = append(rows, Row{"programs.allow", value, one.Origin.String()})
	}
	for _, one := range e.of("programs.else") {
		rows = append(rows, Row{"programs.else", one.Value, one.Origin.String()})
	}
	for _, one := range e.of("approvals.timeout") {
		rows = append(rows, Row{"approvals.timeout", formatAmount(patience, one.Amount), one.Origin.String()})
	}
	for _, one := range p.Approvals.Notify {
		rows = append(rows, Row{"approvals.notify", one.String(), one.Origin.String()})
	}
	return rows
}

func recordRows(e Effective, p Plan) (rows []Row) {
	rows = append(rows, Row{"record.level", string(p.Record.Level), p.Record.Origin.String()})
	for _, one := range p.Record.Anchor {
		rows = append(rows, Row{"record.anchor", one.String(), one.Origin.String()})
	}
	for _, one := range p.Alerts.Sinks {
		rows = append(rows, Row{"alerts.sinks", one.String(), one.Origin.String()})
	}
	for _, one := range p.Alerts.Rules {
		rows = append(rows, Row{"alerts.rules", one.Path, one.Origin.String()})
	}
	for _, one := range e.of("honeytokens") {
		rows = append(rows, Row{"honeytokens", one.Value, one.Origin.String()})
	}
	return rows
}

// limit is amount, unless the host lowered it.
func (p Plan) limit(name string, amount int64) int64 {
	if name == "limits.memory" {
		return p.Limits.Memory
	}
	return amount
}

func shownValue(e Env) string {
	if matchName(environment().SecretNames, e.Name) != "" || secretValue(e.Value) {
		return fmt.Sprintf("(%d bytes, not shown)", len(e.Value))
	}
	return printable(e.Value)
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

// Check reads a policy file and those that it extends as a run would, and
// returns what is wrong with them.
func Check(h Host, path string) error {
	o := Options{Host: h, Policy: path}
	if strings.HasSuffix(path, "/"+ProjectFile) || path == ProjectFile {
		full := expand(path, h.Dir, h.Home)
		data, err := readPolicy(full, h.UID, true)
		if err != nil {
			return err
		}
		f, err := Parse(path, h.Dir, data)
		if err == nil && f.Extends != "" && !slices.Contains(Profiles, f.Extends) {
			return fault(f.ExtendsAt, "", "extends: a project's file cannot name a file, which no hash would cover")
		}
		return err
	}
	_, err := o.userChain()
	return err
}
