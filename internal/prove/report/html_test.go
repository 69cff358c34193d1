package report

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"holdfast.dev/holdfast/internal/floor/document"
)

// catalogued is a run of every known row, with mixed verdicts like those of a
// target that holds most.
func catalogued(t testing.TB) Run {
	t.Helper()
	b, err := os.ReadFile("../../prove/probe/catalogue.tsv")
	if err != nil {
		t.Fatal(err)
	}
	r := sample()
	r.Rows = slices.DeleteFunc(r.Rows, func(row Row) bool { return row.Verdict == Held && row.Kind != "control" })
	for i, line := range slices.Collect(strings.Lines(string(b))) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		if slices.ContainsFunc(r.Rows, func(row Row) bool { return row.ID == f[0] }) {
			continue
		}
		row := Row{ID: f[0], Class: f[1], Kind: f[2], Title: f[4], Promise: Promises[i%len(Promises)].ID, Expected: "denied", Observed: "EACCES", Verdict: Held,
			Reason: "every attempt was denied and nothing got through", Rerun: "holdfast prove --target bwrap --id " + f[0]}
		if i%17 == 0 {
			row.Verdict, row.Observed, row.Reason = Inconclusive, "not run", "the target does not support this: limits"
		}
		r.Rows = append(r.Rows, row)
	}
	return r
}

func htmlOf(t testing.TB, r Run) []byte {
	t.Helper()
	return written(t, func(w io.Writer) error { return HTML(w, r) })
}

func matrixHTML(t testing.TB, runs ...Run) []byte {
	t.Helper()
	return written(t, func(w io.Writer) error { return Matrix(w, runs, FormatHTML, TextOptions{}) })
}

func TestHTML(t *testing.T) {
	golden(t, "run.html", htmlOf(t, sample()))
	golden(t, "matrix.html", matrixHTML(t, several()...))
}

