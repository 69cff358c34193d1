//go:build linux

package workspace

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// indexOf is a git index with entries at paths, and tables behind them.
func indexOf(hash int, tables string, paths ...string) []byte {
	b := binary.BigEndian.AppendUint32([]byte("DIRC\x00\x00\x00\x02"), uint32(len(paths)))
	for _, p := range paths {
		e := append(make([]byte, 40+hash), byte(len(p)>>8), byte(len(p)))
		e = append(e, p...)
		b = append(b, append(e, make([]byte, 8-len(e)%8)...)...)
	}
	return append(append(b, tables...), make([]byte, hash)...)
}

// table is an extension of an index.
func table(name string, numbers ...uint32) string {
	var body []byte
	for _, n := range numbers {
		body = binary.BigEndian.AppendUint32(body, n)
	}
	return name + string(binary.BigEndian.AppendUint32(nil, uint32(len(body)))) + string(body)
}

func TestIndexHarm(t *testing.T) {
	sha256 := []byte("[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectformat = sha256\n")
	for _, p := range []string{".git/hooks/pre-commit", "../x", "/x", "a/../x", "a/./x", "a//x", "sub/.GIT/config", "a/git~1/x", ".git", "..", ".g\u200cit/x"} {
		if IndexHarm(indexOf(20, "", "a", p), nil) == "" || IndexHarm(indexOf(32, "", p), sha256) == "" {
			t.Errorf("%q is no harm", p)
		}
	}
	if why := IndexHarm(indexOf(20, table("TREE", 1), "a", "a.git/x", "x/...", "sparse/"), nil); why != "" {
		t.Error(why)
	}
	long := indexOf(20, "", "a/b")
	long[12+61] = 40 // a length beyond the NUL
	for name, data := range map[string][]byte{
		"nothing": nil, "cut": indexOf(20, "", "a")[:60], "another length": long,
		"the other kind of names":  indexOf(32, "", "a"),
		"blocks that begin within": indexOf(20, table("IEOT", 1, 12, 1, 90, 1), "a", "b"),
		"fewer blocks":             indexOf(20, table("IEOT", 1, 12, 1), "a", "b"),
		"tables elsewhere":         indexOf(20, table("EOIE", 12, 0, 0, 0, 0, 0), "a"),
	} {
		if IndexHarm(data, nil) == "" {
			t.Errorf("%s: no harm", name)
		}
	}
	if why := IndexHarm(indexOf(20, table("IEOT", 1, 12, 1, 76, 1), "a", "b"), nil); why != "" {
		t.Error(why)
	}
}

// Whatever git itself writes stays, in each of its formats.
func TestSettleIndex(t *testing.T) {
	w := tempRoot(t)
	write(t, w, "kept/.env", "A=1\n")
	repo(t, w+"/kept")
	write(t, w, "sub/.env", "A=1\n")
	s := scanned(t, w)
	if h := s.Hidden(); len(h) != 1 || h[0].Path != "sub/.env" {
		t.Fatalf("hidden: %+v", h)
	}
	for dir, args := range map[string][]string{"v4": {"-c", "index.version=4"}, "split": {"-c", "core.splitIndex=true"}, "threads": {"-c", "index.threads=4", "-c", "index.version=4"}} {
		repo(t, w+"/"+dir)
		for i := range 50 {
			write(t, w, fmt.Sprintf("%s/a/b%d/file", dir, i), "x")
		}
		git(t, w+"/"+dir, append(args, "add", ".")...)
	}
	git(t, w, "init", "-q", "--object-format=sha256", "long")
	write(t, w, "long/file", "x")
	git(t, w+"/long", "add", ".")
	git(t, w+"/long", "commit", "-q", "-m", "first")
	git(t, w+"/long", "worktree", "add", "-q", "../tree")
	repo(t, w+"/sub")
	if err := os.WriteFile(w+"/sub/.git/index", indexOf(20, "", ".env", "README"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := settled(t, s)
	if len(r.Quarantined) > 0 || len(r.Flagged) != 1 || !strings.Contains(r.Flagged[0].Reason, `".env", which was hidden`) {
		t.Fatalf("%+v\n%+v", r.Quarantined, r.Flagged)
	}
	s = scanned(t, w)
	bad := []string{"kept/.git/index", "kept/.git/sharedindex.0", "long/.git/worktrees/tree/index"}
	for _, p := range bad {
		hash := 20
		if strings.HasPrefix(p, "long") {
			hash = 32
		}
		os.WriteFile(filepath.Join(w, p), indexOf(hash, "", ".git/hooks/pre-commit"), 0o644)
	}
	r = settled(t, s)
	if len(r.Quarantined) != len(bad) {
		t.Fatalf("%+v", r.Quarantined)
	}
	for i, q := range r.Quarantined {
		if string(q.Path) != w+"/"+bad[i] || !strings.Contains(q.Why, `".git/hooks/pre-commit"`) {
			t.Errorf("%+v", q)
		}
	}
}

// Whatever an index and the second file of a split one hold, reading them ends.
func FuzzIndex(f *testing.F) {
	base := indexOf(20, "", "a", "b/.envrc")
	link := "link\x00\x00\x00\x44" + strings.Repeat("x", 20) + "\x00\x00\x00\x00\x00\x00\x00\x01" + strings.Repeat("\x00", 12) +
		"\x00\x00\x00\x02\x00\x00\x00\x02\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00"
	f.Add(indexOf(20, link, ""), base)
	f.Add(indexOf(20, table("TREE", 1), "HEAD", "hooks/x"), base)
	f.Add(indexOf(20, "", "/x", "a//.envrc", "/", "b/"), base)
	for size := byte(20); size < 60; size += 4 {
		f.Add(indexOf(20, "link\x00\x00\x00"+string(rune(size))+strings.Repeat("\x00", int(size)), ""), base)
	}
	rules := DefaultRules()
	f.Fuzz(func(t *testing.T, data, base []byte) {
		visit := func(e staged) {
			if e.rule == nil || !strings.HasPrefix(e.name, e.at) {
				t.Errorf("%+v", e)
			}
		}
		if err := eachStaged(data, 20, &rules, "x/y", func(string) []byte { return base }, visit); err != nil && eachIndexed(data, 20, func(_, _ []byte) {}) == nil {
			t.Error(err)
		}
	})
}
