package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"holdfast.dev/holdfast/internal/floor/document"
)

// mdCode is s as one line of Markdown code, or as text if that is impossible.
func mdCode(s string) string {
	s = document.Clean(s)
	if s == "" || strings.ContainsAny(s, "`|\\") {
		return document.Markdown(s)
	}
	return "`" + s + "`"
}

// mdVerdict is a verdict as Markdown; escaped and unseen are bold.
func mdVerdict(verdict string) string {
	if verdict == Escaped || verdict == Unseen {
		return "**" + verdict + "**"
	}
	return document.Markdown(verdict)
}

// mdRow is a row of a table; the cells are Markdown.
func mdRow(b *bytes.Buffer, cells ...string) {
	b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

// mdHead begins a table.
func mdHead(b *bytes.Buffer, cells ...string) {
	mdRow(b, cells...)
	rule := make([]string, len(cells))
	for i := range rule {
		rule[i] = "---"
	}
	mdRow(b, rule...)
}

// markdown writes t as a document.
func (t table) markdown(w io.Writer) error {
	var b bytes.Buffer
	b.WriteString("# Escape matrix\n\n")
	b.WriteString("Every cell was measured: the row was played against that target, and the verdict was given from outside. ")
	b.WriteString("*held*: every attempt was denied and nothing got through. **ESCAPED**: something got through. *residual*: something got through, and that is documented. " +
		"*inconclusive*: the row proved nothing there, which speaks for nobody. **unseen**: held, but the target's own record does not say so. –: not played.\n\n")
	t.mdTargets(&b)
	t.mdTotals(&b)
	names := t.names()
	for i := range names {
		names[i] = document.Markdown(names[i])
	}
	for _, class := range t.classes() {
		fmt.Fprintf(&b, "\n## %s\n\n", document.Markdown(className(class.name)))
		mdHead(&b, append([]string{"row", "check"}, names...)...)
		for _, row := range class.rows {
			cells := []string{document.Markdown(row.ID), document.Markdown(row.Title)}
			for _, cell := range row.Cells {
				cells = append(cells, mdVerdict(cell.word()))
			}
			mdRow(&b, cells...)
		}
	}
	t.mdUnproved(&b)
	_, err := w.Write(b.Bytes())
	return err
}

// mdTargets describes the columns.
func (t table) mdTargets(b *bytes.Buffer) {
	b.WriteString("## What was tried\n")
	for i, c := range t.Runs {
		fmt.Fprintf(b, "\n### %s\n\n", document.Markdown(t.names()[i]))
		for _, fact := range [][2]string{
			{"version", document.Markdown(c.Target.Version)}, {"program", mdCode(c.Target.Path)}, {"sha256", mdCode(c.Target.SHA256)}, {"called", mdCode(c.Target.commandLine())},
			{"policy", mdCode(c.Target.Policy)}, {"note", document.Markdown(c.Target.Note)}, {"host", document.Markdown(c.Host.String())}, {"measured", day(c)}, {"by", document.Markdown(strings.TrimSpace(c.Tool + " " + c.Version))},
		} {
			if fact[1] != "" {
				fmt.Fprintf(b, "- %s: %s\n", fact[0], fact[1])
			}
		}
	}
}

// day is the date of a column's measurement: that is enough for a document that
// is regenerated.
func day(c column) string {
	if c.Started.IsZero() {
		return ""
	}
	return c.Started.UTC().Format("2006-01-02")
}

// mdTotals writes how many rows of each class each target held.
func (t table) mdTotals(b *bytes.Buffer) {
	b.WriteString("\n## Totals\n\nHow many rows were held, of how many that were played, and what got through.\n\n")
	names := t.names()
	for i := range names {
		names[i] = document.Markdown(names[i])
	}
	mdHead(b, append([]string{"class"}, names...)...)
	for _, class := range t.classes() {
		cells := []string{document.Markdown(className(class.name))}
		for _, tally := range class.tallies {
			cells = append(cells, document.Markdown(tally.brief()))
		}
		mdRow(b, cells...)
	}
	cells := []string{"**all**"}
	for _, c := range t.Runs {
		cells = append(cells, "**"+document.Markdown(c.Total.String())+"**")
	}
	mdRow(b, cells...)
}

// mdUnproved writes why rows proved nothing.
func (t table) mdUnproved(b *bytes.Buffer) {
	first := true
	for i, c := range t.Runs {
		if len(c.reasons) == 0 {
			continue
		}
		if first {
			b.WriteString("\n## What proved nothing, and why\n")
			first = false
		}
		fmt.Fprintf(b, "\n%s:\n\n", document.Markdown(t.names()[i]))
		for _, why := range c.reasons {
			text := why.text
			if text == "" {
				text = "no reason was given"
			}
			fmt.Fprintf(b, "- %s: %s\n", document.Markdown(text), document.Markdown(strings.Join(why.ids, ", ")))
		}
	}
}