// each calls f with every element of a page.
func each(t testing.TB, b []byte, f func(n *html.Node)) {
	t.Helper()
	doc, err := html.Parse(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode {
			f(n)
		}
	}
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func parent(n *html.Node, name string) *html.Node {
	for n = n.Parent; n != nil && n.Data != name; n = n.Parent {
	}
	return n
}

func inner(n *html.Node) string {
	var b strings.Builder
	for c := range n.Descendants() {
		if c.Type == html.TextNode {
			b.WriteString(c.Data)
		}
	}
	return b.String()
}

// allowed are the permitted elements of a page, with their permitted attributes.
// None of them executes, embeds or fetches anything.
var allowed = map[string]string{
	"html": "lang", "head": "", "meta": "charset name content http-equiv", "title": "", "style": "", "body": "",
	"header": "", "main": "id tabindex", "footer": "", "nav": "class aria-label", "section": "id aria-labelledby", "article": "class aria-labelledby",
	"div": "class id role tabindex aria-label", "h1": "", "h2": "id", "h3": "class id", "p": "class", "a": "class href rel", "b": "", "span": "class", "code": "",
	"dl": "", "dt": "", "dd": "class", "ul": "class", "li": "class", "table": "class", "caption": "", "thead": "", "tbody": "", "tfoot": "",
	"tr": "id class", "th": "scope class", "td": "class", "fieldset": "", "legend": "", "label": "", "input": "type name id checked",
	"svg": "class aria-hidden focusable viewbox viewBox preserveAspectRatio", "symbol": "id viewBox", "path": "d", "use": "href", "rect": "class x y width height",
}

// problems are the faults of a page: what it could fetch or execute, and what is
// inaccessible without sight or without a mouse.
func problems(t testing.TB, b []byte) (bad []string) {
	t.Helper()
	say := func(format string, args ...any) { bad = append(bad, fmt.Sprintf(format, args...)) }
	ids, count, levels := map[string]int{}, map[string]int{}, 0
	var links []string
	each(t, b, func(n *html.Node) {
		count[n.Data]++
		attrs, known := allowed[n.Data]
		if !known {
			say("there is an element %s", n.Data)
		}
		for _, a := range n.Attr {
			if !slices.Contains(strings.Fields(attrs), a.Key) {
				say("%s has the attribute %s", n.Data, a.Key)
			}
		}
		if id := attr(n, "id"); id != "" {
			ids[id]++
		}
		switch n.Data {
		case "a", "use":
			links = append(links, attr(n, "href"))
			if n.Data == "a" && strings.TrimSpace(inner(n)) == "" {
				say("a link has no text")
			}
		case "table":
			if n.FirstChild == nil || !hasChild(n, "caption") {
				say("a table has no caption")
			}
		case "th":
			want := "row"
			if parent(n, "thead") != nil {
				want = "col"
			}
			if attr(n, "scope") != want {
				say("a heading of a table has the scope %q, not %q", attr(n, "scope"), want)
			}
		case "h1", "h2", "h3":
			if level := int(n.Data[1] - '0'); level > levels+1 {
				say("a heading of level %d follows one of level %d", level, levels)
			} else {
				levels = level
			}
		case "input":
			if parent(n, "label") == nil || parent(n, "fieldset") == nil {
				say("an input has no label, or stands in no group")
			}
		case "svg":
			if attr(n, "aria-hidden") != "true" {
				say("a drawing is not hidden from those who listen")
			}
		}
		if class := attr(n, "class"); strings.HasPrefix(class, "verdict ") && strings.TrimSpace(inner(n)) == "" {
			say("a verdict is told by its colour alone")
		}
		if attr(n, "role") == "region" && attr(n, "aria-label") == "" {
			say("a region has no name")
		}
	})
	for _, one := range []string{"html", "title", "h1", "main", "header", "footer", "nav"} {
		if count[one] != 1 {
			say("%d elements are %s, not one", count[one], one)
		}
	}
	for id, n := range ids {
		if n > 1 {
			say("the ID %q stands %d times", id, n)
		}
	}
	for _, link := range links {
		target, inside := strings.CutPrefix(link, "#")
		if inside && ids[target] == 0 {
			say("a link leads to %q, which is not there", link)
		}
		if !inside && !strings.HasPrefix(link, "https://") && !strings.HasPrefix(link, "http://") {
			say("a link leads to %.60q", link)
		}
	}
	return bad
}

func hasChild(n *html.Node, name string) bool {
	for c := range n.ChildNodes() {
		if c.Data == name {
			return true
		}
	}
	return false
}

func TestPagesAreAccessibleAndFetchNothing(t *testing.T) {
	strict := sample()
	strict.Strict = true
	for name, b := range map[string][]byte{
		"a run": htmlOf(t, sample()), "a strict run": htmlOf(t, strict), "every row": htmlOf(t, catalogued(t)), "nothing": htmlOf(t, Run{}),
		"several": matrixHTML(t, several()...), "none": matrixHTML(t),
	} {
		for _, problem := range problems(t, b) {
			t.Errorf("%s: %s", name, problem)
		}
		if !bytes.Contains(b, []byte(`<html lang="en">`)) || !bytes.Contains(b, []byte(`<a class="skip" href="#main">`)) {
			t.Errorf("%s: the language or the link to the content is missing", name)
		}
	}
}

func TestHostilePages(t *testing.T) {
	for _, s := range nasty {
		for _, b := range [][]byte{htmlOf(t, hostile(s)), matrixHTML(t, hostile(s), hostile(s))} {
			for _, problem := range problems(t, b) {
				t.Errorf("%+.40q: %s", s, problem)
			}
			if problem := harmless(bytes.ReplaceAll(b, []byte("\n"), nil), 0); problem != "" {
				t.Errorf("%+.40q: %.100s", s, problem)
			}
		}
	}
}

func FuzzHTML(f *testing.F) {
	for _, s := range nasty {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, problem := range problems(t, htmlOf(t, hostile(s))) {
			t.Error(problem)
		}
	})
}

