// Package text shows text that an untrusted program chose: safe for a terminal, in one
// line, short, and quoted for a shell.
//
// It does not know who reads the text. Approvals, whose reader decides by what is
// shown, escape more: letters that look like others too (package consent).
package text

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Safe returns s with everything escaped that acts on a terminal, hides, or
// reorders what is beside it. Newlines and tabs stay. A character is escaped
// as \x1b, \u202e or \U000e0041, a byte that is not UTF-8 as \x9b. A backslash
// stays, so that Safe(Safe(s)) is Safe(s); for a form in which no two texts look
// alike use [Exact] or [Word].
func Safe(s string) string {
	return escaped(s, func(r rune) bool { return r != '\n' && r != '\t' && Hidden(r) })
}

// Line is [Safe] for a text that must not begin a line of its own, such as a
// name: newlines and tabs are \n and \t.
func Line(s string) string { return escaped(s, Hidden) }

// Exact is [Line] with each backslash doubled: no other text than s looks the
// same.
func Exact(s string) string {
	return escaped(s, func(r rune) bool { return r == '\\' || Hidden(r) })
}

// Plain reports whether s shows in one line all that it is: Line(s) is s.
func Plain(s string) bool { return plain(s, Hidden) }

// Hidden reports whether a terminal does not show r as a character of its own in
// its place: control and format characters, among them those that set the
// direction of text (UAX #9), separators other than the space, characters that
// are not assigned, and what [Invisible] lists.
func Hidden(r rune) bool { return !unicode.IsPrint(r) || r >= utf8.RuneSelf && Invisible(r) }

// Invisible reports whether r takes part in a text without being seen. The
// Default_Ignorable_Code_Point property (UAX #44) covers format characters,
// variation selectors and the fillers of Hangul, which Unicode calls letters. The
// blank symbols of three scripts have no property.
func Invisible(r rune) bool {
	switch r {
	case 0x2800, 0x16fe4, 0x1d159: // the empty pattern of Braille, the filler of Khitan, the null notehead
		return true
	}
	return unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// Escape returns r as this package spells it: \n, \t, \r, \\, \x1b, \u202e or
// \U000e0041, as bash and Go do.
func Escape(r rune) string {
	switch {
	case r == '\n':
		return `\n`
	case r == '\t':
		return `\t`
	case r == '\r':
		return `\r`
	case r == '\\':
		return `\\`
	case r < utf8.RuneSelf:
		return fmt.Sprintf(`\x%02x`, r)
	case r <= 0xffff:
		return fmt.Sprintf(`\u%04x`, r)
	}
	return fmt.Sprintf(`\U%08x`, r)
}

func escaped(s string, hidden func(rune) bool) string {
	if plain(s, hidden) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case hidden(r):
			b.WriteString(Escape(r))
		default:
			b.WriteRune(r)
		}
		i += n
	}
	return b.String()
}

func plain(s string, hidden func(rune) bool) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, hidden)
}
