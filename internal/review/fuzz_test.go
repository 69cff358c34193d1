//go:build linux

package review

import (
	"bytes"
	"testing"
)

// What applies equals what was shown: all hunks make the new side, none leave the
// old one, and of some of them each line that is not in them stays as it is.
func FuzzHunks(f *testing.F) {
	for _, s := range [][2]string{
		{"", "a"}, {"a", ""}, {"a\n", "a"}, {"a\r\nb\r\n", "a\nb\n"}, {"\xef\xbb\xbfa\n", "a\n"},
		{"1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\nx\n3\n4\n5\n6\n7\n8\ny"},
		{"\\ No newline at end of file\n", "\\ No newline at end of file"},
		{"@@ -1,1 +1,1 @@\n", "--- a\n+++ b\n@@ -1,1 +1,1 @@\n"}, {"\xff\n\n\n", "\n\n\xff"}, {"a\na\na\na\na\n", "a\na\na\na\na\na\na\n"},
	} {
		f.Add([]byte(s[0]), []byte(s[1]), uint64(0b1010))
	}
	f.Fuzz(func(t *testing.T, from, to []byte, pick uint64) {
		if len(from)+len(to) > 1<<14 {
			return
		}
		list := hunks(from, to)
		ids, shown := map[string]bool{}, 0
		for _, h := range list {
			if ids[h.ID] {
				t.Fatalf("two hunks have one name: %q → %q", from, to)
			}
			ids[h.ID] = true
			shown += len(h.Lines)
		}
		if got := patch(from, list, func(Hunk) bool { return true }); !bytes.Equal(got, to) {
			t.Fatalf("all: %q, want %q", got, to)
		}
		if got := patch(from, list, func(Hunk) bool { return false }); !bytes.Equal(got, from) {
			t.Fatalf("none: %q, want %q", got, from)
		}
		chosen := map[string]bool{}
		for i, h := range list {
			chosen[h.ID] = pick>>(i%64)&1 == 1
		}
		got := patch(from, list, func(h Hunk) bool { return chosen[h.ID] })
		// Shown again from where it was applied to, what is left is what was not chosen.
		if rest := patch(got, hunks(got, to), func(Hunk) bool { return true }); !bytes.Equal(rest, to) {
			t.Fatalf("the rest: %q, want %q", rest, to)
		}
		plain(t, from, list, chosen, got)
	})
}

// plain applies hunks line by line, without what patch knows of them.
func plain(t *testing.T, from []byte, list []Hunk, chosen map[string]bool, got []byte) {
	t.Helper()
	lines := bytes.SplitAfter(from, []byte("\n"))
	var want []byte
	at := 0
	for _, h := range list {
		begin := h.OldStart - 1
		if h.OldLines == 0 {
			begin = h.OldStart
		}
		for ; at < begin; at++ {
			want = append(want, lines[at]...)
		}
		for _, l := range h.Lines {
			text := append(bytes.Clone(l.Text), '\n')
			if l.NoEOL {
				text = text[:len(text)-1]
			}
			if l.Op != '+' {
				if !bytes.Equal(lines[at], text) {
					t.Fatalf("line %d is %q, and %q was shown", at+1, lines[at], text)
				}
				at++
			}
			if l.Op == ' ' || (l.Op == '+') == chosen[h.ID] {
				want = append(want, text...)
			}
		}
	}
	for ; at < len(lines); at++ {
		want = append(want, lines[at]...)
	}
	if !bytes.Equal(got, want) {
		t.Fatalf("some: %q, want %q", got, want)
	}
}
