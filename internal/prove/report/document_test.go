package report

import (
	"io"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/net/html"
	"holdfast.dev/holdfast/internal/floor/text"

	"holdfast.dev/holdfast/internal/floor/document"
)

// injected are texts that have a meaning for Markdown, HTML, a terminal or the
// eye, each with a recognisable sign.
var injected = []string{
	"", " ", "  two  ", "plain", "`", "``", "`a`", "a`", "`a", "a``b`c", "\\`", "\\", "a\\`b", "```\nfence\n```",
	"[link](http://beacon.example.org/link)", "![image](http://beacon.example.org/image)", "[ref]: http://beacon.example.org/ref", "<http://beacon.example.org/auto>",
	"http://beacon.example.org/bare www.beacon.example.org mail@beacon.example.org @team #1 GH-1",
	"# heading", "a\n# heading\n\n- [x] done", "> quote", "| a | b |\n| --- | --- |", "***", "~~gone~~", "$x$", "$`x`$", "&lt;&#60;", "{{.Title}}", "<!--", "-->", "]]>",
	"</code></li></ul><script>alert(1)</script>", "\" onmouseover=\"alert(1)", "javascript:alert(1)", beacon,
	"\x1b[31mred\x1b]8;;http://beacon.example.org\x07", "a\u202etxt.exe", "\u200b\u2028\u2029\u2800\u3164", "\xff\xfe", "\x00", "\r\n", "\u0085", strings.Repeat("`", 40), strings.Repeat("x", 9000),
}

// documented is a document with the text in every place that takes one.
func documented(s string) document.Document {
	line := document.Sentence("before %s, %s and %s after", s, document.Words(s), document.List([]string{s, s}))
	return document.Document{
		Over: "A kind of document", Title: document.Sentence("of %s", s), Lead: document.Sentence("%s: %s", document.Strong("NOT WELL"), s),
		Blocks: []document.Block{{Text: line}},
		Section: []document.Section{
			{Title: "First", Blocks: []document.Block{{Text: document.Sentence("These are %s:", 2), Items: []document.Item{{Text: line, More: []document.Prose{line, line}}, {Text: document.Sentence("%s", s)}}}}},
			{Title: "Second", Blocks: []document.Block{{Items: []document.Item{{Text: line}}, Checks: true}, {Commands: []string{"holdfast prove --id A-1", s}}}},
		},
	}
}

func markdownOf(t testing.TB, d document.Document) string {
	t.Helper()
	return string(written(t, d.Markdown))
}

func htmlDocument(t testing.TB, d document.Document) []byte {
	t.Helper()
	return written(t, func(w io.Writer) error { return d.HTML(w) })
}

func TestDocument(t *testing.T) {
	d := documented("a`b [c](http://beacon.example.org) <b>")
	golden(t, "document.md", []byte(markdownOf(t, d)))
	golden(t, "document.html", htmlDocument(t, d))
}

