// Package words shows numbers, sizes, times and names as a person reads them: a
// plural, a size with its unit, a time span, a path in the home, a command line cut
// to a width. [Plural], [Size] and [Cut] are what most verbs need. It knows no verb,
// prints nothing, and makes text from inside safe for a terminal (floor/text).
package words

import (
	"fmt"
	"strings"
	"time"

	"holdfast.dev/holdfast/internal/floor/paths"
	"holdfast.dev/holdfast/internal/floor/text"
)

// Cut is s with at most about n bytes.
func Cut(s string, n int) string {
	if head := text.Head(s, n); head != s {
		return text.Word(head) + "…"
	}
	return text.Word(s)
}

// CommandLine is an argument vector as a shell takes it, at most about n bytes of it;
// left is how many more arguments there are.
func CommandLine(argv []string, left, n int) string {
	var b strings.Builder
	for i, arg := range argv {
		if b.Len() >= n {
			left += len(argv) - i
			break
		}
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(Cut(arg, max(20, n-b.Len())))
	}
	if left > 0 {
		fmt.Fprintf(&b, " … (%d more)", left)
	}
	return b.String()
}

// Times is how often something happened, where it was more than once.
func Times(n uint64) string {
	if n < 2 {
		return ""
	}
	return fmt.Sprintf(" ×%d", n)
}

// Plural is n things.
func Plural[N int | uint64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Size is a number of bytes as a person reads it.
func Size[N int64 | uint64](n N) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	f, i := float64(n), 0
	for f >= 1024 && i < len(units)-1 {
		f /= 1024
		i++
	}
	if i == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", f, units[i])
}

// Lasted is a time span to three digits.
func Lasted(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(10 * time.Millisecond).String()
	default:
		return d.Round(time.Second).String()
	}
}

// Moment is a time to the minute, in the user's zone; never for none.
func Moment(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	return t.Local().Format("2006-01-02 15:04")
}

// Span is a time in whole seconds, without units that are zero at its end.
func Span(d time.Duration) string { return text.Span(max(d, 0).Truncate(time.Second)) }

// ShortHash cuts the hash in the name of a program.
func ShortHash(name string) string {
	const mark, kept = " sha256:", 12
	if i := strings.LastIndex(name, mark); i >= 0 && len(name) == i+len(mark)+32 {
		return name[:i+len(mark)+kept]
	}
	return name
}

// Tilde writes a path in the home as a person would.
func Tilde(home, path string) string {
	if rest, ok := paths.Rel(home, path); ok {
		if strings.HasSuffix(path, "/") {
			rest += "/"
		}
		return "~/" + rest
	}
	return path
}
