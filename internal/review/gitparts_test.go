//go:build linux

package review

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/boundary/workspace"
)

// TestWhatBelongsToAHistory: files of its classes and the directories that they are in;
// an object that was rewritten does not, and is never applied.
func TestWhatBelongsToAHistory(t *testing.T) {
	object := "objects/ab/" + strings.Repeat("c", 38)
	dir := func(kind Kind) Change { return Change{Kind: kind, Type: Dir} }
	file := func(kind Kind) Change { return *gitFile(kind, "") }
	for i, row := range []struct {
		rel            string
		c              Change
		belongs, never bool
	}{
		{"refs/heads/x.lock", file(Added), true, false},
		{"refs/heads/x.lock", Change{Kind: Added, Type: Link}, true, false},
		{"gc.log", Change{Kind: TypeChanged, Type: Dir, OldType: File}, true, false},
		{"refs/heads", dir(Added), true, false},
		{"hooks", dir(Added), false, false},
		{"objects", dir(Added), true, false},
		{"objects/ab", dir(Added), true, false},
		{"objects/ab/cd", dir(Added), false, false},
		{"object/ab", dir(Added), false, false},
		{"refs/heads", Change{Kind: TypeChanged, Type: Dir, OldType: File}, false, false},
		{"objects/ab", Change{Kind: TypeChanged, Type: Dir, OldType: File}, false, false},
		{"refs/heads/x", Change{Kind: TypeChanged, Type: File, OldType: Link}, false, false},
		{"refs/heads/x", Change{Kind: TypeChanged, Type: File, OldType: File}, false, false},
		{"refs/heads/x", file(Modified), true, false},
		{"refs/heads/x", file(Deleted), true, false},
		{"refs/heads/x", Change{Kind: Added, Type: Link}, false, false},
		{"config", file(Modified), false, false},
		{object, file(Added), true, false},
		{object, file(Deleted), true, false},
		{object, file(ModeChanged), true, false},
		{object, file(Modified), false, true},
		{"objects/pack/pack-1.pack", file(Modified), false, true},
		{"objects/pack/pack-1.idx", file(Modified), false, true},
		{"HEAD", file(Modified), true, false},
	} {
		if got := row.c.belongs(row.rel); got != row.belongs || (row.c.Cannot != "") != row.never || row.c.Flagged() != row.never {
			t.Errorf("row %d: %s belongs: %t, %+v", i, row.rel, got, row.c)
		}
	}
	for path, want := range map[string]string{".git/a": ".git|a", "sub/.git/a/b": "sub/.git|a/b", "x.git/a": "", "x.git/.git/a": "x.git/.git|a", ".git": "", "a": "", ".git/.git/a": ".git|.git/a", "x.git/a/.git/b": "x.git/a/.git|b"} {
		repo, rel, ok := repositoryOf(path)
		if got := repo + "|" + rel; ok != (want != "") || ok && got != want {
			t.Errorf("%s: %q", path, got)
		}
	}
	for rel, want := range map[string]bool{object: true, "objects/pack/pack-1.pack": true, "objects/pack/pack-1.idx": true, "refs/heads/x": false, "HEAD": false} {
		if keeps(rel) != want {
			t.Errorf("git alone decides when %s goes: %t", rel, !want)
		}
	}
}

