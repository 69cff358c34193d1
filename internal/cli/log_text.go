package cli

import (
	"fmt"
	"strings"
	"time"

	"holdfast.dev/holdfast/internal/floor/text"
)

// cutTo is s with at most about n bytes.
func cutTo(s string, n int) string {
	if head := text.Head(s, n); head != s {
		return text.Word(head) + "…"
	}
	return text.Word(s)
}

// commandLine is an argument vector as a shell takes it, at most about n bytes
// of it; left is how many arguments there are besides.
func commandLine(argv []string, left, n int) string {
	var b strings.Builder
	for i, arg := range argv {
		if b.Len() >= n {
			left += len(argv) - i
			break
		}
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(cutTo(arg, max(20, n-b.Len())))
	}
	if left > 0 {
		fmt.Fprintf(&b, " … (%d more)", left)
	}
	return b.String()
}

// times is how often something happened, where it was more than once.
func times(n uint64) string {
	if n < 2 {
		return ""
	}
	return fmt.Sprintf(" ×%d", n)
}

// plural is n things.
func plural[N int | uint64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// size is a number of bytes as a person reads it.
func size[N int64 | uint64](n N) string {
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

// lasted is a time span to three digits.
func lasted(d time.Duration) string {
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
