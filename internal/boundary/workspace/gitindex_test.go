//go:build linux

package workspace

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// indexOf is a git index with entries at paths, and tables behind them.
func indexOf(hash int, tables string, paths ...string) []byte {
	var entries []string
	for _, p := range paths {
		entries = append(entries, rawEntry(hash, 0, 0, 0, p))
	}
	return indexWith(2, hash, tables, entries...)
}

// indexWith is a git index of that version: its entries, and tables behind them.
func indexWith(version byte, hash int, tables string, entries ...string) []byte {
	b := binary.BigEndian.AppendUint32([]byte{'D', 'I', 'R', 'C', 0, 0, 0, version}, uint32(len(entries)))
	return append(append(b, strings.Join(entries, "")+tables...), make([]byte, hash)...)
}

// rawEntry is an entry of an index: 0x40 in its flags says that there are more.
func rawEntry(hash int, mode uint32, flags, more byte, name string) string {
	e := make([]byte, 40+hash)
	binary.BigEndian.PutUint32(e[24:], mode)
	e = append(e, flags|byte(len(name)>>8), byte(len(name)))
	if flags&0x40 != 0 {
		e = append(e, more, 0)
	}
	e = append(e, name...)
	return string(append(e, make([]byte, 8-len(e)%8)...))
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

// prefixedIndex is an index of version 4. Each entry is how much of the name before
// is taken away, as it is written, and what is appended; size is the length that it
// claims to have.
func prefixedIndex(entries ...prefixedEntry) []byte {
	b := binary.BigEndian.AppendUint32([]byte("DIRC\x00\x00\x00\x04"), uint32(len(entries)))
	for _, e := range entries {
		b = append(b, make([]byte, 60)...)
		b = append(b, byte(e.size>>8), byte(e.size))
		b = append(append(b, e.strip+e.more...), 0)
	}
	return append(b, make([]byte, 20)...)
}

type prefixedEntry struct {
	strip, more string
	size        int
}

// Names of version 4 are built from the previous name. Git refuses to remove more of it
// than there is.
func TestPrefixedIndex(t *testing.T) {
	long := strings.Repeat("n", 200)
	for _, tt := range []struct {
		name    string
		entries []prefixedEntry
		want    []string // nil for an error
	}{
		{"a part is kept", []prefixedEntry{{"\x00", "dir/a", 5}, {"\x01", "bc", 6}, {"\x06", "x", 1}}, []string{"dir/a", "dir/bc", "x"}},
		{"two bytes of a number", []prefixedEntry{{"\x00", long, 200}, {"\x80\x00", "x", 73}}, []string{long, long[:72] + "x"}},
		{"more than there is is taken away", []prefixedEntry{{"\x00", "dir/a", 5}, {"\x06", "x", 1}}, nil},
		{"no number", []prefixedEntry{{"\x80\x80\x80\x80\x80", "", 0}}, nil},
		{"another length of the name", []prefixedEntry{{"\x00", "dir/a", 5}, {"\x01", "bc", 2}}, nil},
	} {
		var got []string
		err := eachIndexed(prefixedIndex(tt.entries...), 20, func(name, _ []byte) { got = append(got, string(name)) })
		if (err == nil) != (tt.want != nil) || err == nil && !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, %v", tt.name, got, err)
		}
	}
	twice := prefixedIndex(prefixedEntry{"\x00", "aa", 2}, prefixedEntry{"\x02", "b", 1}, prefixedEntry{"\x01", "c", 1})
	for at, want := range map[uint32]bool{12: true, 12 + 66: true, 13: false} { // no block begins where a part is kept
		data := append(slices.Clone(twice[:len(twice)-20]), table("IEOT", 1, 12, 1, at, 2)...)
		if at == 12 {
			data = append(slices.Clone(twice[:len(twice)-20]), table("IEOT", 1, 12, 3)...)
		}
		if err := eachIndexed(append(data, make([]byte, 20)...), 20, func(_, _ []byte) {}); (err == nil) != want {
			t.Errorf("a block at %d: %v", at, err)
		}
	}
	kept := prefixedIndex(prefixedEntry{"\x00", "aa", 2}, prefixedEntry{"\x01", "b", 2})
	data := append(append(kept[:len(kept)-20], table("IEOT", 1, 12, 1, 12+66, 1)...), make([]byte, 20)...)
	if eachIndexed(data, 20, func(_, _ []byte) {}) == nil {
		t.Error("a block begins at a name of which a part is in the one before")
	}
}

// TestIndexEntryEnds: an entry lies in the file as a whole.
func TestIndexEntryEnds(t *testing.T) {
	plain := indexOf(20, "", "abc")[12 : 12+72]
	extended := append(slices.Concat(plain[:60], []byte{0x40, 3, 0x40, 0}, []byte("abc")), make([]byte, 5)...)
	for _, tt := range []struct {
		name     string
		b        []byte
		prefixed bool
		size     int // 0 for an error
	}{
		{"of version 2", plain, false, 72},
		{"with flags of version 3", extended, false, 72},
		{"nothing", nil, false, 0},
		{"without its flags", plain[:63], false, 0},
		{"a name without an end", plain[:65], false, 0},
		{"a name without what fills it up", plain[:70], false, 0},
	} {
		var name []byte
		size, _, err := indexEntry(tt.b, 20, tt.prefixed, &name)
		if size != tt.size || (err == nil) != (tt.size > 0) || err == nil && string(name) != "abc" {
			t.Errorf("%s: %d, %q, %v", tt.name, size, name, err)
		}
	}
}

