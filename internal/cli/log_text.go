package cli

import (
	"fmt"
	"os"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"
)

const (
	bold  = "1"
	green = "32"
	grey  = "90"
)

// tint colours s when standard output is a terminal, by the same rules as paint.
func (a *app) tint(colour, s string) string {
	f, ok := a.Stdout.(*os.File)
	if !ok || s == "" || !term.IsTerminal(int(f.Fd())) || a.lookup("NO_COLOR") != "" || a.lookup("TERM") == "dumb" {
		return s
	}
	return "\x1b[" + colour + "m" + s + "\x1b[0m"
}

// quoted is a text of a record as a person can read it in one line, and no other
// text is shown the same: plain where nothing in it is special, else as a shell
// takes it, '…' or $'…' with escapes for what cannot be seen, what would reorder
// or break the line, and bytes that are no UTF-8.
func quoted(s string) string {
	if !visible(s) || strings.Contains(s, "'") {
		return escaped(s)
	}
	special := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) && !strings.ContainsRune("/.,_-+=:@%^", r)
	}
	if s != "" && !strings.ContainsFunc(s, special) {
		return s
	}
	return "'" + s + "'"
}

// visible reports whether s shows all that it is.
func visible(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || hides(r) })
}

// escaped is a text as $'…' of bash, ksh and POSIX.1-2024 has it.
func escaped(s string) string {
	var b strings.Builder
	b.WriteString("$'")
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\\' || r == '\'':
			b.WriteByte('\\')
			b.WriteRune(r)
		case unicode.IsPrint(r) && !hides(r):
			b.WriteRune(r)
		case r < utf8.RuneSelf:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
		i += n
	}
	b.WriteString("'")
	return b.String()
}

// cutTo is s with at most about n bytes.
func cutTo(s string, n int) string {
	if len(s) <= n {
		return quoted(s)
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return quoted(s[:n]) + "…"
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

// words is text that Holdfast made and that may hold a name, such as a reason:
// in one line, without quotes.
func words(s string) string {
	if visible(s) {
		return s
	}
	return strings.TrimSuffix(strings.TrimPrefix(escaped(s), "$'"), "'")
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
