package main

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// table is a Markdown table whose source is as readable as its rendering.
type table struct {
	header []string
	rows   [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) String() string {
	width := make([]int, len(t.header))
	for i := range width {
		width[i] = 3 // the minimum of dashes for all renderers
	}
	for _, row := range append([][]string{t.header}, t.rows...) {
		for i, c := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell(c)))
		}
	}
	var b strings.Builder
	line := func(row []string, fill string) {
		for i := range t.header {
			text := ""
			if i < len(row) {
				text = cell(row[i])
			}
			b.WriteString("| " + text + strings.Repeat(fill, width[i]-utf8.RuneCountInString(text)) + " ")
		}
		b.WriteString("|\n")
	}
	line(t.header, " ")
	line(make([]string, len(t.header)), "-")
	for _, row := range t.rows {
		line(row, " ")
	}
	return b.String()
}

// cell keeps a text within its cell.
func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ").Replace(s)
}

// number formats milliseconds, with more digits for small ones.
func number(v float64) string {
	switch {
	case math.IsNaN(v):
		return "–"
	case v < 10:
		return fmt.Sprintf("%.2f", v)
	case v < 100:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

// String formats a ratio and its range.
func (s spread) String() string {
	if math.IsNaN(s.median) {
		return "–"
	}
	digits := 2
	if s.median < 2 {
		digits = 3
	}
	return fmt.Sprintf("%.*f (%.*f–%.*f)", digits, s.median, digits, s.p10, digits, s.p90)
}

// kib formats the median of sizes.
func kib(values []float64) string {
	v := spreadOf(values).median
	if math.IsNaN(v) {
		return "–"
	}
	return fmt.Sprintf("%.0f", v)
}
