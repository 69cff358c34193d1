package consent

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// longest is how much of a text is shown in characters, unless it is shown in full.
const longest = 1000

// Visible is a text in one line in which nothing hides. It consists of printable
// ASCII and of letters and digits of other scripts. Anything else, and letters
// that pass for ASCII ones, are shown as \u{202E}; a byte that is not part of a
// character as \x9b, a backslash as \\, and many spaces in a row as \{12
// spaces}. Of a long text the middle is left out, and \{345 bytes left out} says
// so. No other text than s is shown the same unless something is left out.
func Visible(s string) string { return visible(s, longest) }

func visible(s string, most int) string {
	if len(s) <= most && clean(s) {
		return s
	}
	head, tail, hole := s, "", 0
	if len(s) > 10*most { // a character has four bytes at most: no more than that could be shown
		head, tail = s[:boundary(s, 5*most)], s[boundary(s, len(s)-5*most):]
		hole = len(s) - len(head) - len(tail)
	}
	pieces := scan(head)
	if hole > 0 {
		pieces = append(append(pieces, piece{hole: hole}), scan(tail)...)
	}
	return join(pieces, most)
}

// clean reports whether s is shown as it is.
func clean(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' || s[i] == '\\' {
			return false
		}
	}
	return !strings.Contains(s, manySpaces)
}

// manySpaces is the shortest run of spaces that is counted instead of shown.
const manySpaces = "     "

// boundary is the index at or before i where a character begins.
func boundary(s string, i int) int {
	for n := 0; n < utf8.UTFMax && i > 0 && i < len(s) && !utf8.RuneStart(s[i]); n++ {
		i--
	}
	return i
}

// piece is a character as it is shown, or something instead of several.
type piece struct {
	r     rune // of the text; -1 for a byte that is not part of one
	show  string
	width int // of the text, in bytes
	hole  int // bytes that were not looked at
}

// scan splits a text and decides how each character is shown.
func scan(s string) []piece {
	pieces := make([]piece, 0, len(s))
	var marks marks
	for i := 0; i < len(s); {
		r, width := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && width == 1 {
			r = -1
		}
		if r == ' ' {
			width = len(s[i:]) - len(strings.TrimLeft(s[i:], " "))
		}
		p := piece{r: r, show: s[i : i+width], width: width}
		if !marks.shows(r) || r == ' ' && width >= len(manySpaces) {
			p.show = escape(p)
		}
		pieces = append(pieces, p)
		i += width
	}
	unmask(pieces)
	return pieces
}

// marks tracks letters and the marks on them.
type marks struct {
	base rune // letter that a mark may be on; 0 for none
	n    int
}

// shows reports whether the next character of a text may be shown as it is.
func (m *marks) shows(r rune) bool {
	switch {
	case r >= ' ' && r <= '~':
		m.base, m.n = 0, 0
		if unicode.IsLetter(r) {
			m.base = r
		}
		return r != '\\'
	case r >= 0x80 && m.base != 0 && attaches(r, m.base, m.n):
		m.n++
		return true
	case r >= 0x80 && ordinary(r) && !unicode.Is(unicode.Lm, r):
		m.base, m.n = r, 0
		return true
	}
	m.base, m.n = 0, 0
	return false
}

// escape is the form of a piece that cannot be shown as it is.
func escape(p piece) string {
	switch p.r {
	case ' ':
		return fmt.Sprintf(`\{%d spaces}`, p.width)
	case -1:
		return fmt.Sprintf(`\x%02x`, p.show[0])
	case '\\':
		return `\\`
	case '\n':
		return `\n`
	case '\t':
		return `\t`
	case '\r':
		return `\r`
	}
	return fmt.Sprintf(`\u{%04X}`, p.r)
}

// unmask escapes letters that pass for others in their word, and letters that
// reverse the direction in a text with both directions.
func unmask(pieces []piece) {
	forward := false
	for _, p := range pieces {
		forward = forward || p.r < 0x80 && (unicode.IsLetter(p.r) || unicode.IsDigit(p.r))
	}
	for i := 0; i < len(pieces); {
		n := wordLen(pieces[i:])
		if n == 0 {
			i++
			continue
		}
		word := pieces[i : i+n]
		masked := disguised(word)
		for j := range word {
			p := &word[j]
			if p.r < 0x80 {
				continue
			}
			if forward && backward(p.r) || masked && resembles(p.r) || j > 0 && word[j-1].r >= 0x80 && escaped(word[j-1]) && unicode.In(p.r, unicode.M, unicode.Lm) {
				p.show = escape(*p)
			}
		}
		i += n
	}
}

func escaped(p piece) bool { return strings.HasPrefix(p.show, `\`) }

// wordLen is how many pieces the word at the beginning has.
func wordLen(pieces []piece) int {
	for i, p := range pieces {
		if escaped(p) || p.r < 0x80 && !unicode.IsLetter(p.r) && !unicode.IsDigit(p.r) {
			return i
		}
	}
	return len(pieces)
}

// disguised reports whether a word may be read as another: it has ASCII letters
// and some that resemble them, or only letters that are twins of one.
func disguised(word []piece) bool {
	ascii, like, other := false, false, false
	for _, p := range word {
		switch {
		case p.r < 0x80:
			ascii = true
		case resembles(p.r):
			like = true
			other = other || !isLookalike(p.r)
		default:
			other = true
		}
	}
	return like && (ascii || !other)
}

// join joins pieces, at most about that many characters of them.
func join(pieces []piece, most int) string {
	total := 0
	for _, p := range pieces {
		total += runes(p.show)
		if p.hole > 0 {
			total += most + 1
		}
	}
	var b strings.Builder
	if total <= most {
		for _, p := range pieces {
			b.WriteString(p.show)
		}
		return b.String()
	}
	first, last := omittedRange(pieces, most)
	left := 0
	for i, p := range pieces {
		if i == last {
			fmt.Fprintf(&b, `\{%d bytes left out}`, left)
		}
		if i < first || i >= last {
			b.WriteString(p.show)
		} else {
			left += p.width + p.hole
		}
	}
	return b.String()
}

// omittedRange returns which pieces are left out: those from first to before last. A
// third of the room is for the end.
func omittedRange(pieces []piece, most int) (first, last int) {
	room := most - most/3
	for first < len(pieces) && pieces[first].hole == 0 && runes(pieces[first].show) <= room {
		room -= runes(pieces[first].show)
		first++
	}
	room, last = most/3, len(pieces)
	for last > first && pieces[last-1].hole == 0 && runes(pieces[last-1].show) <= room {
		room -= runes(pieces[last-1].show)
		last--
	}
	if last == len(pieces) {
		last-- // the end is always shown
	}
	return min(first, last), last
}

func runes(s string) int { return utf8.RuneCountInString(s) }

// plainSigns need no quotes in a shell.
const plainSigns = "/.,_-+=:@%^"

// Quote is a text as one word of a shell, made visible: as it is if nothing in
// it is special, else in quotes, and in $'…' if something is escaped.
func Quote(s string) string { return quote(s, longest) }

func quote(s string, most int) string {
	v := visible(s, most)
	special := func(r rune) bool {
		return r < 0x80 && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune(plainSigns, r)
	}
	switch {
	case v != s || strings.Contains(s, "'"):
		return "$'" + strings.ReplaceAll(v, "'", `\'`) + "'"
	case s == "" || strings.ContainsFunc(s, special):
		return "'" + s + "'"
	}
	return s
}
