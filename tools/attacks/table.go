package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"io"
	"strings"
)

//go:embed reasons.txt
var reasonsText string

// reasons say why an action raises nothing, by its id or by the technique that
// begins its name.
type reasons map[string]string

// readReasons reads lines with an id and a reason. Lines that begin with # are
// comments.
func readReasons(text string) (reasons, error) {
	all := reasons{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		id, why, _ := strings.Cut(line, " ")
		if why = strings.TrimSpace(why); why == "" {
			return nil, fmt.Errorf("reasons.txt: %q has no reason", id)
		}
		if all[id] != "" {
			return nil, fmt.Errorf("reasons.txt: %q is listed twice", id)
		}
		all[id] = why
	}
	return all, nil
}

func (r reasons) reasonFor(a action) string {
	technique, _, _ := strings.Cut(a.name, " ")
	return cmp.Or(r[a.id], r[technique])
}

// table prints rows as they come, so that the results of an interrupted run are
// kept.
type table struct {
	w                    io.Writer
	rows, raised, silent int
}

// add prints a row. A row that raised nothing and has no reason is silent.
func (t *table) add(r row) error {
	if t.rows++; t.rows == 1 {
		if _, err := io.WriteString(t.w, "| id | action | what happened | alerts, or why none |\n| --- | --- | --- | --- |\n"); err != nil {
			return err
		}
	}
	about := strings.Join(r.alerts, ", ")
	why := r.silenceReason()
	switch {
	case about != "":
		t.raised++
	case why != "":
		about = "none: " + why
	default:
		t.silent++
		about = "**none, and no reason**"
	}
	_, err := fmt.Fprintf(t.w, "| `%s` | %s | %s | %s |\n", r.id, cell(r.name), cell(r.outcome()), cell(about))
	return err
}

// end prints the sums.
func (t *table) end() error {
	_, err := fmt.Fprintf(t.w, "\n%d actions; %d raised an alert of low or above, %d raised none without a reason.\n", t.rows, t.raised, t.silent)
	return err
}

// cell is a text that stays within its table cell.
func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;").Replace(s)
}
