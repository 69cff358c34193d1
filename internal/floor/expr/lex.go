package expr

import (
	"strings"
	"unicode/utf8"
)

// tokenKind distinguishes tokens. An operator or a bracket is its own text.
type tokenKind int

const (
	tokenEnd tokenKind = iota
	tokenName
	tokenInt
	tokenText // its value is unquoted
	tokenSign
)

type token struct {
	kind tokenKind
	text string // as written; of a text, what it means
	at   int    // byte offset
}

// signs are the operators and brackets, longer ones first.
var signs = [...]string{"==", "!=", "<=", ">=", "&&", "||", "<", ">", "!", "+", "-", "*", "/", "%", "?", ":", ".", ",", "(", ")", "[", "]", "{", "}"}

// lexer splits a condition into tokens.
type lexer struct {
	source string
	at     int
}

func (l *lexer) next() (token, error) {
	l.skipSpace()
	rest := l.source[l.at:]
	if rest == "" {
		return token{at: l.at}, nil
	}
	if prefix, quoted := textPrefix(rest); quoted {
		return l.text(prefix)
	}
	switch c := rest[0]; {
	case isLetter(c):
		return l.cutToken(tokenName, span(rest, func(c byte) bool { return isLetter(c) || isDigit(c) })), nil
	case isDigit(c) || c == '.' && len(rest) > 1 && isDigit(rest[1]):
		return l.number(rest)
	}
	for _, s := range signs {
		if strings.HasPrefix(rest, s) {
			return l.cutToken(tokenSign, len(s)), nil
		}
	}
	r, _ := utf8.DecodeRuneInString(rest)
	return token{}, problem(l.at, "syntax error: unexpected character %q", r)
}

func (l *lexer) cutToken(kind tokenKind, length int) token {
	t := token{kind, l.source[l.at : l.at+length], l.at}
	l.at += length
	return t
}

// skipSpace skips white space and comments, which go from // to the end of a line.
func (l *lexer) skipSpace() {
	for l.at < len(l.source) {
		rest := l.source[l.at:]
		switch {
		case strings.IndexByte(" \t\r\n\f", rest[0]) >= 0:
			l.at++
		case strings.HasPrefix(rest, "//"):
			l.at += span(rest, func(c byte) bool { return c != '\n' })
		default:
			return
		}
	}
}

func (l *lexer) number(rest string) (token, error) {
	digits := span(rest, isDigit)
	if hex := span(rest[min(2, len(rest)):], func(c byte) bool { return hexValue(c) >= 0 }); strings.HasPrefix(rest, "0x") && hex > 0 {
		digits = 2 + hex
	} else if after := rest[digits:]; len(after) > 1 && after[0] == '.' && isDigit(after[1]) || hasExponent(after) {
		return token{}, unsupported(l.at, "a number with a fraction or an exponent")
	}
	if after := rest[digits:]; after != "" && (after[0] == 'u' || after[0] == 'U') {
		return token{}, unsupported(l.at, "an unsigned number")
	}
	return l.cutToken(tokenInt, digits), nil
}

func hasExponent(s string) bool {
	if s == "" || s[0] != 'e' && s[0] != 'E' {
		return false
	}
	s = strings.TrimPrefix(strings.TrimPrefix(s[1:], "+"), "-")
	return s != "" && isDigit(s[0])
}

// textPrefix reports whether a quoted text begins here, and its prefix.
func textPrefix(s string) (prefix string, quoted bool) {
	n := span(s, func(c byte) bool { return strings.IndexByte("rRbB", c) >= 0 })
	switch prefix = strings.ToLower(s[:n]); prefix {
	case "", "r", "b", "br":
		return prefix, n < len(s) && (s[n] == '"' || s[n] == '\'')
	}
	return "", false
}

// text reads a quoted text: raw with the prefix r, and over several lines between
// three quotes.
func (l *lexer) text(prefix string) (token, error) {
	begin := l.at
	if strings.HasPrefix(prefix, "b") {
		return token{}, unsupported(begin, "a bytes literal")
	}
	rest := l.source[begin+len(prefix):]
	quote := rest[:1]
	if strings.HasPrefix(rest, strings.Repeat(quote, 3)) {
		quote = rest[:3]
	}
	rest = rest[len(quote):]
	var out strings.Builder
	for !strings.HasPrefix(rest, quote) {
		if rest == "" || len(quote) == 1 && (rest[0] == '\n' || rest[0] == '\r') {
			return token{}, problem(begin, "syntax error: the string is not closed")
		}
		used := 1
		switch {
		case rest[0] == '\\' && prefix == "":
			r, size := unescape(rest[1:])
			if size == 0 {
				return token{}, problem(len(l.source)-len(rest), "syntax error: unknown escape in a string")
			}
			out.WriteRune(r)
			used += size
		case rest[0] == '\r':
			out.WriteByte('\n')
			used += span(rest[1:min(2, len(rest))], func(c byte) bool { return c == '\n' })
		default:
			out.WriteByte(rest[0])
		}
		rest = rest[used:]
	}
	l.at = len(l.source) - len(rest) + len(quote)
	return token{tokenText, out.String(), begin}, nil
}

const escapes, escaped = `abfnrtv\'"?` + "`", "\a\b\f\n\r\t\v\\'\"?`"

// unescape reads what follows a backslash, and how many bytes it has; 0 if there is no
// such escape. All of them are code points, never bytes.
func unescape(s string) (r rune, size int) {
	if s == "" {
		return 0, 0
	}
	if i := strings.IndexByte(escapes, s[0]); i >= 0 {
		return rune(escaped[i]), 1
	}
	base, begin := rune(16), 1
	switch s[0] {
	case 'x', 'X':
		size = 3
	case 'u':
		size = 5
	case 'U':
		size = 9
	case '0', '1', '2', '3':
		base, begin, size = 8, 0, 3
	}
	if len(s) < size {
		return 0, 0
	}
	for i := begin; i < size; i++ {
		v := hexValue(s[i])
		if v < 0 || v >= base {
			return 0, 0
		}
		r = r*base + v
	}
	if !utf8.ValidRune(r) {
		return 0, 0
	}
	return r, size
}

// span is how many bytes at the beginning of s are of a class.
func span(s string, class func(byte) bool) int {
	for i := range len(s) {
		if !class(s[i]) {
			return i
		}
	}
	return len(s)
}

func isDigit(c byte) bool  { return '0' <= c && c <= '9' }
func isLetter(c byte) bool { return c == '_' || 'a' <= c|0x20 && c|0x20 <= 'z' }

// hexValue is the value of a hexadecimal digit; -1 for any other byte.
func hexValue(c byte) rune {
	switch {
	case isDigit(c):
		return rune(c - '0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		return rune(c|0x20-'a') + 10
	}
	return -1
}
