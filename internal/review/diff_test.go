//go:build linux

package review

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/testenv"
)

// show writes hunks as git does.
func show(list []Hunk) string {
	var b strings.Builder
	for _, h := range list {
		fmt.Fprintf(&b, "@@ -%d,%d +%d,%d @@\n", h.OldStart, h.OldLines, h.NewStart, h.NewLines)
		for _, l := range h.Lines {
			fmt.Fprintf(&b, "%c%s\n", l.Op, l.Text)
			if l.NoEOL {
				b.WriteString("\\ No newline at end of file\n")
			}
		}
	}
	return b.String()
}

func TestHunks(t *testing.T) {
	for _, row := range []struct{ name, from, to, want string }{
		{"equal", "a\n", "a\n", ""},
		{"new file", "", "a\nb", "@@ -0,0 +1,2 @@\n+a\n+b\n\\ No newline at end of file\n"},
		{"emptied", "a\n", "", "@@ -1,1 +0,0 @@\n-a\n"},
		{"a newline goes", "a\nb\n", "a\nb", "@@ -1,2 +1,2 @@\n a\n-b\n+b\n\\ No newline at end of file\n"},
		{"a line that reads as the mark", "a\n\\ No newline at end of file\n", "a\n", "@@ -1,2 +1,1 @@\n a\n-\\ No newline at end of file\n"},
		{"carriage returns", "a\r\nb\r\n", "a\r\nc\r\n", "@@ -1,2 +1,2 @@\n a\r\n-b\r\n+c\r\n"},
		{"a line that reads as a hunk", "x\n", "@@ -1,1 +1,1 @@\n", "@@ -1,1 +1,1 @@\n-x\n+@@ -1,1 +1,1 @@\n"},
	} {
		if got := show(hunks([]byte(row.from), []byte(row.to))); got != row.want {
			t.Errorf("%s:\n%s", row.name, got)
		}
	}
}

// All hunks make the new side of the old one, none leaves it, and any choice is
// the old side with these lines replaced.
func TestPatch(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	word := func(n int) []byte {
		var b bytes.Buffer
		for range r.IntN(n) {
			fmt.Fprintf(&b, "%d\n", r.IntN(20))
		}
		if r.IntN(3) == 0 {
			b.WriteString("end")
		}
		return b.Bytes()
	}
	for range 2000 {
		from := word(60)
		to := bytes.Clone(from)
		for range r.IntN(4) {
			at := r.IntN(len(to) + 1)
			to = append(append(bytes.Clone(to[:at]), word(4)...), to[at:]...)
		}
		list := hunks(from, to)
		if got := patch(from, list, func(Hunk) bool { return true }); !bytes.Equal(got, to) {
			t.Fatalf("all of %q → %q: %q", from, to, got)
		}
		if got := patch(from, list, func(Hunk) bool { return false }); !bytes.Equal(got, from) {
			t.Fatalf("none of %q → %q: %q", from, to, got)
		}
		for i := range list {
			one := patch(from, list, func(h Hunk) bool { return h.ID == list[i].ID })
			rest := patch(one, hunks(one, to), func(Hunk) bool { return true })
			if !bytes.Equal(rest, to) {
				t.Fatalf("one of %q → %q: %q", from, to, one)
			}
		}
	}
}

// Text that is made to be slow to compare is not.
func TestDiffIsNotQuadratic(t *testing.T) {
	lines := bytes.Repeat([]byte("\n"), MaxText/4)
	other := bytes.Repeat([]byte("a\nb\n"), MaxText/16)
	var up, down bytes.Buffer
	for i := range MaxText / 32 {
		fmt.Fprintf(&up, "%07d\n", i)
		fmt.Fprintf(&down, "%07d\n", MaxText/32-i)
	}
	began := testenv.ProcessorTime(t, unix.RUSAGE_SELF)
	for _, pair := range [][2][]byte{{lines, other}, {other, lines}, {up.Bytes(), down.Bytes()}, {lines, lines[1:]}} {
		hunks(pair[0], pair[1])
	}
	if took := testenv.ProcessorTime(t, unix.RUSAGE_SELF) - began; took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
}

func TestDecideHunks(t *testing.T) {
	f := newField(t, Overlay)
	var from, to strings.Builder
	for i := range 40 {
		fmt.Fprintf(&from, "line %d\n", i)
		if i%15 == 5 {
			fmt.Fprintf(&to, "changed %d\n", i)
		} else {
			fmt.Fprintf(&to, "line %d\n", i)
		}
	}
	f.lower("a=" + from.String())
	f.upper("0755 a=" + to.String())
	s := f.collect()
	c := s.Find("a")
	d, err := s.Diff(c)
	if err != nil || len(d.Hunks) != 3 {
		t.Fatalf("%v %+v", err, d)
	}
	for i, decision := range []Decision{Accept, Reject} {
		if err := s.DecideHunk(c, d, i, decision); err != nil {
			t.Fatal(err)
		}
	}
	if c.Decision != Undecided {
		t.Errorf("with one hunk open: %v", c.Decision)
	}
	f.apply(s, Options{})
	first := strings.Replace(from.String(), "line 5\n", "changed 5\n", 1)
	want(t, tree(t, f.ws), "0644 a="+first)
	s.Close()
	s = f.collect()
	c = s.Find("a")
	if d, err = s.Diff(c); err != nil || len(d.Hunks) != 3 || d.Hunks[0].Decision != Accept || d.Hunks[1].Decision != Reject {
		t.Fatalf("looked at again: %v %+v", err, d)
	}
	if err := s.DecideHunk(c, d, 2, Accept); err != nil {
		t.Fatal(err)
	}
	if r := f.apply(s, Options{}); !r.Settled {
		t.Errorf("%+v", r)
	}
	second := strings.Replace(first, "line 35\n", "changed 35\n", 1)
	want(t, tree(t, f.ws), "0644 a="+second)
	if err := s.Decide(c, Accept); err != nil {
		t.Fatal(err)
	}
	f.apply(s, Options{})
	want(t, tree(t, f.ws), "0755 a="+to.String())
}

func TestHeader(t *testing.T) {
	f := newField(t, Overlay)
	f.lower("mode=m", "l->a", "moved=some content that moved\n", "bin=a\x00")
	f.upper("0755 mode=m", "l->b\n", "moved!", "to=some content that moved\n", "bin=b\x00", "new=1\n", "a\"b=1")
	s := f.collect()
	var got []string
	for _, c := range s.Changes {
		d, err := s.Diff(c)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, s.Header(c, d)...)
	}
	want(t, got,
		"diff --git a/mode b/mode", "old mode 100644", "new mode 100755",
		`diff --git "a/a\"b" "b/a\"b"`, "new file mode 100644", "--- /dev/null", `+++ "b/a\"b"`,
		"diff --git a/bin b/bin", "Binary files differ",
		"old 2 bytes, sha256 ffe9aaeaa2a2d5048174df0b80599ef0197ec024c4b051bc9860cff58ef7f9f3", "new 2 bytes, sha256 1e57b933b0a78203e21d41cc4b16d731b255b04058d48a4ac2731f0089312129",
		"diff --git a/l b/l", "--- a/l", "+++ b/l",
		"diff --git a/new b/new", "new file mode 100644", "--- /dev/null", "+++ b/new",
		"diff --git a/moved b/to", "similarity index 100%", "rename from moved", "rename to to",
	)
}