// outside is the part of a line of Markdown that is not in code spans, by the
// rules of CommonMark (6.1): a run of backticks opens a span that the next run of
// equal length closes.
func outside(line string) string {
	run := regexp.MustCompile("`+")
	text := ""
	for {
		at := run.FindStringIndex(line)
		if at == nil {
			return text + line
		}
		if n := len(line[:at[0]]) - len(strings.TrimRight(line[:at[0]], `\`)); n%2 == 1 { // escaped
			text, line = text+line[:at[0]+1], line[at[0]+1:]
			continue
		}
		text += line[:at[0]]
		mark, rest := line[at[0]:at[1]], line[at[1]:]
		closed := false
		for _, end := range run.FindAllStringIndex(rest, -1) {
			if end[1]-end[0] == len(mark) {
				line, closed = rest[end[1]:], true
				break
			}
		}
		if !closed {
			return text + mark + rest
		}
	}
}

var (
	ownLines   = regexp.MustCompile(`^(# A kind of document: of |> \*\*NOT WELL\*\*: |before |## (First|Second)$|These are 2:$|- \[ \] before |- |  - )`)
	meaningful = regexp.MustCompile("[`*_\\[\\]<>|~&$#@!\\\\{}]|://|www\\.|(?m)^ *[0-9]+[.)]")
)

// checkMarkdown reports what in a text is not confined to its place.
func checkMarkdown(t *testing.T, s string) {
	t.Helper()
	fenced := ""
	lines := strings.Split(strings.TrimSpace(markdownOf(t, documented(s))), "\n")
	if len(lines) > 24 {
		t.Errorf("%.60q makes %d lines", s, len(lines))
	}
	for _, line := range lines {
		if bad := strings.IndexFunc(line, text.Hidden); bad >= 0 || !utf8.ValidString(line) {
			t.Errorf("%.60q: the line %.200q has what cannot be seen", s, line)
		}
		switch {
		case line == "":
		case fenced == "" && strings.HasSuffix(line, "sh") && strings.Trim(line, "`") == "sh":
			fenced = strings.TrimSuffix(line, "sh")
		case line == fenced:
			fenced = ""
		case fenced != "":
			if strings.HasPrefix(strings.TrimLeft(line, " "), fenced) {
				t.Errorf("%.60q ends the block of commands: %.200q", s, line)
			}
		case !ownLines.MatchString(line):
			t.Errorf("%.60q begins a line: %.200q", s, line)
		default:
			rest := strings.TrimPrefix(ownLines.ReplaceAllString(line, ""), "before ")
			if m := meaningful.FindString(outside(rest)); m != "" {
				t.Errorf("%.60q: %q of the line %.300q means something", s, m, line)
			}
		}
	}
	if fenced != "" {
		t.Errorf("%.60q: a block of commands has no end", s)
	}
}

// checkHTML reports what in a text became part of the page.
func checkHTML(t *testing.T, s string) {
	t.Helper()
	page := htmlDocument(t, documented(s))
	want := map[string]int{}
	each(t, htmlDocument(t, documented("x")), func(n *html.Node) { want[n.Data]++ })
	got := map[string]int{}
	each(t, page, func(n *html.Node) { got[n.Data]++ })
	for _, elements := range []map[string]int{want, got} {
		delete(elements, "code") // odd words are written as code
		for name := range elements {
			if want[name] != got[name] {
				t.Errorf("%.60q: the page has %d elements %s, and not %d", s, got[name], name, want[name])
			}
		}
	}
	for _, bad := range problems(t, page) {
		t.Errorf("%.60q: %s", s, bad)
	}
}

func TestNoTextIsTakenForAPartOfADocument(t *testing.T) {
	for _, s := range injected {
		checkMarkdown(t, s)
		checkHTML(t, s)
	}
}

func FuzzDocument(f *testing.F) {
	for _, s := range injected {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		checkMarkdown(t, s)
		checkHTML(t, s)
	})
}

// TestTheScannerSeesMarkdown is the control of the tests above.
func TestTheScannerSeesMarkdown(t *testing.T) {
	for line, want := range map[string]string{
		"a `b` c": "a  c", "a ``b`c`` d": "a  d", "a `b``c d": "a `b``c d", "`` ` `` [x](y)": " [x](y)", "\\`a": "`a",
	} {
		if got := strings.ReplaceAll(outside(line), `\`, ""); got != want {
			t.Errorf("outside of code %q has %q, want %q", line, got, want)
		}
	}
	for _, s := range []string{"*a*", "[a](b)", "<b>", "http://x", "www.x", "@a", "#1", "1. a"} {
		if !meaningful.MatchString(s) {
			t.Errorf("%q means nothing", s)
		}
	}
}

func TestDocumentInChromium(t *testing.T) {
	b := newBrowser(t)
	b.write("document.html", htmlDocument(t, documented(beacon)))
	dom, log := b.run("document.html", "--dump-dom")
	if !strings.Contains(dom, "part-1") {
		t.Error("the page has no second part")
	}
	for _, element := range []string{"<img", "<iframe", "<script", "<link"} {
		if strings.Contains(dom, element) {
			t.Errorf("the page has an element %s", element)
		}
	}
	if strings.Contains(log, "Content Security Policy") {
		t.Errorf("the page breaks its own policy:\n%.2000s", log)
	}
	if got := b.requests(); len(got) > 0 {
		t.Errorf("the page asked the network for %v", got)
	}
}
