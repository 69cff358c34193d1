package screen

import (
	"slices"
	"strings"
	"testing"
)

func TestKeys(t *testing.T) {
	for in, want := range map[string][]keyCode{
		"a":                        {KeyRune},
		"\x1b[A\x1b[B\x1bOA":       {KeyUp, KeyDown, KeyUp},
		"\x1b[5~\x1b[6~":           {KeyPageUp, KeyPageDown},
		"\x1b[1;5A":                {},
		"\x1b":                     {KeyEscape},
		"\x1b\x1b":                 {KeyEscape, KeyEscape},
		"\x1ba":                    {},
		"\r\n\x7f\x03\x1a":         {KeyEnter, KeyEnter, KeyErase, KeyInterrupt, KeySuspend},
		"\x1b[200~a\r\x1b[201~b":   {KeyRune, KeyEnter, KeyRune},
		"\x1b[?62;c":               {}, // answers of the terminal are no keys
		"\x1b[24;80R":              {},
		"\xc3\xa9\xff\xe6\xbc\xa2": {KeyRune, KeyRune},
		"\x00\x01":                 {},
	} {
		for _, whole := range []bool{true, false} { // in one piece, and byte by byte
			var p keyParser
			var got []keyCode
			take := func() {
				for _, k := range p.parseKeys() {
					got = append(got, k.Code)
				}
			}
			if whole {
				p.rest = []byte(in)
				take()
			} else {
				for i := range len(in) {
					p.rest = append(p.rest, in[i])
					take()
				}
			}
			p.whole = true
			take()
			if len(got)+len(want) > 0 && !slices.Equal(got, want) {
				t.Errorf("%q (%v): got %v, want %v", in, whole, got, want)
			}
		}
	}
}

func TestWrapLosesNothing(t *testing.T) {
	for _, s := range []string{"", "a", "some words and more words of some length", strings.Repeat("x", 100), strings.Repeat("漢", 50), "  spaces   inside  "} {
		for width := 1; width < 50; width++ {
			lines := Wrap(s, width, "")
			if got := strings.Join(lines, ""); got != s {
				t.Fatalf("%d: %q became %q", width, s, got)
			}
			for _, l := range lines {
				if Columns(l) > max(width, 8) {
					t.Errorf("%d: %q", width, l)
				}
			}
		}
	}
}

func FuzzKeys(f *testing.F) {
	f.Add([]byte("\x1b[200~a\x1b[201~"))
	f.Fuzz(func(t *testing.T, in []byte) {
		p := keyParser{rest: slices.Clone(in)}
		p.parseKeys()
		p.whole = true
		p.parseKeys()
		if len(p.rest) > 0 {
			t.Errorf("%q is left of %q", p.rest, in)
		}
	})
}
