//go:build linux

package review

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary/workspace"
)

// packer compresses as git does; there is one for all, because each costs much memory.
var packer, _ = zlib.NewWriterLevel(nil, zlib.NoCompression)

func packed1(s string) []byte {
	var b bytes.Buffer
	packer.Reset(&b)
	packer.Write([]byte(s))
	packer.Close()
	return b.Bytes()
}

// loose writes a loose object of the repository .git below root and returns its name.
func loose(t *testing.T, root, kind, body string) string {
	t.Helper()
	text := fmt.Sprintf("%s %d\x00%s", kind, len(body), body)
	sum := sha1.Sum([]byte(text))
	id := hex.EncodeToString(sum[:])
	dir := root + "/.git/objects/" + id[:2]
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(dir+"/"+id[2:], packed1(text), 0o644)); err != nil {
		t.Fatal(err)
	}
	return id
}

func commitOf(t *testing.T, root, subject string, parents ...string) string {
	t.Helper()
	head := "tree " + strings.Repeat("0", 40) + "\n"
	for _, p := range parents {
		head += "parent " + p + "\n"
	}
	return loose(t, root, "commit", head+"author A <a@example.org> 1 +0000\ncommitter B <b@example.org> 1 +0000\n\n"+subject+"\n\nmore\n")
}

// objects are the changes by which loose objects are new.
func objects(ids ...string) (all []*Change) {
	for _, id := range ids {
		all = append(all, &Change{Kind: Added, Type: File, Path: workspace.Name(".git/objects/" + id[:2] + "/" + id[2:])})
	}
	return all
}

func gitFile(kind Kind, rel string) *Change {
	c := &Change{Kind: kind, Type: File, OldType: File, Path: workspace.Name(".git/" + rel)}
	switch kind {
	case Added:
		c.OldType = None
	case Deleted:
		c.Type = None
	}
	return c
}

func idOf(c string) string { return strings.Repeat(c, 40) }

