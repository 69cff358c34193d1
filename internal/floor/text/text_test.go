package text

import (
	"os/exec"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestSafe(t *testing.T) {
	for _, tt := range []struct{ name, in, safe, line, exact string }{
		{"nothing", "", "", "", ""},
		{"plain text", "a b/é größe 漢字", "a b/é größe 漢字", "a b/é größe 漢字", "a b/é größe 漢字"},
		{"a newline and a tab", "a\nb\tc", "a\nb\tc", `a\nb\tc`, `a\nb\tc`},
		{"a return", "a\rb", `a\rb`, `a\rb`, `a\rb`},
		{"a backslash", `a\nb`, `a\nb`, `a\nb`, `a\\nb`},
		{"a colour", "\x1b[31m", `\x1b[31m`, `\x1b[31m`, `\x1b[31m`},
		{"the screen and a line", "a\x1b[2J\nb", "a\\x1b[2J\nb", `a\x1b[2J\nb`, `a\x1b[2J\nb`},
		{"the title of a window", "\x1b]0;owned\a", `\x1b]0;owned\x07`, `\x1b]0;owned\x07`, `\x1b]0;owned\x07`},
		{"NUL, backspace and DEL", "\x00\b\x7f", `\x00\x08\x7f`, `\x00\x08\x7f`, `\x00\x08\x7f`},
		{"CSI as one byte of Latin 1", "\x9b1m", `\x9b1m`, `\x9b1m`, `\x9b1m`},
		{"CSI as a character", "\u009b1m", `\u009b1m`, `\u009b1m`, `\u009b1m`},
		{"not UTF-8", "\xff\xfe", `\xff\xfe`, `\xff\xfe`, `\xff\xfe`},
		{"half a character", "\xe6\xbc", `\xe6\xbc`, `\xe6\xbc`, `\xe6\xbc`},
		{"the replacement character", "\ufffd", "\ufffd", "\ufffd", "\ufffd"},
		{"an override of direction", "\u202eexe", `\u202eexe`, `\u202eexe`, `\u202eexe`},
		{"isolates of direction", "\u2066a\u2069", `\u2066a\u2069`, `\u2066a\u2069`, `\u2066a\u2069`},
		{"marks of direction", "\u200e\u200f\u061c", `\u200e\u200f\u061c`, `\u200e\u200f\u061c`, `\u200e\u200f\u061c`},
		{"separators of lines", "a\u2028\u2029\u0085b", `a\u2028\u2029\u0085b`, `a\u2028\u2029\u0085b`, `a\u2028\u2029\u0085b`},
		{"spaces that are not plain ones", "a\u00a0\u2003\u3000b", `a\u00a0\u2003\u3000b`, `a\u00a0\u2003\u3000b`, `a\u00a0\u2003\u3000b`},
		{"no width", "a\u200b\u200d\ufeff\u00adb", `a\u200b\u200d\ufeff\u00adb`, `a\u200b\u200d\ufeff\u00adb`, `a\u200b\u200d\ufeff\u00adb`},
		{"fillers of Hangul", "h\u3164\u115f\u1160\uffa0i", `h\u3164\u115f\u1160\uffa0i`, `h\u3164\u115f\u1160\uffa0i`, `h\u3164\u115f\u1160\uffa0i`},
		{"variation selectors", "v\ufe0f\U000e0100", `v\ufe0f\U000e0100`, `v\ufe0f\U000e0100`, `v\ufe0f\U000e0100`},
		{"vowels that are blank", "\u17b4\u17b5", `\u17b4\u17b5`, `\u17b4\u17b5`, `\u17b4\u17b5`},
		{"a joiner that is blank", "\u034f", `\u034f`, `\u034f`, `\u034f`},
		{"blank symbols", "\u2800\U00016fe4\U0001d159", `\u2800\U00016fe4\U0001d159`, `\u2800\U00016fe4\U0001d159`, `\u2800\U00016fe4\U0001d159`},
		{"tags", "t\U000e0041", `t\U000e0041`, `t\U000e0041`, `t\U000e0041`},
		{"private and not assigned", "\ue000\u0378", `\ue000\u0378`, `\ue000\u0378`, `\ue000\u0378`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Safe(tt.in); got != tt.safe {
				t.Errorf("Safe(%q) is %q, want %q", tt.in, got, tt.safe)
			}
			if got := Line(tt.in); got != tt.line {
				t.Errorf("Line(%q) is %q, want %q", tt.in, got, tt.line)
			}
			if got := Exact(tt.in); got != tt.exact {
				t.Errorf("Exact(%q) is %q, want %q", tt.in, got, tt.exact)
			}
			if Plain(tt.in) != (tt.line == tt.in) {
				t.Errorf("Plain(%q) is %v", tt.in, Plain(tt.in))
			}
		})
	}
}

