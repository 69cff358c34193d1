package report

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"html/template"
	"io"
	"strings"
	"sync"

	"holdfast.dev/holdfast/internal/floor/document"
)

//go:embed page/*.tmpl
var pageFiles embed.FS

// pages are the templates; they escape a text according to its context.
var pages = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"top": func(title string) template.HTML { return template.HTML(document.Top(title)) },
		"kin": cssClass, "words": Target.quotedWords, "numbers": Tally.numbers, "bar": Tally.bar, "address": address, "clean": document.Clean,
		"promise": func(id string) string {
			for _, p := range Promises {
				if p.ID == id {
					return p.Title
				}
			}
			return ""
		},
	}).ParseFS(pageFiles, "page/*.tmpl"))
})

// cssClass is the name of a verdict in the stylesheet: one lower-case word.
func cssClass(verdict string) string { return strings.ToLower(verdict) }

// bare is what every page has.
type bare struct {
	Title, Name, Outcome string
}

func newBare(name string) bare {
	return bare{Title: "Escape matrix: " + name, Name: name}
}

// The texts of a page are cleaned before they reach the templates, which only
// escape HTML.
type (
	runPage struct {
		bare
		Run                  Run
		Host, When, Took, By string
		Total                Tally
		Classes              []classPart
		Promises             []promisePart
		Failed               []rowPart
		Residuals, Unproved  []reasonPart
	}
	classPart struct {
		Name, Anchor string
		Tally        Tally
		Rows         []rowPart
	}
	rowPart struct {
		Row
		Anchor, State string
		Seen, Why     string // what was observed and the reason, if they add something
	}
	promisePart struct {
		Promise
		Rest    string // the text without the title
		Numbers []number
	}
	reasonPart struct{ Text, IDs string }
	number     struct {
		Verdict string
		N, At   int
		Bad     bool
	}
)

// numbers are the numbers of t, in the order of the tables.
func (t Tally) numbers() []number {
	return []number{{Verdict: Held, N: t.Held}, {Verdict: Escaped, N: t.Escaped, Bad: true}, {Verdict: Residual, N: t.Residual},
		{Verdict: Inconclusive, N: t.Inconclusive}, {Verdict: Unseen, N: t.Unseen, Bad: true}}
}

// line is a tally as a graphic.
type line struct {
	Width int
	Parts []number
}

// bar is t as a bar with a segment for each verdict, whose width is in proportion
// to its rows but always visible; nil if there are no rows.
func (t Tally) bar() *line {
	var l line
	for _, n := range t.numbers() {
		if n.N == 0 {
			continue
		}
		n.N, n.At = max(100*n.N, t.Rows()), l.Width
		l.Parts = append(l.Parts, n)
		l.Width += n.N
	}
	if l.Parts == nil {
		return nil
	}
	return &l
}

// HTML writes r as a page in one file that needs neither network nor scripts.
func HTML(w io.Writer, r Run) error {
	r = r.cleaned()
	p := runPage{
		bare: newBare(r.Target.nameAndVersion()), Run: r, Host: r.Host.String(), When: when(r.Started), By: strings.TrimSpace(r.Tool + " " + r.Version),
		Total: r.Total(), Residuals: parts(r.reasons(Residual)), Unproved: parts(r.excused()),
	}
	if r.Took > 0 {
		p.Took = r.Took.String()
	}
	p.Outcome = outcome(r)
	anchors := anchorer{}
	for i, row := range r.Rows {
		part := rowPart{Row: row, Anchor: anchors.anchorFor("row-" + row.ID)}
		part.Seen, part.Why = row.observation()
		switch {
		case row.Fails(r.Strict):
			part.State = "open"
			p.Failed = append(p.Failed, part)
		case row.Verdict == Held:
			part.State = "is-held"
		}
		if i == 0 || row.Class != r.Rows[i-1].Class {
			p.Classes = append(p.Classes, classPart{Name: className(row.Class), Anchor: anchors.anchorFor("class-" + row.Class)})
		}
		class := &p.Classes[len(p.Classes)-1]
		class.Rows = append(class.Rows, part)
		class.Tally.add(row.Verdict)
	}
	for i, t := range r.Promises() {
		rest := strings.TrimLeft(strings.TrimPrefix(Promises[i].Text, Promises[i].Title), ":, ")
		p.Promises = append(p.Promises, promisePart{Promises[i], rest, t.Tally.numbers()})
	}
	return render(w, "run.html.tmpl", p)
}

func render(w io.Writer, name string, data any) error {
	var b bytes.Buffer
	if err := pages().ExecuteTemplate(&b, name, data); err != nil {
		return fmt.Errorf("making a page: %w", err)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// outcome is the run in one sentence.
func outcome(r Run) string {
	t, failed := r.Total(), len(r.Failed())
	if t.Rows() == 0 {
		return "No row was played."
	}
	if failed > 0 {
		bad := Tally{Escaped: t.Escaped, Unseen: t.Unseen}
		bad.Inconclusive = failed - t.Escaped - t.Unseen
		return fmt.Sprintf("%d of %s failed: %s.", failed, counted(t.Rows(), "row", "rows"), bad)
	}
	text := fmt.Sprintf("Nothing failed of %s", counted(t.Rows(), "row", "rows"))
	if t.Inconclusive > 0 {
		text += fmt.Sprintf("; %d proved nothing", t.Inconclusive)
	}
	if t.Residual > 0 {
		text += fmt.Sprintf("; %d are known to get through", t.Residual)
	}
	return text + "."
}

func parts(reasons []reason) (parts []reasonPart) {
	for _, why := range reasons {
		parts = append(parts, reasonPart{cmp.Or(why.text, "no reason was given"), strings.Join(why.ids, " ")})
	}
	return parts
}

// cleaned is r sorted, with clean texts and known verdicts.
func (r Run) cleaned() Run {
	each := func(texts ...*string) {
		for _, s := range texts {
			*s = document.Clean(*s)
		}
	}
	each(&r.Tool, &r.Version, &r.Selection, &r.Target.Name, &r.Target.Version, &r.Target.Path, &r.Target.SHA256, &r.Target.Policy, &r.Target.Note,
		&r.Host.Kernel, &r.Host.OS, &r.Host.Arch, &r.Host.User)
	r.Target.Flags, r.Except = document.CleanAll(r.Target.Flags), document.CleanAll(r.Except)
	r.Rows = r.sorted()
	for i := range r.Rows {
		row := &r.Rows[i]
		row.Verdict = row.judged()
		each(&row.ID, &row.Class, &row.Title, &row.Promise, &row.Kind, &row.Expected, &row.Observed, &row.Reason, &row.Rerun, &row.Advice)
		row.ID = cmp.Or(row.ID, "(no ID)")
		row.Refs, row.Effects, row.Denials = document.CleanAll(row.Refs), document.CleanAll(row.Effects), document.CleanAll(row.Denials)
	}
	return r
}

// anchorer assigns unique anchors within a page.
type anchorer map[string]int

// anchorFor makes an anchor from s: only letters, digits, dots, dashes and underscores
// are kept.
func (a anchorer) anchorFor(s string) string {
	name := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' || strings.ContainsRune(".-_", r) {
			return r
		}
		return -1
	}, s)
	name = name[:min(len(name), 80)]
	unique := name
	for a[unique] > 0 {
		a[name]++
		unique = fmt.Sprintf("%s-%d", name, a[name])
	}
	a[unique]++
	return unique
}