// TestHistoryInWords: a history is described by the most that it holds.
func TestHistoryInWords(t *testing.T) {
	const packs = "it holds packs, which are not looked into: run git fsck --full after it is applied"
	for _, row := range []struct {
		name     string
		make     func(t *testing.T, up string) []*Change
		want     string
		detached bool
		packs    bool
	}{
		{"a commit", func(t *testing.T, up string) []*Change {
			id := commitOf(t, up, "one", idOf("1"))
			os.WriteFile(up+"/.git/refs/heads/main", []byte(id+"\n"), 0o644)
			return append(objects(id), gitFile(Modified, "refs/heads/main"))
		}, `1 commit on branch "main"`, false, false},
		{"a commit where HEAD names no branch", func(t *testing.T, up string) []*Change {
			id := commitOf(t, up, "one")
			os.WriteFile(up+"/.git/HEAD", []byte(id+"\n"), 0o644)
			return append(objects(id), gitFile(Modified, "HEAD"))
		}, "1 commit", true, false},
		{"two commits", func(t *testing.T, up string) []*Change {
			one := commitOf(t, up, "one")
			two := commitOf(t, up, "two", one)
			os.WriteFile(up+"/.git/refs/heads/main", []byte(two+"\n"), 0o644)
			return append(objects(one, two), gitFile(Modified, "refs/heads/main"))
		}, `2 commits on branch "main"`, false, false},
		{"two commits upon one of a pack", func(t *testing.T, up string) []*Change {
			one := commitOf(t, up, "one", idOf("1"))
			two := commitOf(t, up, "two", one)
			os.WriteFile(up+"/.git/refs/heads/main", []byte(two+"\n"), 0o644)
			return append(objects(one, two), gitFile(Modified, "refs/heads/main"), gitFile(Added, "objects/pack/pack-1.pack"))
		}, `more than 2 commits on branch "main"`, false, true},
		{"one commit upon one of a pack", func(t *testing.T, up string) []*Change {
			one := commitOf(t, up, "one", idOf("1"))
			os.WriteFile(up+"/.git/refs/heads/main", []byte(one+"\n"), 0o644)
			return append(objects(one), gitFile(Modified, "refs/heads/main"), gitFile(Added, "objects/pack/pack-1.pack"))
		}, `1 commit on branch "main"`, false, true},
		{"an object", func(t *testing.T, up string) []*Change { return objects(loose(t, up, "blob", "x")) }, `new objects and no commit on branch "main"`, false, false},
		{"a pack", func(*testing.T, string) []*Change {
			return []*Change{gitFile(Added, "objects/pack/pack-1.idx"), gitFile(Added, "objects/pack/pack-1.pack")}
		}, `new objects and no commit on branch "main"`, false, true},
		{"what goes with a pack", func(*testing.T, string) []*Change { return []*Change{gitFile(Added, "objects/pack/pack-1.keep")} }, `the state of git's work on branch "main"`, false, false},
		{"a branch", func(t *testing.T, up string) []*Change {
			os.WriteFile(up+"/.git/refs/heads/side", []byte(idOf("1")+"\n"), 0o644)
			return []*Change{gitFile(Added, "refs/heads/side")}
		}, `other branches or tags on branch "main"`, false, false},
		{"a state", func(*testing.T, string) []*Change {
			return []*Change{gitFile(Added, "MERGE_MSG"), gitFile(Modified, "index")}
		}, `the state of git's work on branch "main"`, false, false},
		{"an index", func(*testing.T, string) []*Change {
			return []*Change{gitFile(Modified, "index"), gitFile(Added, "sharedindex.1")}
		}, `the index alone on branch "main"`, false, false},
	} {
		f := newField(t, Copy)
		up := f.dir + "/upper"
		f.upper(".git/refs/heads/", ".git/HEAD=ref: refs/heads/main\n")
		s := f.collect()
		c := &collector{ctx: t.Context(), t: s.trees, mode: Copy, lim: defaultLimits()}
		h := &Change{Path: ".git", Kind: History, History: &HistoryInfo{}, parts: row.make(t, up)}
		c.describe(h)
		if got, want := h.Flags[0].Reason, "git on the host takes it for the repository's history: "+row.want; got != want {
			t.Errorf("%s: %s", row.name, got)
		}
		if (h.History.Branch == "") != row.detached || slices.Contains(h.Notes, packs) != row.packs {
			t.Errorf("%s: branch %q, notes %q", row.name, h.History.Branch, h.Notes)
		}
	}
}

