package cli

import (
	"strings"
	"testing"
	"time"
)

func TestQuoted(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"/usr/bin/make", "/usr/bin/make"},
		{"", "''"},
		{"two words", "'two words'"},
		{`back\slash`, `'back\slash'`},
		{"it's", `$'it\'s'`},
		{"a\nb\tc\rd", `$'a\nb\tc\rd'`},
		{"\x1b[31m", `$'\x1b[31m'`},
		{"\x9b1m", `$'\x9b1m'`},
		{"\u009b", `$'\u009b'`},
		{"\u202eexe", `$'\u202eexe'`},
		{"a\u200bb", `$'a\u200bb'`},
		{"\u2028", `$'\u2028'`},
		{"tag\U000e0041", `$'tag\U000e0041'`},
		{"\xff\xfe", `$'\xff\xfe'`},
		{`\n` + "\n", `$'\\n\n'`},
		{"größe", "größe"},
		{"~root", "'~root'"},
		{"$(reboot)", "'$(reboot)'"},
	} {
		if got := quoted(tt.in); got != tt.want {
			t.Errorf("quoted(%q) is %s, want %s", tt.in, got, tt.want)
		}
	}
}

// Whatever a text is, it is shown in one line in which everything can be seen,
// and no other text is shown the same.
func FuzzQuoted(f *testing.F) {
	f.Add("a", `$'a'`)
	f.Add("a\nb", `a\nb`)
	f.Add("\xff", "\ufffd")
	f.Add("'a'", "a")
	f.Fuzz(func(t *testing.T, a, b string) {
		if q := quoted(a); !visible(q) || strings.Contains(q, "\n") {
			t.Errorf("%q is shown as %q", a, q)
		}
		if a != b && quoted(a) == quoted(b) {
			t.Errorf("%q and %q are both shown as %s", a, b, quoted(a))
		}
		if w := words(a); !visible(w) {
			t.Errorf("%q is shown as %q", a, w)
		}
		if c := cutTo(a, 5); !visible(c) || len(c) > 80 {
			t.Errorf("%q is cut to %q", a, c)
		}
	})
}

func TestAge(t *testing.T) {
	for s, want := range map[string]time.Duration{"30d": 720 * time.Hour, "2w": 336 * time.Hour, "12h": 12 * time.Hour, "0d": 0, "-1d": -1, "d": -1, "1.5d": -1, "x": -1, "-1h": -1, "": -1} {
		var f ageFlag
		err := f.Set(s)
		if got := time.Duration(f); (err != nil) != (want < 0) || err == nil && got != want {
			t.Errorf("%q is %v, %v", s, got, err)
		}
	}
}
