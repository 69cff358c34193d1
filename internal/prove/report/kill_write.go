package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"holdfast.dev/holdfast/internal/floor/document"
)

// WriteKill writes k in one of KillFormats; o is for text.
func WriteKill(w io.Writer, k Kill, f Format, o TextOptions) error {
	switch f {
	case FormatText:
		return k.text(w, o)
	case FormatMarkdown:
		return k.markdown(w)
	case FormatJSON:
		return k.json(w)
	}
	return unknownFormat(f, KillFormats)
}

func (k Kill) json(w io.Writer) error {
	k.Schema, k.Kind, k.Rows = Schema, kindKill, k.sorted()
	k.Controls, k.Started = append([]KillControl{}, k.Controls...), moment(k.Started)
	doc := struct {
		Kill
		Needless []string `json:"needless"`
		Unknown  []string `json:"unknown"`
		Unheld   []string `json:"unheld"`
	}{k, append([]string{}, k.Needless()...), append([]string{}, k.Unknown()...), append([]string{}, rowIDs(k.Unheld())...)}
	return writeJSON(w, doc)
}

// ReadKill reads the JSON of a kill matrix, and nothing else; see [ReadJSON].
func ReadKill(in io.Reader) (Kill, error) {
	var doc struct {
		Kill
		Needless, Unknown, Unheld []string // derived from the rest
	}
	if err := readDocument(in, &doc, kindKill); err != nil {
		return Kill{}, fmt.Errorf("reading a kill matrix: %w", err)
	}
	return doc.Kill, nil
}

func rowIDs(rows []KillRow) []string {
	var ids []string
	for _, r := range rows {
		ids = append(ids, r.ID)
	}
	return ids
}

// text writes each control with the rows it holds, then the findings.
func (k Kill) text(w io.Writer, o TextOptions) error {
	p := newPage(o)
	p.line("%s", p.tint(bold, "which row escapes without which control"))
	p.item(2, "host", k.Host.String())
	for _, h := range k.Also {
		p.item(2, "and", h.String())
	}
	p.item(2, "by", document.Clean(strings.TrimSpace(k.Tool+" "+k.Version)))
	p.item(2, "begun", when(k.Started))
	p.WriteByte('\n')
	for _, c := range k.Controls {
		word, colour := counted(len(c.Escaped), "row", "rows"), green
		switch {
		case len(c.Escaped) == 0 && c.Excused:
			word, colour = "none, and why", grey
		case len(c.Escaped) == 0 && c.unknown():
			word, colour = "NOT KNOWN", red
		case len(c.Escaped) == 0:
			word, colour = "NO ROW", red
		}
		p.line("  %s  %s", p.tint(bold, p.fit(document.Clean(c.Name), 24)), p.tint(colour, word))
		p.item(4, "without", strings.Join(document.CleanAll(c.Omit), ", "))
		p.item(4, "escape", strings.Join(document.CleanAll(ordered(c.Escaped)), " "))
		p.item(4, "as", strings.Join(document.CleanAll(c.As), ", "))
		p.item(4, "unclear", strings.Join(document.CleanAll(ordered(c.Unclear)), " "))
		p.item(4, "why", document.Clean(c.Why))
	}
	k.findings(p)
	_, err := w.Write(p.Bytes())
	return err
}

func (k Kill) findings(p *page) {
	needless, unheld := k.Needless(), k.Unheld()
	list := func(title string, names []string) {
		if len(names) > 0 {
			p.heading(title + ": " + fmt.Sprint(len(names)))
		}
		for _, name := range names {
			p.paragraph(2, document.Clean(name))
		}
	}
	list("controls that no row needs", needless)
	list("controls of which nothing is known", k.Unknown())
	var unproved []string
	for _, r := range k.Unproved {
		unproved = append(unproved, r.String())
	}
	list("rows that were not held with every control in place", unproved)
	if len(unheld) > 0 {
		p.heading("rows that no control holds: " + fmt.Sprint(len(unheld)))
		for _, r := range unheld {
			p.paragraph(2, strings.TrimSpace(document.Clean(r.ID)+"  "+document.Clean(r.Title)))
		}
	}
	p.WriteByte('\n')
	p.paragraph(0, k.covered())
	p.paragraph(0, fmt.Sprintf("%s, %s: %s and %s", counted(len(k.Controls), "control", "controls"), counted(len(k.Rows), "row", "rows"),
		counted(len(needless), "control that no row needs", "controls that no row needs"), counted(len(unheld), "row that no control holds", "rows that no control holds")))
}

