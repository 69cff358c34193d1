package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"holdfast.dev/holdfast/internal/floor/document"
)

// WriteChanges writes c as text or JSON.
func WriteChanges(w io.Writer, c Changes, f Format, o TextOptions) error {
	switch f {
	case FormatText:
		return changesText(w, c, o)
	case FormatJSON:
		c.Schema, c.Kind = Schema, kindChanges
		return writeJSON(w, c)
	}
	return unknownFormat(f, ChangesFormats)
}

// changesText writes the differences, first the weakened rows in full.
func changesText(w io.Writer, c Changes, o TextOptions) error {
	p := newPage(o)
	p.line("%s", p.tint(bold, p.fit("changes of "+c.Is.Target.nameAndVersion()+" since the baseline", 0)))
	for _, d := range c.Identity {
		p.item(2, d.Field, document.Clean(cmp.Or(d.Was, "unknown"))+" → "+document.Clean(cmp.Or(d.Is, "unknown")))
	}
	parts := []struct {
		name, colour string
		all          []Change
	}{
		{"weaker", red, c.Weakened}, {"changed", yellow, c.Changed}, {"vanished", yellow, c.Vanished}, {"new", cyan, c.New}, {"better", green, c.Better},
	}
	var words []string
	for _, part := range parts {
		if len(part.all) == 0 {
			continue
		}
		head := fmt.Sprintf("%s: %s", part.name, counted(len(part.all), "row", "rows"))
		p.line("\n%s", p.tint(part.colour, head))
		for _, change := range part.all {
			p.change(change, part.name == "weaker" || o.Verbose)
		}
		words = append(words, fmt.Sprintf("%d %s", len(part.all), part.name))
	}
	words = append(words, fmt.Sprintf("%d as before", c.Same))
	if c.Unplayed > 0 {
		words = append(words, fmt.Sprintf("%d not played", c.Unplayed))
	}
	p.WriteByte('\n')
	p.paragraph(0, strings.Join(words, ", "))
	_, err := w.Write(p.Bytes())
	return err
}

// change writes a changed row.
func (p *page) change(c Change, whole bool) {
	verdict := c.Was + " → " + c.Is
	switch {
	case c.Was == "":
		verdict = c.Is
	case c.Is == "":
		verdict = "was " + c.Was
	case c.Was == c.Is:
		verdict = "still " + c.Is
	}
	p.line("  %s  %s  %s", p.tint(bold, p.fit(document.Clean(c.ID), p.o.Width-12)), p.tint(tints[c.Is], document.Clean(verdict)), p.fit(className(c.Class), 48))
	p.item(4, "check", document.Clean(c.Title))
	gone, came := onlyInOne(c.WasHow, c.IsHow)
	if c.Was != "" && c.Is != "" {
		p.list("was", gone)
		p.list("is", came)
	}
	if whole || c.Is == Escaped || c.Is == Unseen {
		p.item(4, "reason", document.Clean(c.Reason))
		p.item(4, "do", document.Clean(c.Advice))
		p.item(4, "again", document.Clean(c.Rerun))
	}
}

// onlyInOne returns the elements that only one of two lists has.
func onlyInOne(was, is []string) (gone, came []string) {
	only := func(a, b []string) []string {
		return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
	}
	return only(was, is), only(is, was)
}