// TestHidden reads the whole of Unicode: nothing is shown that a table of it calls
// ignorable, a control, a format or a selector, and every ASCII sign is.
func TestHidden(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if unicode.In(r, unicode.C, unicode.Z, unicode.Bidi_Control, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, unicode.Noncharacter_Code_Point) && r != ' ' && !Hidden(r) {
			t.Errorf("%U is shown", r)
		}
		if r >= ' ' && r <= '~' && Hidden(r) {
			t.Errorf("%q is hidden", r)
		}
	}
}

func FuzzSafe(f *testing.F) {
	for _, s := range []string{"a\nb", `a\nb`, "\x1b[0m\xff\u202e\u3164", "\\", "'it'", "…"} {
		f.Add(s, `a\nb`, 3)
	}
	f.Fuzz(func(t *testing.T, a, b string, n int) {
		n %= 100
		safe, line, exact, word := Safe(a), Line(a), Exact(a), Word(a)
		for _, s := range []string{line, exact, word, strings.NewReplacer("\n", "", "\t", "").Replace(safe), Shorten(line, n), Shorten(exact, n)} {
			if !Plain(s) {
				t.Errorf("%q is shown as %q", a, s)
			}
		}
		if Safe(safe) != safe || Line(line) != line {
			t.Errorf("%q changes when it is made safe again: %q, %q", a, safe, line)
		}
		if a != b && (exact == Exact(b) || word == Word(b)) {
			t.Errorf("%q and %q are both shown as %q, %q", a, b, exact, word)
		}
		if s := Shorten(a, n); utf8.RuneCountInString(s) > max(n, 0) {
			t.Errorf("%q has more than %d characters", s, n)
		}
		if h := Head(a, n); len(h) > max(n, 0) || !strings.HasPrefix(a, h) || len(h) < min(len(a), n)-3 || utf8.ValidString(a) && !utf8.ValidString(h) {
			t.Errorf("the first %d bytes of %q are %q", n, a, h)
		}
	})
}

