package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// Format is the format of a report.
type Format string

// The formats. Not every report has each of them.
const (
	FormatText     Format = "text"
	FormatJSON     Format = "json"
	FormatJUnit    Format = "junit"
	FormatSARIF    Format = "sarif"
	FormatHTML     Format = "html"
	FormatMarkdown Format = "markdown"
)

// The formats of each report, the default first.
var (
	RunFormats     = []Format{FormatText, FormatJSON, FormatJUnit, FormatSARIF, FormatHTML}
	ChangesFormats = []Format{FormatText, FormatJSON}
	MatrixFormats  = []Format{FormatText, FormatMarkdown, FormatHTML, FormatJSON}
	KillFormats    = []Format{FormatText, FormatMarkdown, FormatJSON}
)

// Write writes r in one of RunFormats; o is for text.
func Write(w io.Writer, r Run, f Format, o TextOptions) error {
	switch f {
	case FormatText:
		return Text(w, r, o)
	case FormatJSON:
		return JSON(w, r)
	case FormatJUnit:
		return JUnit(w, r)
	case FormatSARIF:
		return SARIF(w, r)
	case FormatHTML:
		return HTML(w, r)
	}
	return unknownFormat(f, RunFormats)
}

// ParseFormat returns the format called name, if it is one of those.
func ParseFormat(name string, of []Format) (Format, error) {
	if f := Format(name); slices.Contains(of, f) {
		return f, nil
	}
	return "", unknownFormat(Format(name), of)
}

func unknownFormat(f Format, known []Format) error {
	names := make([]string, len(known))
	for i, k := range known {
		names[i] = string(k)
	}
	return fmt.Errorf("unknown format %.40q; the formats are: %s", string(f), strings.Join(names, ", "))
}
