package text

import (
	"strings"
	"unicode"
)

// signs are the characters other than letters and digits that have no meaning in a word
// of a shell (POSIX.1-2024, XCU 2.2).
const signs = "/.,_-+=:@%"

// Quote returns s as one word of a POSIX shell (XCU 2.2.2, single quotes). A shell
// that executes the word gets exactly s. The result may hold anything that s holds:
// what a terminal shows is a [Word].
func Quote(s string) string {
	if isBare(s) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func alphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// isBare reports whether s has letters and digits of ASCII and signs alone, as most
// texts do, and is not empty.
func isBare(s string) bool {
	for i := range len(s) {
		if !alphanumeric(s[i]) && strings.IndexByte(signs, s[i]) < 0 {
			return false
		}
	}
	return s != ""
}

// Word returns s as one word of a shell that a person sees in one line and may
// paste. No two texts give the same word. Nothing in it is [Hidden]: such
// characters are escaped within $'…', which bash, zsh and POSIX.1-2024 (XCU 2.2.4)
// read and older shells do not.
func Word(s string) string {
	if isBare(s) {
		return s
	}
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