// TestRefsThatMoved: a ref is listed with its old and new object, a ref that names the
// same object did not move, and later changes by others are not attributed to the run.
func TestRefsThatMoved(t *testing.T) {
	a, b := idOf("a"), idOf("b")
	f := newField(t, Copy).lower(".git/refs/heads/moved="+a+"\n", ".git/refs/heads/same="+a+"\n", ".git/refs/heads/gone="+a+"\n", ".git/refs/heads/new="+b+"\n",
		".git/packed-refs=# pack-refs with: peeled\n"+a+" refs/tags/one\n^"+b+"\n"+a+" refs/tags/two\n"+a+"\n")
	f.upper(".git/refs/heads/moved="+b+"\n", ".git/refs/heads/same="+a+"   \n", ".git/refs/heads/new="+a+"\n", ".git/refs/heads/gone="+b+"\n", ".git/refs/heads/none=no object\n",
		".git/packed-refs=# pack-refs with: peeled\n"+a+" refs/tags/one\n"+b+" refs/tags/two\n"+b+" refs/tags/three\n", ".git/HEAD="+b+"\n")
	s := f.collect()
	read := func(mode Mode) *repoReader {
		return &repoReader{c: &collector{ctx: t.Context(), t: s.trees, mode: mode}, repo: ".git", info: &HistoryInfo{}}
	}
	r := read(Copy)
	r.refs([]*Change{gitFile(Modified, "refs/heads/moved"), gitFile(Modified, "refs/heads/same"), gitFile(Deleted, "refs/heads/gone"), gitFile(Added, "refs/heads/new"), gitFile(Added, "refs/heads/none"),
		gitFile(Modified, "packed-refs"), gitFile(Modified, "ORIG_HEAD"), gitFile(Modified, "logs/refs/heads/moved")})
	if want := []RefChange{{"refs/heads/gone", a, ""}, {"refs/heads/moved", a, b}, {"refs/heads/new", "", a}, {"refs/tags/three", "", b}, {"refs/tags/two", a, b}}; !slices.Equal(r.info.Refs, want) {
		t.Errorf("%+v", r.info.Refs)
	}
	slices.Sort(r.tips)
	if !slices.Equal(r.tips, []string{a, b, b, b, b}) || !r.olds[a] || r.olds[b] || r.info.Branch != "" || r.info.More {
		t.Errorf("tips %q, olds %v, branch %q, more %t", r.tips, r.olds, r.info.Branch, r.info.More)
	}
	for head, branch := range map[string]string{"ref: refs/heads/a/b\n": "a/b", "ref: refs/other\n": "", "none": ""} {
		f.upper(".git/HEAD=" + head)
		r := read(Copy)
		if r.refs(nil); r.info.Branch != branch || len(r.tips) > 0 {
			t.Errorf("%q: branch %q, tips %q", head, r.info.Branch, r.tips)
		}
	}
	var many strings.Builder
	for i := range MaxRefs + 1 {
		fmt.Fprintf(&many, "%s refs/tags/%d\n", b, i)
		if i != MaxRefs-1 && i != MaxRefs {
			continue
		}
		f.upper(".git/packed-refs=" + many.String())
		r := read(Copy)
		if r.refs([]*Change{gitFile(Modified, "packed-refs")}); len(r.info.Refs) != MaxRefs || r.info.More != (i == MaxRefs) {
			t.Errorf("of %d refs %d are listed, more: %t", i+1, len(r.info.Refs), r.info.More)
		}
	}
	// A file that a copy has no more is gone; what an overlay has not is as it was.
	f.lower(".git/x=old\n", "l/HEAD=old\n").upper("l->.git", ".git/y=new\n", ".git/d/")
	for _, row := range []struct {
		repo, rel  string
		mode       Mode
		now        bool
		want, what string
	}{
		{".git", "x", Overlay, true, "old\n", "not changed"}, {".git", "x", Copy, true, "", "gone"}, {".git", "x", Copy, false, "old\n", "as it was"},
		{".git", "y", Overlay, true, "new\n", "new"}, {".git", "y", Overlay, false, "", "as it was not"}, {"l", "HEAD", Overlay, true, "", "behind a link"}, {"l", "HEAD", Overlay, false, "old\n", "behind what is a link now"},
		{".git", "d", Copy, true, "", "a directory"},
	} {
		r := read(row.mode)
		if r.repo = row.repo; r.file(row.rel, row.now) != row.want {
			t.Errorf("%s: %q", row.what, r.file(row.rel, row.now))
		}
	}
	long := a + strings.Repeat(" ", maxRef)
	if tip(long[:maxRef]) != a || tip(long) != "" || tip("x"+a) != "" {
		t.Error("the object of a ref")
	}
}