// TestTheStyleIsTheOneThatThePolicyAllows checks that the hash in the page is
// that of the style in the page; browsers compare them.
func TestTheStyleIsTheOneThatThePolicyAllows(t *testing.T) {
	for _, b := range [][]byte{htmlOf(t, sample()), matrixHTML(t, sample())} {
		_, rest, _ := strings.Cut(string(b), "<style>")
		got, _, ok := strings.Cut(rest, "</style>")
		if !ok || got != style {
			t.Error("the page has another style than the hash is of")
		}
		each(t, b, func(n *html.Node) {
			if attr(n, "http-equiv") == "Content-Security-Policy" && attr(n, "content") != contentPolicy {
				t.Errorf("the policy is %s", attr(n, "content"))
			}
		})
	}
	for _, forbidden := range []string{"url(", "@import", "</", "expression("} {
		if strings.Contains(style, forbidden) {
			t.Errorf("the style has %s", forbidden)
		}
	}
}

var colourOf = regexp.MustCompile(`--([a-z-]+): (#[0-9a-f]{6});`)

// schemes are the stylesheet's colours by name: light, dark and print.
func schemes(t *testing.T) map[string]map[string]string {
	t.Helper()
	light, rest, _ := strings.Cut(style, "@media (prefers-color-scheme: dark)")
	dark, _, _ := strings.Cut(rest, "\n}\n")
	_, print, _ := strings.Cut(rest, "@media print")
	all := map[string]map[string]string{}
	for name, text := range map[string]string{"light": light, "dark": dark, "print": print} {
		all[name] = map[string]string{}
		for _, m := range colourOf.FindAllStringSubmatch(text, -1) {
			all[name][m[1]] = m[2]
		}
	}
	return all
}

// luminance is the relative luminance of a colour (WCAG 2.2).
func luminance(colour string) float64 {
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, err := strconv.ParseUint(colour[1+2*i:3+2*i], 16, 8)
		if err != nil {
			return math.NaN()
		}
		c := float64(n) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}

func contrast(a, b string) float64 {
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func TestContrast(t *testing.T) {
	if c := contrast("#000000", "#ffffff"); math.Abs(c-21) > 0.01 {
		t.Fatalf("black on white is %v", c)
	}
	type pair struct {
		ink, paper string
		least      float64
	}
	// Text needs 4.5, graphics need 3 (WCAG 2.2, 1.4.3 and 1.4.11).
	pairs := []pair{{"text", "page", 7}, {"text", "panel", 7}, {"text", "code", 7}, {"quiet", "page", 4.5}, {"quiet", "panel", 4.5}, {"link", "page", 4.5}, {"link", "panel", 4.5}}
	for _, kin := range []string{"held", "escaped", "unseen", "inconclusive", "residual"} {
		pairs = append(pairs, pair{kin, kin + "-back", 4.5}, pair{kin, "panel", 4.5}, pair{kin + "-bar", "panel", 3})
	}
	pairs = append(pairs, pair{"text", "escaped-back", 4.5}, pair{"quiet", "escaped-back", 4.5}, pair{"link", "escaped-back", 4.5})
	for name, colours := range schemes(t) {
		for _, p := range pairs {
			ink, paper := colours[p.ink], colours[p.paper]
			if name == "print" && strings.HasSuffix(p.ink, "-bar") {
				continue // as in light
			}
			if ink == "" || paper == "" {
				t.Errorf("%s: %s or %s is not set", name, p.ink, p.paper)
				continue
			}
			if c := contrast(ink, paper); c < p.least {
				t.Errorf("%s: %s on %s has a contrast of %.2f, less than %v", name, p.ink, p.paper, c, p.least)
			}
		}
	}
}

// style and contentPolicy are those of every page.
var style, contentPolicy = func() (style, policy string) {
	_, rest, _ := strings.Cut(document.Top(""), `Content-Security-Policy" content="`)
	policy, rest, _ = strings.Cut(rest, `"`)
	_, rest, _ = strings.Cut(rest, "<style>")
	style, _, _ = strings.Cut(rest, "</style>")
	return style, html.UnescapeString(policy)
}()
