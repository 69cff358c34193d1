//go:build linux

package workspace

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"
)

// ewahOf is a compressed bitmap of words, with what follows it.
func ewahOf(rest string, words ...uint64) string {
	b := binary.BigEndian.AppendUint32(make([]byte, 4), uint32(len(words)))
	for _, w := range words {
		b = binary.BigEndian.AppendUint64(b, w)
	}
	return string(b) + "\x00\x00\x00\x00" + rest
}

// runOf is a word that says how many words of one bit, and how many as they are, follow.
func runOf(bit, run, literal uint64) uint64 { return bit | run<<1 | literal<<33 }

func TestEWAH(t *testing.T) {
	var first []int
	for i := range 64 {
		first = append(first, i)
	}
	for _, tt := range []struct {
		name  string
		b     string
		limit int
		set   []int
		ok    bool
	}{
		{"nothing set", ewahOf(""), 10, nil, true},
		{"a word of ones", ewahOf("", runOf(1, 1, 0)), 64, first, true},
		{"a word of ones, and not so many names", ewahOf("", runOf(1, 1, 0)), 63, nil, false},
		{"a word of ones behind one of zeros", ewahOf("", runOf(0, 1, 0), runOf(1, 1, 0)), 127, nil, false},
		{"bits", ewahOf("", runOf(0, 0, 1), 0b101), 3, []int{0, 2}, true},
		{"a bit behind the last name", ewahOf("", runOf(0, 0, 1), 0b101), 2, nil, false},
		{"bits behind zeros", ewahOf("", runOf(0, 1, 1), 0b101), 67, []int{64, 66}, true},
		{"two words of bits", ewahOf("", runOf(0, 0, 2), 1, 2), 66, []int{0, 65}, true},
		{"fewer words than it says", ewahOf("", runOf(0, 0, 3), 1), 10, []int{0}, true},
		{"zeros far behind the last name", ewahOf("", runOf(0, 9, 0)), 10, nil, true},
		{"and more behind those", ewahOf("", runOf(0, 9, 0), runOf(0, 9, 0)), 10, nil, false},
		{"cut in its beginning", ewahOf("")[:11], 10, nil, false},
		{"cut in its words", ewahOf("", runOf(0, 0, 1), 1)[:27], 10, nil, false},
	} {
		set, rest, ok := ewah([]byte(tt.b), tt.limit)
		if ok != tt.ok || ok && (!slices.Equal(set, tt.set) || len(rest) != 0) {
			t.Errorf("%s: %v, %q, %v", tt.name, set, rest, ok)
		}
	}
	if _, rest, ok := ewah([]byte(ewahOf("rest", runOf(0, 0, 1), 1)), 1); !ok || string(rest) != "rest" {
		t.Errorf("what follows: %q, %v", rest, ok)
	}
}

// A split index names by a bitmap what it replaces of the second file.
func TestBaseNames(t *testing.T) {
	link := func(deleted, replaced string) string {
		body := strings.Repeat("\x11", 20) + deleted + replaced
		return "link" + string(binary.BigEndian.AppendUint32(nil, uint32(len(body)))) + body
	}
	none, both := ewahOf(""), ewahOf("", runOf(0, 0, 1), 0b101)
	base := indexOf(20, "", "a", "b/.envrc", "c")
	for _, tt := range []struct {
		name string
		data []byte
		base []byte
		want []string
	}{
		{"two of three", indexOf(20, link(none, both), "", ""), base, []string{"a", "c"}},
		{"behind another table", indexOf(20, table("TREE", 1, 2)+link(none, both), ""), base, []string{"a", "c"}},
		{"no entry without a name", indexOf(20, link(none, both), "x"), base, nil},
		{"no such table", indexOf(20, "TREE\x00\x00\x00\x04link", ""), base, nil},
		{"none of that word", indexOf(20, table("TREE", 1), ""), base, nil},
		{"an index that git does not write", indexOf(20, link(none, both)+"12345678", ""), base, nil},
		{"a table that is too short", indexOf(20, "link\x00\x00\x00\x05abcde", ""), base, nil},
		{"no second file", indexOf(20, link(none, both), ""), nil, nil},
		{"a second file that is cut", indexOf(20, link(none, both), ""), base[:90], nil},
		{"more than the second file has", indexOf(20, link(none, both), ""), indexOf(20, "", "a", "b"), nil},
		{"what is deleted cannot be read", indexOf(20, link(both, both), ""), indexOf(20, "", "a"), nil},
		{"what is deleted is cut", indexOf(20, link("", ""), ""), base, nil},
		{"what is replaced is cut", indexOf(20, link(none, ""), ""), base, nil},
	} {
		asked := ""
		got := baseNames(tt.data, 20, func(name string) []byte { asked = name; return tt.base })
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q", tt.name, got)
		}
		if tt.want != nil && asked != "sharedindex."+strings.Repeat("11", 20) {
			t.Errorf("%s: %q was read", tt.name, asked)
		}
	}
}
