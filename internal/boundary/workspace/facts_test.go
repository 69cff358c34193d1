//go:build linux

package workspace

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestFactsAreReadBackAsTheyWere(t *testing.T) {
	root := t.TempDir()
	names := []string{"plain", "with \"quotes\"", "back\\slash", "line\nbreak", "byte\xff", "ümlaut", "esc\x1b[31m"}
	for _, n := range names {
		if err := os.WriteFile(filepath.Join(root, n), []byte(n), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	deep := filepath.Join(root, "a", "b")
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/nowhere", filepath.Join(deep, "link")); err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	if err := WriteFacts(context.Background(), root, 7, &buf); err != nil {
		t.Fatal(err)
	}
	got := map[string]Fact{}
	h, err := ReadFacts(&buf, func(f Fact) error { got[f.Path] = f; return nil })
	if err != nil || h.Began != 7 || string(h.Root) != root {
		t.Fatalf("header %+v, %v", h, err)
	}
	for _, n := range append(names, "a", "a/b", "a/b/link") {
		var st unix.Stat_t
		if err := unix.Lstat(filepath.Join(root, n), &st); err != nil {
			t.Fatal(err)
		}
		f, ok := got[n]
		if !ok || f.Mode != st.Mode || f.Size != st.Size || f.Ino != st.Ino || f.Dev != st.Dev || f.Ctime != st.Ctim.Nano() || f.Mtime != st.Mtim.Nano() {
			t.Errorf("%q: %+v, want %+v", n, f, st)
		}
	}
	if len(got) != len(names)+3 {
		t.Errorf("%d files, want %d", len(got), len(names)+3)
	}
}

func TestFactsThatAreCutAreAnError(t *testing.T) {
	for _, text := range []string{"", "{}\n", "{\"version\":2}\n", "{\"version\":1}\n[\"a\",1,2,3,4,5]\n", "{\"version\":1}\n[\"a\",1,2,3", "{\"version\":1}\n[\"\\\\q\",1,2,3,4,5,6]\n"} {
		if _, err := ReadFacts(strings.NewReader(text), func(Fact) error { return nil }); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}

// A path is written as it is unless JSON, or a terminal, takes a byte of it for
// something else.
func TestPathsOfFacts(t *testing.T) {
	for path, want := range map[string]string{
		"": `""`, "a/b <&>": `"a/b <&>"`, "~": `"~"`, "\x1f": `"\u001f"`, `"`: `"\""`, `\`: `"\\\\"`, "\x7f": "\"\x7f\"", "é": `"é"`, "\xff": `"\\xff"`,
	} {
		if got := string(appendPath([]byte("[")[:0], []byte(path))); got != want {
			t.Errorf("%q: %s, want %s", path, got, want)
		}
	}
}

func TestParseFact(t *testing.T) {
	for line, want := range map[string]Fact{
		`["a",1,2,3,4,5,6]`:                     {"a", Identity{Mode: 1, Size: 2, Mtime: 3, Ctime: 4, Dev: 5, Ino: 6}},
		`["",0,0,-3,-4,0,18446744073709551615]`: {"", Identity{Mtime: -3, Ctime: -4, Ino: 1<<64 - 1}},
		`["a\"b,\\xff",1,0,0,0,0,0]`:            {"a\"b,\xff", Identity{Mode: 1}},
	} {
		if got, err := parseFact([]byte(line)); err != nil || got != want {
			t.Errorf("%s: %+v, %v", line, got, err)
		}
	}
	for _, line := range []string{
		"", "[", `"`, `[]`, `["]`, `["a"`, `["a"]`, `("a",1,2,3,4,5,6]`, `["a",1,2,3,4,5,6)`, `["a",1,2,3,4,5]`, `["a";1,2,3,4,5,6]`, `["a",1;2,3,4,5,6]`,
		`["a",x,2,3,4,5,6]`, `["a",1,18446744073709551615,3,4,5,6]`, `["a",1,2,3,4,18446744073709551615,6]`, `["a",1,2,3,4,5,x]`, `["a",1,2,3,4,5,18446744073709551616]`, `["\q",1,2,3,4,5,6]`,
	} {
		if got, err := parseFact([]byte(line)); err == nil {
			t.Errorf("%s: %+v", line, got)
		}
	}
}

// Reading ends at the first line that is not accepted, and says which it is.
func TestReadFactsSaysWhere(t *testing.T) {
	text := "{\"version\":1}\n[\"a\",1,2,3,4,5,6]\n[\"b\",1,2,3,4,5,6]\n"
	n := 0
	if _, err := ReadFacts(strings.NewReader(text), func(Fact) error { n++; return unix.EIO }); n != 1 || !errors.Is(err, unix.EIO) || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("%d files, %v", n, err)
	}
	if _, err := ReadFacts(strings.NewReader(text+strings.Repeat("x", factsMax)), func(Fact) error { return nil }); !errors.Is(err, bufio.ErrTooLong) {
		t.Errorf("a line that is too long: %v", err)
	}
}

func TestSameIdentity(t *testing.T) {
	was := Identity{Mode: unix.S_IFREG | 0o644, Size: 1, Mtime: 2, Ctime: 3, Dev: 4, Ino: 5}
	for name, c := range map[string]struct {
		change func(*Identity)
		want   bool
	}{
		"nothing": {func(*Identity) {}, true}, "its permissions alone": {func(f *Identity) { f.Mode = unix.S_IFREG }, true},
		"its type": {func(f *Identity) { f.Mode = unix.S_IFDIR }, false}, "its time of change": {func(f *Identity) { f.Ctime = 4 }, false},
		"its device": {func(f *Identity) { f.Dev = 9 }, false}, "its number": {func(f *Identity) { f.Ino = 9 }, false},
	} {
		now := was
		c.change(&now)
		if was.Same(now) != c.want {
			t.Errorf("%s is another: %v", name, !c.want)
		}
	}
}

func BenchmarkFacts(b *testing.B) {
	root := b.TempDir()
	for i := range 20000 {
		dir := filepath.Join(root, fmt.Sprintf("dir%03d", i/50))
		if i%50 == 0 {
			if err := os.Mkdir(dir, 0o755); err != nil {
				b.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("file%05d.go", i)), nil, 0o644); err != nil {
			b.Fatal(err)
		}
	}
	var buf bytes.Buffer
	b.ResetTimer()
	for b.Loop() {
		buf.Reset()
		if err := WriteFacts(context.Background(), root, 0, &buf); err != nil {
			b.Fatal(err)
		}
	}
}
