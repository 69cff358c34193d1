package report

import (
	"bytes"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"holdfast.dev/holdfast/internal/floor/text"
)

func asText(t testing.TB, r Run, o TextOptions) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Text(&b, r, o); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestText(t *testing.T) {
	strict := sample()
	strict.Strict = true
	for name, b := range map[string][]byte{
		"text-80.txt":      asText(t, sample(), TextOptions{Width: 80}),
		"text-140.txt":     asText(t, sample(), TextOptions{Width: 140}),
		"text-pipe.txt":    asText(t, sample(), TextOptions{}),
		"text-colour.txt":  asText(t, sample(), TextOptions{Width: 100, Color: true}),
		"text-verbose.txt": asText(t, strict, TextOptions{Width: 80, Verbose: true}),
		"text-empty.txt":   asText(t, Run{}, TextOptions{Width: 80}),
	} {
		t.Run(name, func(t *testing.T) { golden(t, name, b) })
	}
}

func TestTextDoesNotDependOnTheOrder(t *testing.T) {
	want := asText(t, sample(), TextOptions{Width: 100})
	r := sample()
	rand.Shuffle(len(r.Rows), func(i, j int) { r.Rows[i], r.Rows[j] = r.Rows[j], r.Rows[i] })
	before := slices.Clone(r.Rows)
	if got := asText(t, r, TextOptions{Width: 100}); !bytes.Equal(got, want) {
		t.Errorf("rows in another order give another text:\n%s", got)
	}
	for i := range before {
		if before[i].ID != r.Rows[i].ID {
			t.Fatal("writing changed the order of the rows that it was given")
		}
	}
}

var colour = regexp.MustCompile("\x1b\\[[0-9;]*m")

// harmless reports what in a text would affect a terminal, or does not fit in the
// width; 0 is any width.
func harmless(b []byte, columns int) string {
	if !utf8.Valid(b) {
		return "it is no UTF-8"
	}
	for line := range strings.Lines(string(colour.ReplaceAll(b, nil))) {
		line = strings.TrimSuffix(line, "\n")
		if i := strings.IndexFunc(line, text.Hidden); i >= 0 {
			return "it has a character that cannot be seen: " + line[i:min(i+20, len(line))]
		}
		if columns > 0 && width(line) > columns {
			return "a line is too wide: " + line
		}
	}
	return ""
}

func TestHostileText(t *testing.T) {
	for _, s := range nasty {
		for _, o := range []TextOptions{{}, {Width: 76}, {Width: 80, Color: true}, {Width: 100, Verbose: true}} {
			if problem := harmless(asText(t, hostile(s), o), o.Width); problem != "" {
				t.Errorf("%+.40q, %+v: %.200s", s, o, problem)
			}
		}
	}
}

func FuzzText(f *testing.F) {
	for _, s := range nasty {
		f.Add(s, 80)
	}
	f.Fuzz(func(t *testing.T, s string, columns int) {
		columns = max(columns%300, 76)
		if problem := harmless(asText(t, hostile(s), TextOptions{Width: columns}), columns); problem != "" {
			t.Errorf("%.200s", problem)
		}
	})
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		name, s string
		n       int
		want    []string
	}{
		{"what fits stays", "a b", 3, []string{"a b"}},
		{"no width, no break", "a  b", 0, []string{"a  b"}},
		{"at spaces", "one two three", 7, []string{"one two", "three"}},
		{"a word that is too long", "abcdefgh i", 3, []string{"abc", "def", "gh", "i"}},
		{"wide characters take two", "日本語", 4, []string{"日本", "語"}},
		{"a mark stays with its letter", "ae\u0301b", 2, []string{"ae\u0301", "b"}},
		{"less room than a character takes", "日本", 1, []string{"日", "本"}},
		{"nothing is a line", "", 5, []string{""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := wrap(c.s, c.n); !slices.Equal(got, c.want) {
				t.Errorf("%q in %d columns is %q, not %q", c.s, c.n, got, c.want)
			}
		})
	}
}