// looseEntry reads entries that git's own programs do not write as git reads them.
func TestLooseEntry(t *testing.T) {
	entry := func(flags uint16, rest string) []byte {
		return append(binary.BigEndian.AppendUint16(make([]byte, 60), flags), rest...)
	}
	for _, tt := range []struct {
		what     string
		data     []byte
		prefixed bool
		name     string
		size     int // 0 where git gives up
	}{
		{"a name of its length", entry(3, "abc\x00\x00\x00"), false, "abc", 72},
		{"without an end", entry(3, "abcdef"), false, "abc", 72},
		{"an end before its length", entry(5, "ab\x00cd"), false, "ab", 72},
		{"longer than the file", entry(50, "abc"), false, "abc", 120},
		{"up to its end where the length does not fit", entry(0xfff, "abc\x00def"), false, "abc", 72},
		{"up to the end of the file", entry(0xfff, "abcd"), false, "abcd", 72},
		{"flags of version 3", entry(0x4003, "\x60\x00abc\x00"), false, "abc", 72},
		{"flags that git does not know", entry(0x4003, "\x80\x00abc\x00"), false, "", 0},
		{"without room for a name", entry(3, "a"), false, "", 0},
		{"a part of the name before", entry(6, "\x02xy\x00\x00"), true, "pastxy", 66},
		{"all of it", entry(2, "\x00xy"), true, "pastry", 64},
		{"more than it has", entry(2, "\x07xy\x00"), true, "", 0},
		{"no number", entry(2, "\x80\x80\x80\x80\x80"), true, "", 0},
	} {
		name := []byte("pastry")
		size, ok := looseEntry(tt.data, 0, 20, tt.prefixed, &name)
		if ok != (tt.size > 0) || ok && (size != tt.size || string(name) != tt.name) {
			t.Errorf("%s: %q, %d, %v", tt.what, name, size, ok)
		}
	}
}

// TestReadable: what git could take for an index with object names of that length.
func TestReadable(t *testing.T) {
	changed := func(at int, to byte) []byte {
		b := indexOf(20, "", "a", "b")
		b[at] = to
		return b
	}
	for _, tt := range []struct {
		what  string
		data  []byte
		want  bool
		names int
	}{
		{"two names", indexOf(20, "", "a", "b"), true, 2},
		{"without any", indexOf(20, ""), false, 0},
		{"tables that git knows", indexOf(20, table("TREE", 1)+table("link")+table("sdir"), "a"), true, 1},
		{"a table that git has to know", indexOf(20, table("zzzz", 1), "a"), false, 0},
		{"a table between those of git", indexOf(20, table("abcd")+table("TREE"), "a"), false, 0},
		{"what is no table", indexOf(20, "TREE\xff\xff\xff\xff", "a"), false, 0},
		{"less than a table", indexOf(20, "TREE\x00", "a"), true, 1},
		{"entries that may be anywhere", indexOf(20, table("EOIE", 1, 0, 0, 0, 0, 0)), true, 0},
		{"an entry that goes on behind the end", indexOf(20, "", "a", "bcdefghijkl")[:12+64+70], false, 2},
		{"another word at its beginning", changed(0, 'X'), false, 0},
		{"version 1", changed(7, 1), false, 0},
		{"version 5", changed(7, 5), false, 0},
		{"nothing", nil, false, 0},
		{"a beginning only", []byte("DIRC\x00\x00\x00\x02\x00\x00\x00\x00"), false, 0},
		{"no entry where one is said to be", changed(11, 9), false, 0},
	} {
		names := 0
		if got := readable(tt.data, 20, func([]byte) { names++ }); got != tt.want || names != tt.names {
			t.Errorf("%s: %v, %d names", tt.what, got, names)
		}
	}
}

func TestCheckable(t *testing.T) {
	for name, want := range map[string]bool{
		"a": true, "a/b": true, "a/": true, "...": true, ".gitx": true, ".gi": true, "gitty": true, "G": true, "\u00e9": true, "git~2": true,
		"":  true, // of a split index
		"/": false, "/a": false, "a//b": false, "a//": false, ".": false, "a/.": false, "../a": false, "a/..": false,
		".git": false, ".GIT/x": false, "a/.git": false, "git~1": false, "a/GIT~1/x": false, "\u200c.git": false, ".git ./x": false,
	} {
		if got := checkable([]byte(name)); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}

func TestHashSize(t *testing.T) {
	for config, want := range map[string]int{
		"": 20, "[extensions]\n\tobjectformat = sha256\n": 32, "[Extensions]\n\tObjectFormat = sha256\n": 32,
		"[extensions]\n\tobjectformat = sha1\n": 20, "[extensions]\n\tobjectformat = sha256\n\tobjectformat = sha1\n": 20,
		"[extensions \"x\"]\n\tobjectformat = sha256\n": 20, "[core]\n\tobjectformat = sha256\n": 20, "[extensions]\n\tother = sha256\n": 20,
		"[extensions]\n\tobjectformat = sha256\n[": 20,
	} {
		if got := hashSize([]byte(config)); got != want {
			t.Errorf("%q: %d", config, got)
		}
	}
}

func TestNamesOfIndexes(t *testing.T) {
	for name, want := range map[string]bool{"index": true, "sharedindex.0123": true, "index.lock": false, "sharedindex": false, "xindex": false} {
		if isIndex([]byte(name)) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
	if got := short(make([]byte, 200)); len(got) != 200 {
		t.Errorf("a name of 200 bytes became one of %d", len(got))
	}
	if got := short([]byte(strings.Repeat("x", 201))); got != strings.Repeat("x", 200)+"…" {
		t.Errorf("a long name became %q", got)
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
