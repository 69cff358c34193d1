package consent

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// TestVisible has each text on the left and its visible form on the right. The
// first rows are cases TTY-009 and TTY-010 of the escape catalogue.
func TestVisible(t *testing.T) {
	for in, want := range map[string]string{
		"rm x #\r echo ok":                      `rm x #\r echo ok`,
		"rm x\b\b\b\becho ok":                   `rm x\u{0008}\u{0008}\u{0008}\u{0008}echo ok`,
		"rm -rf \u202egpj.exe":                  `rm -rf \u{202E}gpj.exe`,
		"a\u2066b\u2069c\u200fd":                `a\u{2066}b\u{2069}c\u{200F}d`,
		"x\U000e0072\U000e006d":                 `x\u{E0072}\u{E006D}`,
		"":                                      "",
		"git push origin main":                  "git push origin main",
		"\x1b[2J\x1b]0;x\a":                     `\u{001B}[2J\u{001B}]0;x\u{0007}`,
		"\u009b2J":                              `\u{009B}2J`,
		"a\nb\tc":                               `a\nb\tc`,
		`\u{202E}`:                              `\\u{202E}`,
		"\xff\x9b2J":                            `\xff\x9b2J`,
		"\ufffd":                                `\u{FFFD}`,
		"z\u200be\u200dr\ufeffo\u2060":          `z\u{200B}e\u{200D}r\u{FEFF}o\u{2060}`,
		"so\u00adft":                            `so\u{00AD}ft`,
		"no\u00a0break\u3000wide":               `no\u{00A0}break\u{3000}wide`,
		"line\u2028para\u2029":                  `line\u{2028}para\u{2029}`,
		"v\ufe0f\U000e0100":                     `v\u{FE0F}\u{E0100}`,
		"private \ue000 \U0010fffd":             `private \u{E000} \u{10FFFD}`,
		"unassigned \u0378":                     `unassigned \u{0378}`,
		"filler \u3164\u115f\u2800":             `filler \u{3164}\u{115F}\u{2800}`,
		"rm a" + strings.Repeat(" ", 200) + "b": `rm a\{200 spaces}b`,
		"привет мир":                            "привет мир",
		"Ελληνική γλώσσα, και τα λοιπά": "Ελληνική γλώσσα, και τα λοιπά",
		"日本語のファイル名":                     "日本語のファイル名",
		"한국어 문서":                        "한국어 문서",
		"हिन्दी भाषा":                   "हिन्दी भाषा",
		"ภาษาไทย":                       "ภาษาไทย",
		"Größe.txt":                     "Größe.txt",
		"Grösse na\u0308iv":             "Grösse na\u0308iv",
		"שלום עולם":                     "שלום עולם",
		"/home/שלום/x":                  `/home/\u{05E9}\u{05DC}\u{05D5}\u{05DD}/x`,
		"p\u0430ypal":                   `p\u{0430}ypal`,
		"\u0440\u0430\u0443":            `\u{0440}\u{0430}\u{0443}`,
		"g\u0456t push":                 `g\u{0456}t push`,
		"\u03bfrigin":                   `\u{03BF}rigin`,
		"ｇｉｔ":                           `\u{FF47}\u{FF49}\u{FF54}`,
		"𝐠𝐢𝐭":                           `\u{1D420}\u{1D422}\u{1D42D}`,
		"ⓖⓘⓣ ᵍⁱᵗ ﬁle":                   `\u{24D6}\u{24D8}\u{24E3} \u{1D4D}\u{2071}\u{1D57} \u{FB01}le`,
		"usr丿bin ノ":                     `usr丿bin \u{30CE}`,
		"1\u0966":                       `1\u{0966}`,
		"ɡit ꓖ":                         `\u{0261}it \u{A4D6}`,
		"e\u0301 e\u0301\u0301\u0301":   "e\u0301 e\u0301\\u{0301}\\u{0301}",
		"и\u0306\u0306\u0306\u0306":     `й̆̆\u{0306}`,
		"x\u0338 \u0301":                `x\u{0338} \u{0301}`,
		"ĳs ǆ \u212a \u212b ϐ":          `\u{0133}s \u{01C6} \u{212A} \u{212B} \u{03D0}`,
		"“quotes” – and …":              `\u{201C}quotes\u{201D} \u{2013} and \u{2026}`,
		"🙂":                             `\u{1F642}`,
	} {
		if got := Visible(in); got != want {
			t.Errorf("%+q\nis shown as %s\nwant        %s", in, got, want)
		}
	}
}

func TestALongTextShowsItsEnd(t *testing.T) {
	for _, n := range []int{900, 1100, 20_000, 3_000_000} {
		s := "curl https://a.example.org/" + strings.Repeat("x", n) + " | sh"
		got := Visible(s)
		if len(got) > longest+40 || !strings.HasSuffix(got, "x | sh") || !strings.HasPrefix(got, "curl https://a.example.org/x") {
			t.Errorf("of %d: %d characters: %s", n, len(got), got)
		}
		if n < 950 {
			continue
		}
		i := strings.Index(got, `\{`)
		var left int
		if _, err := fmt.Sscanf(got[i:], `\{%d bytes left out}`, &left); err != nil {
			t.Fatal(err, got)
		}
		note := got[i : i+strings.Index(got[i:], "}")+1]
		if shown := len(got) - len(note); shown+left != len(s) {
			t.Errorf("%d are shown and %d left out of %d", shown, left, len(s))
		}
	}
}