func TestClassesOfGitsFiles(t *testing.T) {
	for rel, want := range map[string]gitClass{
		"objects/pack/pack-1.idx": gitPackIndex, "objects/pack/pack-1.pack": gitPack, "objects/pack/pack-1.keep": gitPack,
		"objects/pack/pack-1.bitmap": gitNever, "objects/pack/tmp_pack_1": gitNever, "objects/pack/1.pack": gitNever,
		"objects/info/packs": gitNever, "objects/info/alternates": gitOther, "objects/aa/tmp_obj_1": gitNever,
		"objects/aa/" + strings.Repeat("b", 38): gitObject, "objects/aab/" + strings.Repeat("b", 37): gitOther,
		"refs/heads/x": gitRef, "refs/heads/x.lock": gitNever, "logs/HEAD": gitLog, "sharedindex.1": gitIndex, "other/x": gitOther,
		"objects/info/commit-graph": gitNever, "objects/info/commit-graphs/x": gitNever, "objects/other/packs": gitOther, "objects/pack/pack-1.rev": gitPack, "objects/pack/pack-1.promisor": gitPack, "objects/pack/pack-1": gitNever, "objects": gitOther,
		"objects/" + idOf("a"): gitOther, "HEAD": gitHead, "gc.pid": gitNever, "logs": gitLog, "refs": gitRef, "sub/index": gitOther,
	} {
		if got := classify(rel); got != want {
			t.Errorf("%s: class %v, want %v", rel, got, want)
		}
	}
}

// TestPartsOfAHistory: its parts are in the order in which they are applied; what is
// not carried over is named, twenty at most, and alone makes no history.
func TestPartsOfAHistory(t *testing.T) {
	f := newField(t, Copy).upper(".git/HEAD=ref: refs/heads/main\n")
	s := f.collect()
	c := &collector{ctx: t.Context(), t: s.trees, mode: Copy, lim: defaultLimits(), rules: &s.Source.Rules, root: f.ws}
	object := objects(idOf("a"))[0]
	goneObject := gitFile(Deleted, strings.TrimPrefix(string(objects(idOf("b"))[0].Path), ".git/"))
	sized := func(c *Change, n int64) *Change { c.Size = n; return c }
	list := []*Change{
		gitFile(Modified, "HEAD"), sized(gitFile(Modified, "refs/heads/main"), 2), sized(object, 3), gitFile(Deleted, "refs/heads/gone"), goneObject, gitFile(Added, "gc.log"), gitFile(ModeChanged, "packed-refs"),
		{Kind: Added, Type: FIFO, Path: ".git/x.lock"}, {Kind: Added, Type: Dir, Path: ".git/refs/heads/d"}, {Kind: Deleted, OldType: Dir, Path: ".git/refs/heads/e"},
		gitFile(Modified, "config"), {Kind: Added, Type: File, Path: "a"}, {Kind: Added, Type: File, Path: "sub/.git/gc.log"},
	}
	kept := c.histories(list)
	var paths, parts []string
	var h *Change
	for _, k := range kept {
		paths = append(paths, string(k.Path))
		if k.Kind == History {
			h = k
		}
	}
	want(t, paths, ".git", ".git/config", "a")
	if h == nil {
		t.Fatal("there is no history")
	}
	for _, p := range h.parts {
		parts = append(parts, string(p.Path))
	}
	want(t, parts, string(object.Path), ".git/refs/heads/main", ".git/refs/heads/gone", ".git/HEAD")
	want(t, h.History.Left, "deleted "+strings.TrimPrefix(string(goneObject.Path), ".git/"), "added gc.log", "mode packed-refs", "added x.lock")
	if h.Size != 5 {
		t.Errorf("%d bytes are new", h.Size)
	}
	info := &HistoryInfo{}
	for range maxLeft + 1 {
		info.noteLeft(&Change{Kind: Added, Type: File}, "x")
	}
	if len(info.Left) != maxLeft {
		t.Errorf("%d are named", len(info.Left))
	}
}

// TestFlagsOfAHistory: it has the flags of its parts, except those of everything in a
// repository, each once, and not too many.
func TestFlagsOfAHistory(t *testing.T) {
	all, own := Flag{"git", "it belongs to a repository of git"}, Flag{"git", "it replaces an object"}
	h := &Change{Flags: []Flag{{"x", "it has it"}}, parts: []*Change{
		{Flags: []Flag{all, {"hooks", "1"}, {"x", "it has it"}}, indexed: []Flag{own}}, {Flags: []Flag{all, {"hooks", "1"}}}, {Flags: []Flag{own}, indexed: []Flag{{"y", "2"}}},
	}}
	h.showParts()
	if !slices.Equal(h.Flags, []Flag{{"x", "it has it"}, {"hooks", "1"}, own, {"y", "2"}}) {
		t.Errorf("%+v", h.Flags)
	}
	for _, more := range []int{0, 2} {
		h := &Change{}
		for i := range maxHistoryFlags + more {
			h.parts = append(h.parts, &Change{Flags: []Flag{{"x", fmt.Sprint(i)}}})
		}
		h.showParts()
		last := h.Flags[len(h.Flags)-1]
		if told := last == (Flag{"git", "2 more of its files make git show or do something"}); told != (more > 0) || len(h.Flags) != maxHistoryFlags+min(more, 1) {
			t.Errorf("with %d more: %d flags, the last is %+v", more, len(h.Flags), last)
		}
	}
}