// covered says how many controls hold a row, and how many have a reason instead.
func (k Kill) covered() string {
	held, excused := k.Covered()
	return fmt.Sprintf("Controls with a row or a reason: %d of %d (%d with a row, %d with a reason).", held+excused, len(k.Controls), held, excused)
}

func (r KillUnproved) String() string {
	text := r.ID
	if r.As != "" {
		text += " as " + r.As
	}
	return strings.TrimSuffix(text+" ("+r.Verdict+"): "+r.Reason, ": ")
}

// nothingFound says what the absence of findings covers: the played rows that a
// control holds, and those with a reason instead.
func (k Kill) nothingFound() string {
	rows := 0
	for _, r := range k.Rows {
		if len(k.HeldBy(r.ID)) > 0 {
			rows++
		}
	}
	return fmt.Sprintf("None among %s: %d of %s escape when a control is left out, and the others have a reason instead. Rows that were not played may have no control.\n",
		counted(len(k.Rows), "row that was played", "rows that were played"), rows, counted(len(k.Rows), "row", "rows"))
}

// markdown writes k as a document: the findings, the controls, the rows.
func (k Kill) markdown(w io.Writer) error {
	var b bytes.Buffer
	b.WriteString("# Kill matrix\n\nEach control was switched off by itself, or together with the one that also holds its rows, and the rows were played again. ")
	b.WriteString("A row that escapes then is held by that control; one that is still held has another wall.\n\n")
	facts := [][2]string{{"host", k.Host.String()}}
	for _, h := range k.Also {
		facts = append(facts, [2]string{"host", h.String()})
	}
	for _, fact := range append(facts, [][2]string{{"by", document.Clean(strings.TrimSpace(k.Tool + " " + k.Version))}, {"measured", day(column{Started: k.Started})}}...) {
		if fact[1] != "" {
			fmt.Fprintf(&b, "- %s: %s\n", fact[0], document.Markdown(fact[1]))
		}
	}
	fmt.Fprintf(&b, "\n%s\n\n## Findings\n\n", k.covered())
	needless, unknown, unheld := k.Needless(), k.Unknown(), k.Unheld()
	for _, name := range needless {
		fmt.Fprintf(&b, "- No row needs the control %s.\n", document.Markdown(name))
	}
	for _, name := range unknown {
		fmt.Fprintf(&b, "- Nothing is known of the control %s: its rows proved nothing.\n", document.Markdown(name))
	}
	for _, r := range k.Unproved {
		fmt.Fprintf(&b, "- Not held with every control in place: %s.\n", document.Markdown(strings.TrimSuffix(r.String(), ".")))
	}
	for _, r := range unheld {
		fmt.Fprintf(&b, "- No control holds %s (%s).\n", document.Markdown(r.ID), document.Markdown(r.Title))
	}
	if len(needless)+len(unknown)+len(unheld)+len(k.Unproved) == 0 {
		b.WriteString(k.nothingFound())
	}
	b.WriteString("\n## Controls\n\n")
	mdHead(&b, "control", "switched off", "rows that escape without it", "as", "unclear", "why")
	for _, c := range k.Controls {
		mdRow(&b, document.Markdown(c.Name), document.Markdown(strings.Join(c.Omit, ", ")), document.Markdown(strings.Join(ordered(c.Escaped), ", ")), document.Markdown(strings.Join(c.As, ", ")), document.Markdown(strings.Join(ordered(c.Unclear), ", ")), document.Markdown(c.Why))
	}
	b.WriteString("\n## Rows\n\n")
	mdHead(&b, "row", "class", "check", "held by")
	for _, r := range k.sorted() {
		by := strings.Join(k.HeldBy(r.ID), ", ")
		if by == "" {
			by = r.Excused
		}
		mdRow(&b, document.Markdown(r.ID), document.Markdown(className(r.Class)), document.Markdown(r.Title), document.Markdown(by))
	}
	_, err := w.Write(b.Bytes())
	return err
}
