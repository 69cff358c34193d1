package document

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"io"
	"strings"
)

//go:embed style.css
var style string

// contentPolicy forbids a page everything but its own style: no script, no
// request, no frame, and no form.
func contentPolicy() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'"
}

// page is what each page begins with; %s are its policy, its title and its style.
const page = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="%s">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>%s</title>
<style>%s</style>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<svg class="sprite" aria-hidden="true" focusable="false">
<symbol id="icon-held" viewBox="0 0 16 16"><path d="M3 8.5 6.5 12 13 4.5"/></symbol>
<symbol id="icon-escaped" viewBox="0 0 16 16"><path d="M4 4l8 8M12 4l-8 8"/></symbol>
<symbol id="icon-inconclusive" viewBox="0 0 16 16"><path d="M5.2 5.6a2.8 2.8 0 1 1 4.2 2.5c-.9.5-1.4 1-1.4 2M8 13v.1"/></symbol>
<symbol id="icon-residual" viewBox="0 0 16 16"><path d="M8 2 1.5 13.5h13zM8 6.5v3M8 11.6v.1"/></symbol>
<symbol id="icon-unseen" viewBox="0 0 16 16"><path d="M2 2l12 12M6.2 4.2A7 7 0 0 1 14.5 8a9 9 0 0 1-1.7 2.2M9.8 11.8A7 7 0 0 1 1.5 8a9 9 0 0 1 1.9-2.4"/></symbol>
</svg>
`

// Top is the beginning of a page of that title, up to its body. It is not made by
// html/template: a program that has text/template linked keeps every method of
// every type.
func Top(title string) string {
	return fmt.Sprintf(page, escape(contentPolicy()), escape(title), style)
}

// escape takes the meaning from what has one in HTML, in texts and in attributes
// with quotes.
func escape(s string) string {
	return strings.NewReplacer("\x00", "\ufffd", `"`, "&#34;", "&", "&amp;", "'", "&#39;", "+", "&#43;", "<", "&lt;", ">", "&gt;").Replace(s)
}

// HTML writes d as a page in one file, which needs neither network nor script.
func (d Document) HTML(w io.Writer) error {
	p := &printer{}
	p.add(Top(Clean(d.Over)+": "+d.Title.String()), "\n<header>\n<p class=\"over\">", escape(Clean(d.Over)), "</p>\n<h1>", d.Title.html(), "</h1>\n")
	held := "was-escaped"
	if d.Good {
		held = "was-held"
	}
	p.add("<div class=\"panel failure ", held, "\"><p class=\"outcome\">", d.Lead.html(), "</p></div>\n")
	for _, b := range d.Blocks {
		p.block(b)
	}
	p.add("\n<nav class=\"panel\" aria-label=\"On this page\">\n<ul class=\"links\">\n")
	for i, s := range d.Section {
		p.add(fmt.Sprintf("<li><a href=\"#part-%d\">", i), escape(Clean(s.Title)), "</a></li>\n")
	}
	p.add("</ul>\n</nav>\n</header>\n<main id=\"main\" tabindex=\"-1\">\n")
	for i, s := range d.Section {
		p.add(fmt.Sprintf("\n<section id=\"part-%d\" aria-labelledby=\"part-%d-title\">\n<h2 id=\"part-%d-title\">", i, i, i), escape(Clean(s.Title)), "</h2>\n")
		for _, b := range s.Blocks {
			p.block(b)
		}
		p.add("\n</section>\n")
	}
	p.add("\n</main>\n<footer><p>This page is one file. It asks the network for nothing and executes nothing.</p></footer>\n</body>\n</html>\n")
	_, err := io.WriteString(w, p.String())
	return err
}

// printer writes the parts of a page.
type printer struct{ strings.Builder }

func (p *printer) add(parts ...string) {
	for _, s := range parts {
		p.WriteString(s)
	}
}

func (p *printer) block(b Block) {
	if len(b.Text) > 0 {
		p.add("<p>", b.Text.html(), "</p>\n")
	}
	if len(b.Items) > 0 {
		class := "reasons"
		if b.Checks {
			class = "reasons checks"
		}
		p.add("<div class=\"panel\"><ul class=\"", class, "\">\n")
		for _, item := range b.Items {
			p.add("<li>", item.Text.html())
			if len(item.More) > 0 {
				p.add("<ul class=\"more\">")
				for _, more := range item.More {
					p.add("<li>", more.html(), "</li>")
				}
				p.add("</ul>")
			}
			p.add("</li>\n")
		}
		p.add("</ul></div>\n")
	}
	if len(b.Commands) > 0 {
		p.add("<div class=\"panel\"><ul class=\"commands\">\n")
		for _, line := range b.Commands {
			p.add("<li><code>", escape(Clean(line)), "</code></li>\n")
		}
		p.add("</ul></div>\n")
	}
}

// html is t with its looks.
func (t Prose) html() string {
	var b strings.Builder
	for _, s := range t {
		shown := escape(s.Shown())
		switch s.Look {
		case Code:
			shown = "<code>" + shown + "</code>"
		case Bold:
			shown = "<b>" + shown + "</b>"
		}
		b.WriteString(shown)
	}
	return b.String()
}

// String is t without its looks, in one line.
func (t Prose) String() (s string) {
	for _, span := range t {
		s += span.Shown()
	}
	return s
}

// Shown is the text of s as it is shown.
func (s Span) Shown() string {
	switch {
	case s.Look == Code && s.Text == "":
		return "(empty)"
	case s.Look != Code && strings.Trim(s.Text, " ") == "": // between two others
		return s.Text
	}
	return Clean(s.Text)
}
