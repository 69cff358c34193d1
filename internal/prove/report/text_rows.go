package report

import (
	"cmp"
	"slices"
	"strings"

	"holdfast.dev/holdfast/internal/floor/document"
)

// shown limits the listed effects of a row, and lines limits the height of a
// cell, unless the output is verbose.
const (
	shown = 8
	lines = 3
)

// start is the class of rows without one, such as the row that only shows that
// the target runs anything.
const start = "start"

func className(class string) string { return cmp.Or(document.Clean(class), start) }

// widths are the column widths of the check matrix; 0 is unlimited.
type widths struct{ id, check, expected, observed int }

const verdicts = len(Inconclusive) // the longest of them

// layOut gives each column what it needs, as far as there is room; the check gets
// the rest.
func layOut(rows []Row, room int) widths {
	w := widths{check: len("check"), expected: len("expected"), observed: len("observed")}
	for _, r := range rows {
		w.id = max(w.id, width(document.Clean(r.ID)))
		w.check = max(w.check, width(document.Clean(r.Title)))
		w.expected = max(w.expected, width(document.Clean(r.Expected)))
		w.observed = max(w.observed, width(document.Clean(r.Observed)))
	}
	w.id = min(w.id, 12)
	if room == 0 {
		// Without a width limit, columns are as wide as most of their cells need.
		w.check, w.expected, w.observed = min(w.check, 100), min(w.expected, 40), min(w.observed, 60)
		return w
	}
	room -= 2 + w.id + verdicts + 4*2
	w.expected = min(w.expected, room/5)
	w.observed = min(w.observed, max(room*3/10, room-w.expected-w.check))
	w.check = min(w.check, room-w.expected-w.observed)
	return w
}

// matrix writes the rows by class.
func (p *page) matrix(r Run) {
	rows := r.sorted()
	w := layOut(rows, p.o.Width)
	p.WriteByte('\n')
	p.line("  %s", p.tint(grey, pad("check", w.id+2+w.check)+"  "+pad("expected", w.expected)+"  "+pad("observed", w.observed)+"  verdict"))
	for _, class := range r.Classes() {
		n := class.Tally.Rows()
		p.tally(p.fit(className(class.Class), 20)+" ", class.Tally, func(string) string { return grey })
		for _, row := range rows[:n] {
			p.row(row, w)
		}
		rows = rows[n:]
	}
}

func (p *page) row(r Row, w widths) {
	cell := func(s string, n int) []string {
		if p.o.Width == 0 {
			return []string{document.Clean(s)}
		}
		all := wrap(document.Clean(s), n)
		if len(all) > lines && !p.o.Verbose {
			all = append(all[:lines-1:lines-1], cut(strings.Join(all[lines-1:], " "), n))
		}
		return all
	}
	at := func(lines []string, i, n int) string {
		if i < len(lines) {
			return pad(lines[i], n)
		}
		return pad("", n)
	}
	id, check, expected, observed := cell(r.ID, w.id), cell(r.Title, w.check), cell(r.Expected, w.expected), cell(r.Observed, w.observed)
	verdict := r.judged()
	for i := range max(len(id), len(check), len(expected), len(observed)) {
		word := ""
		if i == 0 {
			word = p.tint(tints[verdict], verdict)
		}
		p.line("  %s  %s  %s  %s  %s", at(id, i, w.id), at(check, i, w.check), at(expected, i, w.expected), at(observed, i, w.observed), word)
	}
}

// failed writes what failed, and what to do about each row.
func (p *page) failed(r Run) {
	rows := r.Failed()
	if len(rows) == 0 {
		return
	}
	p.heading(counted(len(rows), "row", "rows") + " failed")
	for i, row := range rows {
		if i > 0 {
			p.WriteByte('\n')
		}
		verdict := row.judged()
		about := []string{p.tint(bold, p.fit(document.Clean(row.ID), p.o.Width-16)), p.tint(tints[verdict], verdict), p.fit(className(row.Class), 40)}
		if row.Promise != "" {
			about = append(about, p.fit(document.Clean(row.Promise), p.o.Width-4))
		}
		p.line("  %s", strings.Join(about, "  "))
		p.item(4, "check", document.Clean(row.Title))
		p.item(4, "expected", document.Clean(row.Expected))
		observed, reason := row.observation()
		p.item(4, "observed", document.Clean(observed))
		p.list("seen", row.Effects)
		p.item(4, "reason", document.Clean(reason))
		if p.o.Verbose {
			p.list("attempts", row.Denials)
		}
		p.item(4, "refs", strings.Join(document.CleanAll(row.Refs), ", "))
		p.item(4, "do", document.Clean(row.Advice))
		p.item(4, "again", document.Clean(row.Rerun))
	}
}

// observation returns what was observed and the reason, without repetitions: the reason
// is often the first effect, and the observation often the reason.
func (r Row) observation() (observed, reason string) {
	observed, reason = r.Observed, r.Reason
	if observed == reason || slices.Contains(r.Effects, observed) {
		observed = ""
	}
	if slices.Contains(r.Effects, reason) {
		reason = ""
	}
	return observed, reason
}

// list writes several texts below one label.
func (p *page) list(label string, texts []string) {
	texts = document.CleanAll(texts)
	left := 0
	if len(texts) > shown && !p.o.Verbose {
		left = len(texts) - shown
		texts = texts[:shown]
	}
	for _, text := range texts {
		p.item(4, label, text)
		label = ""
	}
	if left > 0 {
		p.item(4, "", "and "+counted(left, "more", "more"))
	}
}

// unproved writes which rows proved nothing without failing the run, by reason.
func (p *page) unproved(r Run) {
	reasons := r.excused()
	if len(reasons) == 0 {
		return
	}
	rows := 0
	for _, why := range reasons {
		rows += len(why.ids)
	}
	head := "not proved: "
	if r.Strict {
		head = "not proved, and excepted: "
	}
	p.heading(head + counted(rows, "row", "rows"))
	p.grouped(reasons)
}

// excused are the reasons of the rows that proved nothing without failing r.
func (r Run) excused() []reason {
	return r.reasonsOf(func(row Row) bool { return row.judged() == Inconclusive && !row.Fails(r.Strict) })
}

// residuals writes the documented escapes.
func (p *page) residuals(r Run) {
	reasons := r.reasons(Residual)
	if len(reasons) == 0 {
		return
	}
	p.heading("known to get through: " + counted(r.Total().Residual, "row", "rows"))
	p.grouped(reasons)
}

func (p *page) grouped(reasons []reason) {
	for _, why := range reasons {
		p.paragraph(2, cmp.Or(why.text, "no reason was given"))
		p.paragraph(6, strings.Join(why.ids, " "))
	}
}

// reason is a reason shared by rows of one verdict.
type reason struct {
	text string
	ids  []string
}

// reasons are the reasons of the rows with a verdict.
func (r Run) reasons(verdict string) []reason {
	return r.reasonsOf(func(row Row) bool { return row.judged() == verdict })
}

// reasonsOf are the reasons of some rows, in the order of the first row of each.
func (r Run) reasonsOf(meant func(Row) bool) []reason {
	var all []reason
	for _, row := range r.sorted() {
		if !meant(row) {
			continue
		}
		text := document.Clean(row.Reason)
		i := slices.IndexFunc(all, func(have reason) bool { return have.text == text })
		if i < 0 {
			i, all = len(all), append(all, reason{text: text})
		}
		all[i].ids = append(all[i].ids, document.Clean(row.ID))
	}
	return all
}
