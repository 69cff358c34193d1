//go:build linux

package workspace

import (
	"bytes"
	"context"
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
