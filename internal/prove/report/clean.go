package report

import (
	"fmt"
	"strings"
	"unicode"
)

// wide are the ranges that a terminal shows in two columns (Unicode's East Asian
// Width, W and F, and the emoji blocks).
var wide = [][2]rune{
	{0x1100, 0x115f}, {0x2e80, 0x303e}, {0x3041, 0x33ff}, {0x3400, 0x4dbf}, {0x4e00, 0x9fff},
	{0xa000, 0xa4cf}, {0xa960, 0xa97f}, {0xac00, 0xd7a3}, {0xf900, 0xfaff}, {0xfe30, 0xfe6f},
	{0xff00, 0xff60}, {0xffe0, 0xffe6}, {0x16fe0, 0x18aff}, {0x1b000, 0x1b2ff}, {0x1f300, 0x1f64f},
	{0x1f680, 0x1f6ff}, {0x1f7e0, 0x1f7eb}, {0x1f900, 0x1faff}, {0x20000, 0x3fffd},
}

// columns is the number of terminal columns of r.
func columns(r rune) int {
	if r < wide[0][0] && r < 0x300 {
		return 1
	}
	if unicode.In(r, unicode.Mn, unicode.Me) {
		return 0
	}
	for _, span := range wide {
		if r >= span[0] && r <= span[1] {
			return 2
		}
	}
	return 1
}

// width is the number of terminal columns of a clean text.
func width(s string) int {
	n := 0
	for _, r := range s {
		n += columns(r)
	}
	return n
}

// cut shortens s to at most n columns.
func cut(s string, n int) string {
	if width(s) <= n {
		return s
	}
	head, _ := split(s, n-1)
	return head + "…"
}

// split cuts s after n columns, but after one character at least.
func split(s string, n int) (head, rest string) {
	used := 0
	for i, r := range s {
		used += columns(r)
		if used > n && i > 0 {
			return s[:i], s[i:]
		}
	}
	return s, ""
}

// wrap breaks s into lines of at most n columns, at spaces if possible; with n of
// 0 there is one line. It returns at least one line.
func wrap(s string, n int) []string {
	if n <= 0 || width(s) <= n {
		return []string{s}
	}
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(s) {
		switch {
		case line == "":
		case width(line)+1+width(word) <= n:
			line += " " + word
			continue
		default:
			lines = append(lines, line)
		}
		for width(word) > n {
			var head string
			head, word = split(word, n)
			lines = append(lines, head)
		}
		line = word
	}
	if line != "" || len(lines) == 0 {
		lines = append(lines, line)
	}
	return lines
}

// pad fills s up to n columns.
func pad(s string, n int) string { return s + strings.Repeat(" ", max(0, n-width(s))) }

// counted is n with its noun, such as "1 row" and "2 rows".
func counted(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