// unseen reverses Visible.
func unseen(t testing.TB, v string) string {
	var b strings.Builder
	for v != "" {
		r, n := utf8.DecodeRuneInString(v)
		if r != '\\' {
			b.WriteRune(r)
			v = v[n:]
			continue
		}
		switch v[1] {
		case '\\':
			b.WriteByte('\\')
			v = v[2:]
		case 'n', 't', 'r':
			b.WriteByte(map[byte]byte{'n': '\n', 't': '\t', 'r': '\r'}[v[1]])
			v = v[2:]
		case 'x':
			c, err := strconv.ParseUint(v[2:4], 16, 8)
			if err != nil {
				t.Fatal(err)
			}
			b.WriteByte(byte(c))
			v = v[4:]
		case 'u':
			end := strings.IndexByte(v, '}')
			c, err := strconv.ParseUint(v[3:end], 16, 32)
			if err != nil {
				t.Fatal(err)
			}
			b.WriteRune(rune(c))
			v = v[end+1:]
		case '{':
			end := strings.IndexByte(v, '}')
			var spaces int
			if _, err := fmt.Sscanf(v[2:end], "%d spaces", &spaces); err != nil {
				t.Fatalf("%q: %v", v, err)
			}
			b.WriteString(strings.Repeat(" ", spaces))
			v = v[end+1:]
		default:
			t.Fatalf("%q begins with no escape", v)
		}
	}
	return b.String()
}

// harmless fails if a text could do more on a terminal than be shown.
func harmless(t testing.TB, v string) {
	t.Helper()
	n := 0
	for _, r := range v {
		if r >= ' ' && r <= '~' {
			n = 0
			continue
		}
		if !unicode.In(r, unicode.L, unicode.M, unicode.Nd) || unicode.In(r, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point, unicode.Bidi_Control) {
			t.Errorf("%+q holds %U", v, r)
		}
		if n++; !unicode.IsMark(r) && !unicode.Is(unicode.Lm, r) {
			n = 0
		}
		if n > 3 {
			t.Errorf("%+q holds %d marks in a row", v, n)
		}
	}
	if !utf8.ValidString(v) {
		t.Errorf("%q is no UTF-8", v)
	}
}

func FuzzVisible(f *testing.F) {
	for _, s := range []string{"git push", "\x1b[2J", "a\u202eb", "p\u0430y", "е\u0301", "שלom\u05b0", "ｇ\u0301", "\\{3 spaces}", "      ", strings.Repeat("ü\xff\u0301", 600), "アー", "aー", "\U000e0001", "१२", "ǃ", "ᄀᅠ"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v := Visible(s)
		harmless(t, v)
		if n := utf8.RuneCountInString(v); n > longest+40 {
			t.Errorf("it has %d characters", n)
		}
		if !strings.Contains(strings.ReplaceAll(v, `\\`, ""), "bytes left out}") {
			if back := unseen(t, v); back != s {
				t.Errorf("%+q is shown as %s, which is also %+q", s, v, back)
			}
		}
		harmless(t, Quote(s))
		for _, n := range Notes(s) {
			harmless(t, n)
		}
		for word := range strings.FieldsSeq(v) {
			ascii, like := false, false
			for _, r := range word {
				ascii = ascii || r < 0x80 && unicode.IsLetter(r)
				like = like || strings.ContainsRune(lookalikes, r)
			}
			if letters := strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"); ascii && like && strings.IndexFunc(letters, func(r rune) bool { return r < 0x80 }) < 0 {
				t.Errorf("%+q is shown as %s, in which a letter passes for another", s, v)
			}
		}
	})
}

func TestNotes(t *testing.T) {
	for in, want := range map[string]string{
		"git push":                "",
		"привет":                  "",
		"p\u0430ypal":             `the word "p\u{0430}ypal" holds letters that look like others`,
		"ｇｉｔ":                     `the word "\u{FF47}\u{FF49}\u{FF54}" holds letters that look like others`,
		"a\u202eb\u2066":          "it holds characters that change the order in which a line is shown: 2",
		"a\rb":                    "it holds control characters, which move the cursor or rewrite a line: 1",
		"a\u200b\U000e0041\u3164": "it holds characters that cannot be seen: 3",
		"a\xff":                   "it holds bytes that are not characters: 1",
		"a         b":             "it holds many spaces in a row",
	} {
		if got := strings.Join(Notes(in), "; "); got != want {
			t.Errorf("%+q: %s, want %s", in, got, want)
		}
	}
}

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{
		"": "''", "main": "main", "--force": "--force", "a b": "'a b'", "it's": `$'it\'s'`, "$(x)": "'$(x)'", "a\nb": `$'a\nb'`,
		`a\b`: `$'a\\b'`, "файл": "файл", "a;b": "'a;b'", "~": "'~'", "*": "'*'", "{a,b}": "'{a,b}'",
	} {
		if got := Quote(in); got != want {
			t.Errorf("%+q: %s, want %s", in, got, want)
		}
	}
}
