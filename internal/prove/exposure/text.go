package exposure

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"holdfast.dev/holdfast/internal/floor/paths"
	"holdfast.dev/holdfast/internal/floor/text"
)

// JSON writes r as JSON.
func JSON(w io.Writer, r Report) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(r); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

// Paint colours a text for a terminal according to its level.
type Paint func(level Level, text string) string

// Text writes r for a terminal: a matrix of what each column gives away, then
// what the account does, the most severe first, with what happens to it inside
// and what to do. width is the terminal's width in characters; 0 is 100.
func Text(w io.Writer, r Report, paint Paint, width int) error {
	if width == 0 {
		width = 100
	}
	if paint == nil {
		paint = func(_ Level, text string) string { return text }
	}
	t := texter{r: r, paint: paint, width: max(width, 60)}
	t.head()
	t.matrix()
	t.details()
	t.tail()
	if _, err := w.Write(t.b.Bytes()); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return nil
}

type texter struct {
	r     Report
	paint Paint
	width int
	b     bytes.Buffer
}

func (t *texter) printf(format string, args ...any) { fmt.Fprintf(&t.b, format+"\n", args...) }

func (t *texter) head() {
	a := t.r.Account
	who := text.Line(a.User)
	if a.CI != "" {
		who += ", in a job of " + a.CI
	}
	t.printf("What %s hands to an agent that is started in %s", who, text.Line(cmp.Or(a.Workspace, a.Home)))
	t.printf("")
	for _, c := range t.r.Columns {
		t.wrapped(c.ID, c.Kind+": "+c.Basis)
	}
	if t.r.Version != "" {
		t.wrapped("by", "holdfast "+text.Line(t.r.Version))
	}
	t.printf("")
}

const cellWidth = 11

// cell is the result of a check in a column: the highest level, and the number of
// findings.
func (t *texter) cell(column, check string) string {
	found := t.r.Of(column, check)
	if len(found) == 0 {
		return fmt.Sprintf("%-*s", cellWidth, "-")
	}
	text := string(found[0].Level)
	if n := len(found); n > 1 {
		text += " " + strconv.Itoa(min(n, 999))
	}
	return t.paint(found[0].Level, fmt.Sprintf("%-*s", cellWidth, text))
}

func (t *texter) matrix() {
	title := 42
	line := strings.Repeat(" ", title)
	for _, c := range t.r.Columns {
		line += fmt.Sprintf("%-*s", cellWidth, c.ID)
	}
	t.printf("%s", strings.TrimRight(line, " "))
	empty := 0
	for _, class := range Classes {
		shown := false
		for _, c := range t.r.Checks {
			if c.Class != class {
				continue
			}
			row, any := "", false
			for _, col := range t.r.Columns {
				any = any || len(t.r.Of(col.ID, c.ID)) > 0
				row += t.cell(col.ID, c.ID)
			}
			if !any {
				empty++
				continue
			}
			if !shown {
				t.printf("%s", class)
				shown = true
			}
			t.printf("  %-*s%s", title-2, text.Shorten(c.Title, title-3), strings.TrimRight(row, " "))
		}
	}
	t.printf("%s without a finding in any column", plural(empty, "check", "checks"))
}

// details lists what the account gives away.
func (t *texter) details() {
	var checks []Check
	for _, c := range t.r.Checks {
		if len(t.r.Of(Here, c.ID)) > 0 {
			checks = append(checks, c)
		}
	}
	slices.SortStableFunc(checks, func(a, b Check) int {
		return cmp.Compare(t.r.Of(Here, b.ID)[0].Level.Rank(), t.r.Of(Here, a.ID)[0].Level.Rank())
	})
	for _, c := range checks {
		found := t.r.Of(Here, c.ID)
		t.printf("\n%s  %s", t.paint(found[0].Level, string(found[0].Level)), c.Title)
		for i, f := range found {
			if i == shownMost {
				t.printf("    … and %d more (all with --format json)", len(found)-i)
				break
			}
			t.printf("    %s", text.Line(t.object(f)))
		}
		t.wrapped("why", c.Why)
		for _, line := range fates(found) {
			t.wrapped("holdfast", line)
		}
		t.wrapped("do", c.Do)
	}
}

// shownMost is the maximum number of findings that the text lists per check.
const shownMost = 8

// object is one finding in a line.
func (t *texter) object(f Finding) string {
	object := f.Object
	if below, ok := paths.Rel(t.r.Account.Home, object); ok && t.r.Account.Home != "/" {
		object = "~/" + below
	}
	if object == "" {
		object = f.What
	}
	if c, _ := t.r.check(f.Check); f.What != object && slices.Contains([]string{sockets, services, kernel, ci}, c.Class) {
		object += " (" + f.What + ")"
	}
	if len(f.Detail) > 0 {
		object += ": " + strings.Join(f.Detail, ", ")
	}
	return text.Shorten(object, 400)
}

// fates describes what happens to findings inside, one line for each kind.
func fates(found []Finding) []string {
	var out []string
	count := map[string]int{}
	for _, f := range found {
		if f.Inside == nil {
			continue
		}
		line := f.Inside.Kind + ": " + f.Inside.Why
		if f.Inside.Rule != "" && f.Inside.Kind == Handed {
			line += " [" + f.Inside.Rule + "]"
		}
		if count[line]++; count[line] == 1 {
			out = append(out, line)
		}
	}
	slices.SortStableFunc(out, func(a, b string) int { return cmp.Compare(rank(b), rank(a)) })
	for i, line := range out {
		if len(out) > 1 {
			out[i] = fmt.Sprintf("%d %s", count[line], line)
		}
	}
	if len(out) > fatesMost {
		out = append(out[:fatesMost], fmt.Sprintf("and %d more ways", len(out)-fatesMost))
	}
	return out
}

// fatesMost is the maximum number of fates that the text lists per check.
const fatesMost = 4

// rank sorts what is handed over before the rest.
func rank(line string) int {
	if strings.HasPrefix(line, Handed) {
		return 1
	}
	return 0
}

// wrapped writes a labelled text in lines of the terminal's width.
func (t *texter) wrapped(label, words string) {
	const indent = 14
	line := fmt.Sprintf("    %-*s", indent-4, label)
	used := indent
	for word := range strings.FieldsSeq(text.Line(words)) {
		n := len([]rune(word))
		if used > indent && used+1+n > t.width {
			t.printf("%s", line)
			line, used = strings.Repeat(" ", indent), indent
		}
		if used > indent {
			line, used = line+" ", used+1
		}
		line, used = line+word, used+n
	}
	t.printf("%s", line)
}

func (t *texter) tail() {
	t.printf("")
	for _, c := range t.r.Columns {
		t.printf("  %-10s %s", text.Line(c.ID), t.r.Summary(c.ID))
	}
	for _, n := range t.r.Notes {
		t.printf("note: %s", text.Line(text.Shorten(n, 400)))
	}
}

// Summary counts the findings of a column by level.
func (r Report) Summary(column string) string {
	found := r.Of(column, "")
	var parts []string
	for i := len(Levels) - 1; i >= 0; i-- {
		n := 0
		for _, f := range found {
			if f.Level == Levels[i] {
				n++
			}
		}
		parts = append(parts, fmt.Sprintf("%d %s", n, Levels[i]))
	}
	return strings.Join(parts, ", ")
}
