package approvals

import (
	"fmt"
	"time"

	"holdfast.dev/holdfast/internal/cli/screen"
	"holdfast.dev/holdfast/internal/cli/words"
	"holdfast.dev/holdfast/internal/consent"
	"holdfast.dev/holdfast/internal/floor/command"
)

// Keys, as the last line names them: the second where there is less room.
var helpLines = []string{
	"a once  s session  m minutes  (S M: directory)  d deny  PgDn more  q quit",
	"a once  s session  m minutes  d deny  PgDn more  q quit",
	"a s m allow  d deny  q quit",
	"asm d q",
}

// smallest is the least that can be drawn on: less shows that it is too small,
// and nothing can be allowed then.
const (
	smallestRows = 6
	smallestCols = 20
)

// draw is the screen: the list, what exactly would happen and what was before,
// and a line of help. Text of requests was made visible.
func (b *screenState) draw(rows, cols int, now time.Time) []screen.Row {
	if rows < smallestRows || cols < smallestCols {
		b.needed, b.seen, b.height, b.lines = 1, 0, 0, 0
		return []screen.Row{{Text: "too small"}, {Text: fmt.Sprintf("%d wait", len(b.requests))}}
	}
	title := fmt.Sprintf("holdfast approve: %s, %s", words.Plural(len(b.requests), "request", "requests"), words.Plural(b.sessions, "run", "runs"))
	out := []screen.Row{{Text: pad(title, cols), Style: screen.Reverse}}
	list := min(len(b.requests), max(1, (rows-4)/3))
	out = append(out, b.drawList(list, now)...)
	b.height = rows - len(out) - 3
	out = append(out, b.drawDetails(cols)...)
	for len(out) < rows-2 {
		out = append(out, screen.Row{})
	}
	message := b.message
	if q := b.prompt; q != nil && q.answer.Allow && message == "" {
		message = consent.Words(q.request, q.answer.Scope, q.answer.Directory)
	}
	lines := screen.Wrap(message, cols, "") // a long one covers the end of the details
	lines = lines[:min(len(lines), max(1, rows-4))]
	out = out[:rows-1-len(lines)]
	for _, text := range lines {
		out = append(out, screen.Row{Text: text, Style: command.Yellow})
	}
	return append(out, b.drawHelp(cols))
}

func pad(s string, cols int) string {
	for screen.Columns(s) < cols {
		s += " "
	}
	return s
}

func (b *screenState) drawList(n int, now time.Time) []screen.Row {
	if len(b.requests) == 0 {
		return []screen.Row{{}, {Text: "nothing waits for an answer"}}
	}
	_, at := b.current()
	first := max(0, min(at-n/2, len(b.requests)-n))
	var out []screen.Row
	for i, r := range b.requests[first : first+n] {
		mark, style := "  ", ""
		if first+i == at {
			mark, style = "> ", command.Bold
		}
		more := ""
		if r.Count > 1 {
			more = fmt.Sprintf(" ×%d", r.Count)
		}
		text := fmt.Sprintf("%s%s  %6s left  %s%s", mark, consent.Visible(r.ID), words.Span(max(0, r.Expires.Sub(now))), consent.Summary(r.Attempt), more)
		out = append(out, screen.Row{Text: text, Style: style})
	}
	return out
}

// drawDetails shows what fits of the selected request, and remembers how much
// of it was seen.
func (b *screenState) drawDetails(cols int) []screen.Row {
	r, at := b.current()
	if at < 0 {
		b.needed, b.lines = 0, 0
		return nil
	}
	all := b.details(r, cols)
	b.top = max(0, min(b.top, len(all)-b.height))
	b.lines = len(all)
	end := min(len(all), b.top+b.height)
	if b.top <= b.seen {
		b.seen = max(b.seen, min(end, b.needed))
	}
	ruler := "── " + consent.Visible(r.ID) + " "
	if len(all) > b.height {
		ruler += fmt.Sprintf("── lines %d-%d of %d ", b.top+1, end, len(all))
	}
	for screen.Columns(ruler) < cols {
		ruler += "─"
	}
	return append([]screen.Row{{Text: ruler, Style: command.Grey}}, all[b.top:end]...)
}

// details are what would happen, word for word, how far each answer would go, and
// what the session did before. The first is what has to be seen.
func (b *screenState) details(r consent.Request, cols int) []screen.Row {
	var out []screen.Row
	what := consent.Describe(r)
	wide := 0
	for _, l := range what {
		wide = max(wide, screen.Columns(l.Name))
	}
	wide = min(wide, cols/3)
	b.needed = 0
	for _, l := range what {
		if b.needed == 0 && isScopeLine(r, l) {
			b.needed = len(out)
		}
		style := ""
		if l.Warn {
			style = command.Red
		}
		for i, text := range screen.Wrap(l.Text, cols-wide-2, "") {
			label := ""
			if i == 0 {
				label = screen.Clip(l.Name, wide)
			}
			out = append(out, screen.Row{Text: pad(label, wide) + "  " + text, Style: style})
		}
	}
	if b.needed == 0 {
		b.needed = len(out)
	}
	out = append(out, screen.Row{}, screen.Row{Text: "before, in " + consent.Visible(r.Session) + ", asked " + r.Asked.Local().Format("15:04:05") + ":", Style: command.Grey})
	if b.before != nil {
		for _, line := range b.before(r.Session) {
			out = append(out, screen.Row{Text: "  " + line}) // the record has the rest
		}
	}
	return out
}

// isScopeLine reports whether a line shows the scope of an answer, which is shown again
// when an answer is begun.
func isScopeLine(r consent.Request, l consent.Line) bool {
	return l.Name == string(consent.Once) && l.Text == consent.Words(r, consent.Once, false)
}

func (b *screenState) drawHelp(cols int) screen.Row {
	if q := b.prompt; q != nil {
		label := q.label()
		typed := consent.Visible(string(q.text))
		room := max(4, cols-screen.Columns(label)-1)
		for screen.Columns(typed) > room {
			typed = string([]rune(typed)[1:])
		}
		return screen.Row{Text: screen.Clip(label, cols-screen.Columns(typed)-1) + typed, Style: command.Bold, Cursor: true}
	}
	for _, text := range helpLines {
		if screen.Columns(text) < cols {
			return screen.Row{Text: text, Style: command.Grey}
		}
	}
	return screen.Row{}
}
