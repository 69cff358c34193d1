package report

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"

	"holdfast.dev/holdfast/internal/floor/text"

	"holdfast.dev/holdfast/internal/floor/document"
)

// TextOptions is the layout of a text.
type TextOptions struct {
	Color   bool // with terminal colours; nothing is shown by colour alone
	Width   int  // columns of the terminal; 0 for one line per row, however long
	Verbose bool // also how each attempt of a failed row failed, and cells are not cut
}

// narrowest is the smallest supported width.
const narrowest = 76

// page is a text that is being written.
type page struct {
	bytes.Buffer
	o TextOptions
}

func newPage(o TextOptions) *page {
	if o.Width > 0 {
		o.Width = max(o.Width, narrowest)
	}
	return &page{o: o}
}

// line writes a line without trailing spaces.
func (p *page) line(format string, args ...any) {
	p.WriteString(strings.TrimRight(fmt.Sprintf(format, args...), " "))
	p.WriteByte('\n')
}

// The attributes of select graphic rendition (ECMA-48, 8.3.117) that are used.
const (
	bold    = "1"
	grey    = "90"
	red     = "1;31"
	green   = "32"
	yellow  = "33"
	magenta = "35"
	cyan    = "36"
)

var tints = map[string]string{Held: green, Escaped: red, Unseen: magenta, Inconclusive: yellow, Residual: cyan}

func (p *page) tint(colour, s string) string {
	if !p.o.Color || colour == "" || s == "" {
		return s
	}
	return "\x1b[" + colour + "m" + s + "\x1b[0m"
}

// heading begins a section.
func (p *page) heading(s string) { p.line("\n%s", p.tint(bold, s)) }

// item writes a label and a wrapped text beside it; nothing for an empty text.
func (p *page) item(indent int, label, text string) {
	if text == "" {
		return
	}
	const labels = 10
	room := 0
	if p.o.Width > 0 {
		room = p.o.Width - indent - labels
	}
	for i, line := range wrap(text, room) {
		if i > 0 {
			label = ""
		}
		p.line("%*s%s%s", indent, "", p.tint(grey, pad(label, labels)), line)
	}
}

// paragraph writes a wrapped text.
func (p *page) paragraph(indent int, text string) {
	room := 0
	if p.o.Width > 0 {
		room = p.o.Width - indent
	}
	for _, line := range wrap(text, room) {
		p.line("%*s%s", indent, "", line)
	}
}

// Text writes r for a person at a terminal: the check matrix, the promises, and
// what failed with what to do about it. The most important comes last.
func Text(w io.Writer, r Run, o TextOptions) error {
	p := newPage(o)
	p.identity(r)
	p.matrix(r)
	p.promises(r)
	p.residuals(r)
	p.unproved(r)
	p.failed(r)
	p.bottom(r)
	_, err := w.Write(p.Bytes())
	return err
}

// identity says what was tried, and where.
func (p *page) identity(r Run) {
	p.line("%s", p.tint(bold, p.fit("escape matrix of "+r.Target.nameAndVersion(), 0)))
	p.target(r.Target)
	p.item(2, "host", r.Host.String())
	p.item(2, "by", document.Clean(strings.TrimSpace(r.Tool+" "+r.Version)))
	p.item(2, "begun", when(r.Started))
	p.item(2, "rows", document.Clean(r.Selection))
	p.item(2, "except", strings.Join(document.CleanAll(r.Except), " "))
}

func (p *page) target(t Target) {
	p.item(2, "program", document.Clean(t.Path))
	p.item(2, "sha256", document.Clean(t.SHA256))
	p.item(2, "called", t.commandLine())
	p.item(2, "policy", document.Clean(t.Policy))
	p.item(2, "note", document.Clean(t.Note))
}

// nameAndVersion is the name of t with its version.
func (t Target) nameAndVersion() string {
	name := document.Clean(t.Name)
	if name == "" {
		name = "a target without a name"
	}
	if t.Version != "" {
		name += " " + document.Clean(t.Version)
	}
	return name
}

