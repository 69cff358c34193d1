package text

import (
	"strings"
	"unicode"
)

// signs are the characters besides letters and digits that have no meaning in a
// word of a shell (POSIX.1-2024, XCU 2.2).
const signs = "/.,_-+=:@%"

// Quote returns s as one word of a POSIX shell (XCU 2.2.2, single quotes). A shell
// that executes the word gets exactly s. The result may hold anything that s holds:
// what a terminal shows is a [Word].
func Quote(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !alphanumeric(r) && !strings.ContainsRune(signs, r) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func alphanumeric(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}

// Word returns s as one word of a shell that a person sees in one line and may
// paste. No two texts give the same word. Nothing in it is [Hidden]: such
// characters are escaped within $'…', which bash, zsh and POSIX.1-2024 (XCU 2.2.4)
// read and older shells do not.
func Word(s string) string {
	if !Plain(s) || strings.Contains(s, "'") {
		return "$'" + strings.ReplaceAll(Exact(s), "'", `\'`) + "'"
	}
	special := func(r rune) bool { // "^" is an operator of the Bourne shell alone, and HEAD^ is common
		return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) && !strings.ContainsRune(signs+"^", r)
	}
	if s == "" || strings.ContainsFunc(s, special) {
		return "'" + s + "'"
	}
	return s
}
