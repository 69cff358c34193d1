package report

import (
	"io"
	"strings"
	"testing"
)

// several are runs against three targets, two of the same name.
func several() []Run {
	bare := sample()
	bare.Target, bare.Rows = Target{Name: "none"}, nil
	for _, row := range sampleRows() {
		if row.Kind != "control" {
			row.Verdict = Escaped
		}
		if !strings.HasPrefix(row.ID, "NET-") {
			bare.Rows = append(bare.Rows, row)
		}
	}
	bare.Rows = append(bare.Rows, Row{ID: "ZZZ-001", Class: "zzz.only-here", Title: "Only the first has it", Verdict: Inconclusive})
	return []Run{bare, sample(), later()}
}

func TestMatrix(t *testing.T) {
	for name, c := range map[string]struct {
		f Format
		o TextOptions
	}{
		"matrix-80.txt": {FormatText, TextOptions{Width: 80}}, "matrix-140.txt": {FormatText, TextOptions{Width: 140}},
		"matrix-50.txt": {FormatText, TextOptions{Width: 50}}, "matrix.md": {FormatMarkdown, TextOptions{}}, "matrix.json": {FormatJSON, TextOptions{}},
	} {
		golden(t, name, written(t, func(w io.Writer) error { return Matrix(w, several(), c.f, c.o) }))
	}
	if err := Matrix(io.Discard, nil, FormatJUnit, TextOptions{}); err == nil {
		t.Error("a matrix as JUnit XML is no error")
	}
}

// TestMatrixOfMany uses all targets on a narrow terminal.
func TestMatrixOfMany(t *testing.T) {
	var runs []Run
	for range 7 {
		runs = append(runs, sample())
	}
	b := written(t, func(w io.Writer) error { return Matrix(w, runs, FormatText, TextOptions{Width: 80}) })
	if problem := harmless(b, 80); problem != "" {
		t.Error(problem)
	}
}

func TestHostileMatrix(t *testing.T) {
	for _, s := range nasty {
		runs := []Run{hostile(s), sample(), hostile(s)}
		for _, f := range MatrixFormats {
			b := written(t, func(w io.Writer) error { return Matrix(w, runs, f, TextOptions{Width: 80}) })
			room := 0
			if f == FormatText {
				room = 80
			}
			if problem := harmless(b, room); problem != "" {
				t.Errorf("%+.40q as %s: %.200s", s, f, problem)
			}
		}
	}
}

// TestMarkdownTables checks that a hostile text ends neither a cell nor a line.
func TestMarkdownTables(t *testing.T) {
	for _, s := range nasty {
		b := written(t, func(w io.Writer) error { return Matrix(w, []Run{hostile(s), sample()}, FormatMarkdown, TextOptions{}) })
		for line := range strings.Lines(string(b)) {
			if !strings.HasPrefix(line, "|") {
				continue
			}
			bars := strings.Count(strings.ReplaceAll(strings.ReplaceAll(line, `\\`, ""), `\|`, ""), "|")
			if bars != 4 && bars != 5 { // totals, and rows
				t.Errorf("%+.40q: a line has %d bars: %.200s", s, bars, line)
			}
		}
		if i := strings.Index(string(b), "<"); i >= 0 && !strings.Contains(string(b), `\<`) {
			t.Errorf("%+.40q: there is HTML: %.80s", s, string(b)[i:])
		}
	}
}