// TestFilesThatSteerGit: files of an operation under way and of what git shows are
// judged in a repository, whatever its name, and nowhere else.
func TestFilesThatSteerGit(t *testing.T) {
	f := newField(t, Copy)
	evil, plain := "exec evil\n", "pick 0123456 x\n"
	f.upper(".git/rebase-merge/git-rebase-todo="+evil, "bare/rebase-merge/git-rebase-todo="+evil, ".git/sub/rebase-merge/git-rebase-todo="+evil, ".git/rebase-merge/done="+plain, ".git/closed/",
		".git/packed-refs=# pack-refs with: peeled\n"+idOf("a")+" refs/replace/"+idOf("b")+"\n", "plain/packed-refs="+idOf("a")+" refs/heads/x\n", ".git/refs/replace/x="+idOf("a")+"\n")
	s := f.collect()
	c := &collector{ctx: t.Context(), t: s.trees, mode: Copy, lim: defaultLimits(), rules: &s.Source.Rules}
	git := []Flag{{"git", "it belongs to a repository of git"}}
	for _, row := range []struct {
		path, repo string
		flags      []Flag
		typ        Type
		refused    bool
	}{
		{".git/rebase-merge/git-rebase-todo", ".git", nil, File, true},
		{".git/rebase-merge/git-rebase-todo", ".git", nil, Link, false},
		{".git/sub/rebase-merge/git-rebase-todo", ".git", nil, File, true},
		{"bare/rebase-merge/git-rebase-todo", "", nil, File, false},
		{"bare/rebase-merge/git-rebase-todo", "", []Flag{{"other", "x"}}, File, false},
		{"bare/rebase-merge/git-rebase-todo", "", git, File, true},
		{".git/rebase-merge/none", ".git", nil, File, false},
		{".git/rebase-merge/git-rebase-todo.gone", ".git", nil, File, false},
	} {
		ch := &Change{Path: workspace.Name(row.path), Type: row.typ, Flags: slices.Clone(row.flags)}
		if c.gitState(ch, row.repo); (ch.Cannot != "") != row.refused || len(ch.Flags) != len(row.flags)+map[bool]int{true: 1}[row.refused] {
			t.Errorf("%s in %q: %q, %+v", row.path, row.repo, ch.Cannot, ch.Flags)
		}
	}
	for _, row := range []struct {
		path, rel string
		typ       Type
		want      string
	}{
		{".git/packed-refs", "packed-refs", File, "packed-refs: "},
		{".git/packed-refs", "packed-refs", Link, ""},
		{"plain/packed-refs", "packed-refs", File, ""},
		{"gone/packed-refs", "packed-refs", File, "it cannot be read, or is larger than git's are"},
		{".git/refs/replace/x", "refs/replace/x", File, "another object in the place of the one that it names"},
		{".git/refs/replace/x", "refs/replace/x", None, ""},
		{".git/refs/heads/x", "refs/heads/x", File, ""},
	} {
		ch := &Change{Path: workspace.Name(row.path), Type: row.typ}
		c.gitView(ch, row.rel)
		if len(ch.indexed) != map[bool]int{true: 1}[row.want != ""] || row.want != "" && !strings.Contains(ch.indexed[0].Reason, row.want) {
			t.Errorf("%s: %+v", row.path, ch.indexed)
		}
	}
}