// TestNewCommits: commits are followed from where refs are to where they were, through
// tags and all parents, once each, and what cannot be read is reported.
func TestNewCommits(t *testing.T) {
	f := newFieldIn(t, Copy, inMemory(t))
	up := f.dir + "/upper"
	s := f.collect()
	base := commitOf(t, up, "base")
	left, right := commitOf(t, up, "left", base), commitOf(t, up, "right", base)
	merge := commitOf(t, up, "merge", left, right)
	tag := loose(t, up, "tag", "object "+left+"\ntype commit\n")
	odd := loose(t, up, "tag", "type commit\nobject "+left+"\n")
	blob := loose(t, up, "blob", "object "+left+"\n")
	gone := idOf("f")
	all := []string{base, left, right, merge, tag, odd, blob, gone}
	for _, row := range []struct {
		name  string
		tips  []string
		olds  []string
		known []string // objects that are not new
		packs int
		want  string
		more  bool
	}{
		{"a merge", []string{merge}, nil, nil, 0, "merge left right base", false},
		{"a merge, to where another branch was", []string{merge}, []string{left}, nil, 0, "merge right base", false},
		{"a branch that did not move", []string{merge}, []string{merge}, nil, 0, "", false},
		{"a merge of old ones", []string{merge}, nil, []string{left, right}, 0, "merge", false},
		{"a merge of what may be in a pack", []string{merge}, nil, []string{left}, 1, "merge right base", true},
		{"a tag", []string{tag}, nil, nil, 0, "left base", false},
		{"a tag of nothing", []string{odd}, nil, nil, 0, "", false},
		{"no commit", []string{blob, ""}, nil, nil, 0, "", false},
		{"an object that is not there", []string{gone, base}, nil, nil, 0, "base", true},
		{"all new, and a pack", []string{base}, nil, nil, 1, "base", false},
	} {
		r := repoReader{c: &collector{ctx: t.Context(), t: s.trees, mode: Copy}, repo: ".git", info: &HistoryInfo{Packs: row.packs}, fresh: map[string]bool{}, olds: map[string]bool{}, tips: row.tips}
		for _, id := range all {
			r.fresh[id] = !slices.Contains(row.known, id)
		}
		for _, id := range row.olds {
			r.olds[id] = true
		}
		r.commits()
		var got []string
		for _, c := range r.info.Commits {
			got = append(got, c.Subject)
		}
		if strings.Join(got, " ") != row.want || r.info.More != row.more {
			t.Errorf("%s: %q, more: %t", row.name, got, r.info.More)
		}
	}
	last := ""
	r := repoReader{c: &collector{ctx: t.Context(), t: s.trees}, repo: ".git", fresh: map[string]bool{}}
	for i := range MaxCommits + 1 {
		last = commitOf(t, up, fmt.Sprint(i), last)
		r.fresh[last] = true
		if i < MaxCommits-1 {
			continue
		}
		r.info, r.tips = &HistoryInfo{}, []string{last}
		if r.commits(); len(r.info.Commits) != MaxCommits || r.info.More != (i == MaxCommits) {
			t.Errorf("of %d commits %d are listed, more: %t", i+1, len(r.info.Commits), r.info.More)
		}
	}
}

// TestCommitThatIsRead: parents that are objects, the author without the time, and the
// first line, each no longer than is worth showing.
func TestCommitThatIsRead(t *testing.T) {
	a, b := idOf("a"), strings.Repeat("b", 64)
	c, parents := parseCommit("id", []byte("tree x\nparent "+a+"\nparent no\nparent "+b+"\nauthor A B <a@b> 1 +0000\ncommitter C <c> 1 +0000\n\nparent "+a+"\nmore"))
	if want := (Commit{"id", "A B <a@b>", "parent " + a}); c != want || !slices.Equal(parents, []string{a, b}) {
		t.Errorf("%+v, %q", c, parents)
	}
	c, parents = parseCommit("id", []byte(strings.Repeat("parent "+a+"\n", 65)+"\n"+strings.Repeat("x", 199)+"\u00e9"))
	if len(parents) != 64 || c.Subject != strings.Repeat("x", 199) || c.Author != "" {
		t.Errorf("%d parents, %q", len(parents), c.Subject)
	}
	if short(strings.Repeat("x", 200)) != strings.Repeat("x", 200) {
		t.Error("200 bytes were cut")
	}
	for name, want := range map[string]bool{a: true, b: true, strings.Repeat("0", 40): true, strings.Repeat("9", 40): true, idOf("g"): false, idOf("A"): false, a + "a": false, a[1:]: false, "": false,
		idOf("/"): false, idOf(":"): false, idOf("`"): false} {
		if (objectID(name) == name && name != "") != want {
			t.Errorf("%q", name)
		}
	}
}

