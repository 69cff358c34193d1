package report

import (
	"io"
	"strings"
)

// documentPage is a Document with what each page has.
type documentPage struct {
	bare
	Document Document
}

// HTML writes d as a page in one file, which needs neither network nor script.
func (d Document) HTML(w io.Writer) error {
	p := documentPage{bare: newBare(""), Document: d}
	p.Title = clean(d.Over) + ": " + d.Title.String()
	return render(w, "document.html.tmpl", p)
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
	return clean(s.Text)
}

// IsCode and IsBold are for the template.
func (s Span) IsCode() bool { return s.Look == Code }

// IsBold reports whether s stands out.
func (s Span) IsBold() bool { return s.Look == Bold }
