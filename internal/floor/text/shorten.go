package text

import (
	"strings"
	"time"
	"unicode/utf8"
)

// ellipsis ends a text that was shortened.
const ellipsis = "…"

// Shorten returns s in at most n characters, the last of them an ellipsis when
// something was left out. It does not end within a character, nor within an
// escape as [Safe], [Line] and [Exact] write them.
func Shorten(s string, n int) string {
	if len(s) <= n || utf8.RuneCountInString(s) <= n {
		return s
	}
	if n <= 0 {
		return ""
	}
	end := 0
	for left := n - 1; left > 0; {
		size, chars := first(s[end:])
		if chars > left {
			break
		}
		end, left = end+size, left-chars
	}
	return s[:end] + ellipsis
}

// first is how many bytes and characters the first character or escape of s has.
func first(s string) (size, chars int) {
	if n := escapeLen(s); n > 0 {
		return n, n
	}
	_, size = utf8.DecodeRuneInString(s)
	return size, 1
}

// escapeLen is the length of the escape that s begins with; 0 for none.
func escapeLen(s string) int {
	if len(s) < 2 || s[0] != '\\' {
		return 0
	}
	digits, ok := map[byte]int{'n': 0, 't': 0, 'r': 0, '\\': 0, '\'': 0, 'x': 2, 'u': 4, 'U': 8}[s[1]]
	if !ok || len(s) < 2+digits || strings.Trim(s[2:2+digits], "0123456789abcdef") != "" {
		return 0
	}
	return 2 + digits
}

// Head returns the beginning of s in at most n bytes, without part of a
// character at its end. It is a part of s and keeps its memory.
func Head(s string, n int) string {
	if len(s) <= n {
		return s
	}
	n = max(n, 0)
	for i := n - 1; i >= 0 && i > n-utf8.UTFMax; i-- {
		if utf8.RuneStart(s[i]) {
			if _, size := utf8.DecodeRuneInString(s[i:]); i+size > n {
				return s[:i]
			}
			break
		}
	}
	return s[:n]
}

// Cut returns s, or its [Head] of n bytes and an ellipsis when it is longer. It is
// for texts that are stored or sent, whose limit is in bytes.
func Cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return Head(s, n) + ellipsis
}

// Span returns d without units that are zero at its end: 4h rather than 4h0m0s.
func Span(d time.Duration) string {
	s := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if rest, ok := strings.CutSuffix(s, zero); ok {
			s = rest + zero[:1]
		}
	}
	return s
}