func TestShorten(t *testing.T) {
	for _, tt := range []struct {
		in   string
		n    int
		want string
	}{
		{"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"abcd", 1, "…"}, {"abcd", 0, ""}, {"abcd", -1, ""}, {"", 0, ""},
		{"äöü", 3, "äöü"}, {"äöüß", 3, "äö…"}, {"漢字漢字", 2, "漢…"},
		{`ab\x1bcd`, 8, `ab\x1bcd`}, {`ab\x1bcd`, 7, `ab\x1b…`}, {`ab\x1bcd`, 6, `ab…`}, {`ab\x1bcd`, 4, `ab…`}, {`a\u202ecd`, 5, `a…`}, {`a\U000e0041`, 9, `a…`},
		{`a\\nbc`, 4, `a\\…`}, {`a\\nbc`, 3, `a…`}, {`a\qbc`, 4, `a\q…`}, {`\xzzabc`, 4, `\xz…`},
		{"a\xff\xfeb", 3, "a\xff…"},
	} {
		if got := Shorten(tt.in, tt.n); got != tt.want {
			t.Errorf("Shorten(%q, %d) is %q, want %q", tt.in, tt.n, got, tt.want)
		}
	}
	for _, tt := range []struct {
		in   string
		n    int
		head string
		cut  string
	}{
		{"abc", 3, "abc", "abc"}, {"abcd", 3, "abc", "abc…"}, {"abcd", 0, "", "…"}, {"abcd", -1, "", "…"},
		{"aö", 2, "a", "a…"}, {"漢字", 5, "漢", "漢…"}, {"漢字", 2, "", "…"}, {"\U0001f600", 3, "", "…"},
		{"\x80\x80\x80\x80\x80", 4, "\x80\x80\x80\x80", "\x80\x80\x80\x80…"}, {"a\xe6b", 2, "a\xe6", "a\xe6…"},
	} {
		if got := Head(tt.in, tt.n); got != tt.head {
			t.Errorf("Head(%q, %d) is %q, want %q", tt.in, tt.n, got, tt.head)
		}
		if got := Cut(tt.in, tt.n); got != tt.cut {
			t.Errorf("Cut(%q, %d) is %q, want %q", tt.in, tt.n, got, tt.cut)
		}
	}
}

func TestQuote(t *testing.T) {
	for _, tt := range []struct{ in, quote, word string }{
		{"/usr/bin/make", "/usr/bin/make", "/usr/bin/make"},
		{"--flag=a,b:c@d%e+f", "--flag=a,b:c@d%e+f", "--flag=a,b:c@d%e+f"},
		{"HEAD^", "'HEAD^'", "HEAD^"},
		{"", "''", "''"},
		{"two words", "'two words'", "'two words'"},
		{`back\slash`, `'back\slash'`, `'back\slash'`},
		{"it's", `'it'\''s'`, `$'it\'s'`},
		{`it's\`, `'it'\''s\'`, `$'it\'s\\'`},
		{"a\nb\tc\rd", "'a\nb\tc\rd'", `$'a\nb\tc\rd'`},
		{"\x1b[31m", "'\x1b[31m'", `$'\x1b[31m'`},
		{"\x9b1m", "'\x9b1m'", `$'\x9b1m'`},
		{"\u202eexe", "'\u202eexe'", `$'\u202eexe'`},
		{"a\u200bb", "'a\u200bb'", `$'a\u200bb'`},
		{"\u2028", "'\u2028'", `$'\u2028'`},
		{"tag\U000e0041", "'tag\U000e0041'", `$'tag\U000e0041'`},
		{"\xff\xfe", "'\xff\xfe'", `$'\xff\xfe'`},
		{`\n` + "\n", "'\\n\n'", `$'\\n\n'`},
		{"größe", "'größe'", "größe"},
		{"~root", "'~root'", "'~root'"},
		{"$(reboot)", "'$(reboot)'", "'$(reboot)'"},
		{"a;b", "'a;b'", "'a;b'"}, {"a*", "'a*'", "'a*'"}, {"{a,b}", "'{a,b}'", "'{a,b}'"}, {"#a", "'#a'", "'#a'"}, {"a!b", "'a!b'", "'a!b'"}, {"[a]", "'[a]'", "'[a]'"},
	} {
		if got := Quote(tt.in); got != tt.quote {
			t.Errorf("Quote(%q) is %s, want %s", tt.in, got, tt.quote)
		}
		if got := Word(tt.in); got != tt.word {
			t.Errorf("Word(%q) is %s, want %s", tt.in, got, tt.word)
		}
	}
}

// TestQuoteInShell: a shell gets the text that was quoted.
func TestQuoteInShell(t *testing.T) {
	words := []string{"", "a", "it's", "'", "''", "a b", "a\nb", "$HOME `id` \\", "*", "~", "größe", "\xff\x01", "-n", "!", "a=b", "#", "HEAD^", "%1"}
	var script strings.Builder
	script.WriteString("printf '%s\\0'")
	for _, w := range words {
		script.WriteString(" " + Quote(w))
	}
	out, err := exec.Command("/bin/sh", "-c", script.String()).Output()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(out), strings.Join(words, "\x00")+"\x00"; got != want {
		t.Errorf("the shell read %q, want %q", got, want)
	}
}

func TestNearest(t *testing.T) {
	for _, tt := range []struct {
		word, want string
		among      []string
	}{
		{"titel", "title", []string{"name", "title"}},
		{"method", "methods", []string{"host", "methods", "paths"}},
		{"git-psuh", "git-push", []string{"git-push", "publish"}},
		{"gitpush", "git-push", []string{"git-push", "publish"}},
		{"publsh", "publish", []string{"git-push", "publish"}},
		{"progam", "program", []string{"path", "program"}},
		{"exce", "exec", []string{"write", "exec", "connect"}},
		{"deny", "denied", []string{"allowed", "denied"}},
		{"objct", "object", []string{"error", "object"}},
		{"file.opne", "file.open", []string{"file.write", "file.open"}},
		{"TITLE", "title", []string{"title"}},
		{"Größe", "größe", []string{"größe"}},
		{"grösse", "größe", []string{"größe"}},
		{"same", "same", []string{"sane", "same"}},
		{"between", "", []string{"nothing", "is", "near"}},
		{"x", "", []string{"", "yes"}},
		{"", "", []string{"ab", ""}},
		{strings.Repeat("long", 1000), "", []string{"long"}},
		{"a", "", nil},
	} {
		if got := Nearest(tt.word, tt.among); got != tt.want {
			t.Errorf("Nearest(%q) is %q, want %q", tt.word, got, tt.want)
		}
	}
}
