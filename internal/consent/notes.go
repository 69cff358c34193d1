package consent

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"holdfast.dev/holdfast/internal/floor/text"
)

// Notes lists what a reader would not have seen in a text if it had not been
// made visible; nil for ordinary text.
func Notes(s string) []string {
	if clean(s) {
		return nil
	}
	var notes []string
	if words := disguises(s, 3); len(words) > 0 {
		for _, w := range words {
			notes = append(notes, fmt.Sprintf("the word %s holds letters that look like others", w))
		}
	}
	var found kinds
	for i := 0; i < len(s); {
		r, width := utf8.DecodeRuneInString(s[i:])
		found.see(r, width)
		i += width
	}
	for _, k := range []struct {
		n    int
		text string
	}{
		{found.control, "control characters, which move the cursor or rewrite a line"},
		{found.order, "characters that change the order in which a line is shown"},
		{found.hidden, "characters that cannot be seen"},
		{found.bad, "bytes that are not characters"},
	} {
		if k.n > 0 {
			notes = append(notes, fmt.Sprintf("it holds %s: %d", k.text, k.n))
		}
	}
	if strings.Contains(s, manySpaces) {
		notes = append(notes, "it holds many spaces in a row")
	}
	return notes
}

// kinds counts characters that are not ordinary.
type kinds struct{ control, order, hidden, bad int }

func (k *kinds) see(r rune, width int) {
	switch {
	case r == utf8.RuneError && width == 1:
		k.bad++
	case unicode.Is(unicode.Cc, r) || r == 0x2028 || r == 0x2029:
		k.control++
	case unicode.Is(unicode.Bidi_Control, r):
		k.order++
	case r > '~' && (text.Invisible(r) || unicode.Is(unicode.Zs, r) || unicode.IsLetter(r) && !ordinary(r) && !within(r, otherForms)):
		k.hidden++
	}
}

// disguises are the first words of s that have letters which pass for others,
// made visible.
func disguises(s string, most int) []string {
	if len(s) > wholeBytes {
		s = s[:wholeBytes/2] + " " + s[len(s)-wholeBytes/2:]
	}
	var list []string
	var word []rune
	end := func() {
		if len(list) < most && len(word) > 0 && disguisedWord(word) {
			list = append(list, `"`+visible(string(word), 60)+`"`)
		}
		word = word[:0]
	}
	for _, r := range s {
		if unicode.In(r, unicode.L, unicode.M, unicode.N) && !text.Invisible(r) {
			word = append(word, r)
			continue
		}
		end()
	}
	end()
	return list
}

// disguisedWord reports whether a word has letters that pass for others.
func disguisedWord(word []rune) bool {
	pieces := make([]piece, len(word))
	for i, r := range word {
		if r >= 0x80 && within(r, otherForms) {
			return true
		}
		pieces[i].r = r
	}
	return disguised(pieces)
}