// commandLine is how t was called, quoted for a shell.
func (t Target) commandLine() string { return strings.Join(t.quotedWords(), " ") }

// quotedWords are the arguments of t, quoted for a shell.
func (t Target) quotedWords() []string {
	words := make([]string, len(t.Flags))
	for i, flag := range t.Flags {
		if words[i] = flag; flag != "{}" { // the placeholder for the command is not quoted
			words[i] = document.Clean(text.Word(flag))
		}
	}
	return words
}

// String is the host in one line.
func (h Host) String() string {
	var parts []string
	if kernel := strings.TrimSpace(document.Clean(h.Kernel) + " " + document.Clean(h.Arch)); kernel != "" {
		parts = append(parts, "Linux "+kernel)
	}
	if h.OS != "" {
		parts = append(parts, document.Clean(h.OS))
	}
	if h.CPUs > 0 {
		parts = append(parts, counted(h.CPUs, "processor", "processors"))
	}
	if len(parts) > 0 && h.Landlock > 0 {
		parts = append(parts, fmt.Sprintf("Landlock %d", h.Landlock))
	}
	if h.User != "" {
		parts = append(parts, "as "+document.Clean(h.User))
	}
	return strings.Join(parts, ", ")
}

// when is a time in the format of all reports; "" for none.
func when(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}

// promises writes a line for each promise.
func (p *page) promises(r Run) {
	const numbers = 5 * 9
	title := 0
	for _, promise := range Promises {
		title = max(title, width(promise.Title))
	}
	if p.o.Width > 0 {
		title = min(title, p.o.Width-7-numbers)
	}
	p.heading("promises")
	head := ""
	for _, name := range []string{Held, Escaped, Residual, "inconcl.", Unseen} {
		head += fmt.Sprintf("%9s", name)
	}
	p.line("  %s", p.tint(grey, pad("", 5+title)+head))
	for i, t := range r.Promises() {
		c := t.Tally
		counts := p.count(c.Held, green) + p.count(c.Escaped, red) + p.count(c.Residual, cyan) + p.count(c.Inconclusive, yellow) + p.count(c.Unseen, magenta)
		for j, line := range wrap(Promises[i].Title, title) {
			if j == 0 {
				p.line("  %-5s%s%s", t.Promise, pad(line, title), counts)
				continue
			}
			p.line("  %-5s%s", "", line)
		}
	}
}

// count is a number in the table of promises, with a dot for zero.
func (p *page) count(n int, colour string) string {
	s := fmt.Sprintf("%9d", n)
	if n == 0 {
		s, colour = fmt.Sprintf("%9s", "."), grey
	}
	return p.tint(colour, s)
}

// bottom is the last line, just above the prompt.
func (p *page) bottom(r Run) {
	t := r.Total()
	head := counted(t.Rows(), "row", "rows")
	if r.Took > 0 {
		head += " in " + r.Took.String()
	}
	p.WriteByte('\n')
	p.tally(head+":", t, func(verdict string) string { return tints[verdict] })
}

// tally writes a text and the numbers of t beside it, continued below if there is
// no room.
func (p *page) tally(head string, t Tally, colour func(verdict string) string) {
	line, used := p.tint(bold, head), width(head)
	for i, word := range strings.Split(t.String(), ", ") {
		_, verdict, _ := strings.Cut(word, " ")
		if i > 0 {
			line, used = line+",", used+1
		}
		if p.o.Width > 0 && used+1+width(word) >= p.o.Width {
			p.line("%s", line)
			line, used = " ", 1
		}
		line, used = line+" "+p.tint(colour(verdict), word), used+1+width(word)
	}
	p.line("%s", line)
}

// fit cuts s to the columns that remain beside left; if no width is set, it is
// not cut.
func (p *page) fit(s string, left int) string {
	if p.o.Width == 0 {
		return s
	}
	return cut(s, p.o.Width-left)
}
