package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// line is what became of the actions of one technique.
type line struct {
	technique       string // of Falco's, which name none, the action itself
	actions, raised int
	rules, why      []string // each once, in the order in which they came
}

// short takes a row into the line of its technique.
func (t *table) short(r row, why string) {
	technique, _, _ := strings.Cut(r.name, " ")
	i := slices.IndexFunc(t.lines, func(l *line) bool { return l.technique == technique })
	if i < 0 {
		i = len(t.lines)
		t.lines = append(t.lines, &line{technique: technique})
	}
	l := t.lines[i]
	l.actions++
	if len(r.alerts) == 0 {
		l.why = appendOnce(l.why, cell(why))
		return
	}
	l.raised++
	for _, a := range r.alerts {
		rule, _, _ := strings.Cut(a, " ")
		l.rules = appendOnce(l.rules, rule)
	}
}

func appendOnce(all []string, s string) []string {
	if slices.Contains(all, s) {
		return all
	}
	return append(all, s)
}

// What is between these lines of the page is written by this command.
const (
	pageBegin = "<!-- begin: go run ./tools/attacks -page -->\n"
	pageEnd   = "<!-- end -->\n"
	pageHead  = "| technique or action | actions | alerted | rules | why the others raised none |\n| --- | --- | --- | --- | --- |\n"
)

// intoPage puts the lines and the sums into a page.
func (t *table) intoPage(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(text), pageBegin)
	_, after, ended := strings.Cut(rest, pageEnd)
	if !ok || !ended {
		return fmt.Errorf("%s: it has no lines %q and %q", file, pageBegin, pageEnd)
	}
	var b strings.Builder
	b.WriteString(before + pageBegin + "\n" + t.sums() + "\n\n" + pageHead)
	for _, l := range t.lines {
		fmt.Fprintf(&b, "| %s | %d | %d | %s | %s |\n", l.technique, l.actions, l.raised, strings.Join(l.rules, ", "), strings.Join(l.why, lineBreak))
	}
	b.WriteString("\n" + pageEnd + after)
	return os.WriteFile(file, []byte(b.String()), 0o644)
}

// lineBreak is between the reasons in a cell.
const lineBreak = "<br>"