// TestLooseObjects: an object is what its name says only if it can be read to its end,
// has the size that it says, and nothing after that.
func TestLooseObjects(t *testing.T) {
	one := func(text string) string { sum := sha1.Sum([]byte(text)); return hex.EncodeToString(sum[:]) }
	two := func(text string) string { sum := sha256.Sum256([]byte(text)); return hex.EncodeToString(sum[:]) }
	const good = "blob 4\x00good"
	large := fmt.Sprintf("blob %d\x00", 1<<16) + strings.Repeat("x", 1<<16)
	for i, row := range []struct {
		b    []byte
		id   string
		want string
	}{
		{packed1(good), one(good), ""},
		{packed1(good), two(good), ""},
		{packed1(good), one("blob 3\x00goo"), "does not match its name"},
		{packed1(good), two("blob 3\x00goo"), "does not match its name"},
		{packed1("blob 3\x00good"), one("blob 3\x00good"), "does not match its name"},
		{packed1("blob 5\x00good"), one("blob 5\x00good"), "does not match its name"},
		{packed1("blob good"), idOf("a"), "no header"},
		{packed1("blob\x00good"), idOf("a"), "header is not valid"},
		{packed1("blob x\x00good"), idOf("a"), "header is not valid"},
		{packed1("blob -1\x00good"), idOf("a"), "header is not valid"},
		{packed1("blob 0\x00"), one("blob 0\x00"), ""},
		{packed1("blob 2147483649\x00good"), idOf("a"), "too large"},
		{packed1("blob 2147483648\x00good"), idOf("a"), "does not match its name"},
		{[]byte("good"), idOf("a"), "reading a git object"},
		{packed1(large)[:1<<10], one(large), "reading a git object"},
		{packed1(large), one(large), ""},
		{nil, idOf("a"), "reading a git object"},
	} {
		name := t.TempDir() + "/o"
		if err := os.WriteFile(name, row.b, 0o644); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		err = checkObject(f, row.id)
		f.Close()
		if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
			t.Errorf("row %d: %v", i, err)
		}
	}
}

// TestTablesThatCannotBeRead: a table that the run put on the list, and that git would
// miss, is reported.
func TestTablesThatCannotBeRead(t *testing.T) {
	f := newField(t, Copy).upper(".git/reftable/tables.list=gone.ref\n")
	s := f.collect()
	ch := &Change{Path: ".git/reftable/tables.list", Type: File}
	(&collector{ctx: t.Context(), t: s.trees, mode: Copy}).gitView(ch, "reftable/tables.list")
	if len(ch.indexed) != 1 || !strings.Contains(ch.indexed[0].Reason, `"gone.ref" cannot be read`) {
		t.Errorf("%+v", ch.indexed)
	}
}

// TestIndexOfAnyName: a file named as git's index is judged in a repository of any name,
// one that cannot be read is not applied, and an old one is found where it was kept.
func TestIndexOfAnyName(t *testing.T) {
	f := newField(t, Copy).lower(".git/index=old", "bare/only=workspace", ".git/made=by apply").upper(".git/other=x")
	f.make(f.dir+"/base", ".git/index=kept", ".git/d/")
	s := f.collect()
	s.trees.gone = map[string]bool{".git/made": true}
	c := &collector{ctx: t.Context(), t: s.trees, mode: Copy, lim: defaultLimits(), rules: &s.Source.Rules, root: f.ws}
	git := []Flag{{"git", "it belongs to a repository of git"}}
	for _, row := range []struct {
		path, repo string
		typ        Type
		flags      []Flag
		want       bool
	}{
		{".git/index", ".git", File, nil, true}, // it is not in what the run left
		{".git/index", ".git", None, nil, false},
		{".git/sharedindex.1", ".git", File, nil, true},
		{".git/indexes", ".git", File, nil, false},
		{"bare/index", "", File, nil, false},
		{"bare/index", "", File, []Flag{{"other", "x"}}, false},
		{"bare/index", "", File, git, true},
	} {
		ch := &Change{Path: workspace.Name(row.path), Type: row.typ, Flags: slices.Clone(row.flags)}
		if got := c.checkIndex(ch, row.repo); got != row.want || (ch.Cannot != "") != got || len(ch.Flags) != len(row.flags)+map[bool]int{true: 1}[got] {
			t.Errorf("%s in %q: %t, %+v", row.path, row.repo, got, ch)
		}
	}
	for path, want := range map[string]string{".git/index": "kept", "bare/only": "workspace", ".git/made": "", ".git/d": "", "none": ""} {
		if got := string(c.oldIndex(path)); got != want {
			t.Errorf("%s was %q", path, got)
		}
	}
	s.trees.close()
	c.t = &trees{upper: -1, base: -1, tree: unix.AT_FDCWD}
	if got := c.oldIndex(f.ws[1:]); got != nil {
		t.Errorf("a directory: %q", got)
	}
}
