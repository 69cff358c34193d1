//go:build linux

package workspace

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// cacheinfo puts a name into the index of a repository, and nothing into its tree.
func cacheinfo(t *testing.T, dir, content string, names ...string) {
	t.Helper()
	write(t, dir, ".git/blob", content)
	id := strings.TrimSpace(git(t, dir, "hash-object", "-w", ".git/blob"))
	os.Remove(filepath.Join(dir, ".git/blob"))
	for _, n := range names {
		git(t, dir, "update-index", "--add", "--cacheinfo", "100644,"+id+","+n)
	}
}

// An entry of an index with a protected name is listed unless the index had it before,
// or git would write with it what is there.
func TestSettleStaged(t *testing.T) {
	w := tempRoot(t)
	for _, at := range []string{"", "/nested"} {
		write(t, w+at, "CLAUDE.md", "one\n")
		write(t, w+at, ".idea/x", "tracked\n")
		repo(t, w+at)
		write(t, w+at, "CLAUDE.md", "changed before\n")
		write(t, w+at, "GEMINI.md", "not tracked\n")
	}
	cacheinfo(t, w, "was there\n", ".vscode/tasks.json")
	s := scanned(t, w)
	git(t, w, "add", "GEMINI.md")
	git(t, w+"/nested", "add", "CLAUDE.md", "GEMINI.md")
	cacheinfo(t, w, "evil\n", ".envrc", "sub/.vscode/tasks.json", "sub/.vscode/launch.json", "CLAUDE.md", "node_modules/x/.envrc", "src/x", "bare/HEAD", "bare/hooks/pre-commit")
	cacheinfo(t, w+"/nested", "evil\n", ".idea/x", ".ENVRC")
	write(t, w, ".cursorrules", "made inside\n")
	git(t, w, "add", ".cursorrules")
	r := settled(t, s)
	var got []string
	for _, f := range r.Flagged {
		if strings.Contains(f.Reason, "in the git index") {
			got = append(got, string(f.Change)+" "+strings.TrimPrefix(string(f.Path), w+"/"))
		}
	}
	want := []string{"added .cursorrules", "added .envrc", "changed CLAUDE.md", "added bare/hooks", "added nested/.ENVRC", "changed nested/.idea", "added sub/.vscode"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q\n%+v", got, want, r.Flagged)
	}
	if len(r.Quarantined) != 1 || strings.Contains(string(r.Quarantined[0].Path), ".git") {
		t.Errorf("%+v", r.Quarantined)
	}
	if r := settled(t, scanned(t, w)); len(r.Flagged) > 0 {
		t.Errorf("listed again: %+v", r.Flagged)
	}
}

// entryOf is an entry of an index with that mode.
func entryOf(mode uint32, name string) string { return rawEntry(20, mode, 0, 0, name) }

// stagedOf is an index of entries, of files where they are only a name.
func stagedOf(entries ...string) []byte {
	entries = slices.Clone(entries)
	for i, e := range entries {
		if !strings.Contains(e, "\x00") {
			entries[i] = entryOf(0o100644, e)
		}
	}
	return indexWith(2, 20, "", entries...)
}

// Which entries of an index have a listed name, and which part of it is listed.
func TestEachStaged(t *testing.T) {
	rules, err := RulesWith(Changes{Protect: []string{"/only/here"}, Unprotect: []string{"sub/.envrc"}})
	must(t, err)
	none := func(string) []byte { return nil }
	for _, tt := range []struct {
		name, top string
		data      []byte
		want      []string
	}{
		{"files", "", stagedOf(".envrc", "README", "a/b/.envrc", "z/.envrc"), []string{".envrc", "a/b/.envrc", "z/.envrc"}},
		{"what is in a listed directory", "", stagedOf(".vscode/a", ".vscode/b/c", "a/.vscode/x", "b"), []string{".vscode", ".vscode", "a/.vscode"}},
		{"a file beside a directory of nearly its name", "", stagedOf("a.b/.envrc", "a/x", "a/y/.envrc", "ab/.envrc"), []string{"a.b/.envrc", "a/y/.envrc", "ab/.envrc"}},
		{"links and submodules", "", stagedOf(entryOf(0o120000, ".github"), entryOf(0o160000, "a/.vscode"), entryOf(0o160000, "b/.github"), entryOf(0o100644, "c/.github")), []string{".github", "a/.vscode"}},
		{"dependencies", "", stagedOf("a/.editorconfig", "node_modules/x/.editorconfig", "z/.editorconfig"), []string{"a/.editorconfig", "z/.editorconfig"}},
		{"a directory with a HEAD", "", stagedOf("bare/HEAD", "bare/hooks/x", "bare2/hooks/x", "d/HEAD/x", "d/hooks/x"), []string{"bare/hooks"}},
		{"the worktree with a HEAD", "", stagedOf("HEAD", "hooks/x"), []string{"hooks"}},
		{"a HEAD that is a link", "", stagedOf(entryOf(0o120000, "bare/HEAD"), "bare/hooks/x"), nil},
		{"names that git does not write", "", stagedOf("/.envrc", "a//.envrc", "b/"), nil},
		{"what the user took away", "", stagedOf("other/.envrc", "sub/.envrc", "sub/a/.envrc"), []string{"other/.envrc", "sub/a/.envrc"}},
		{"the same in a worktree below", "sub", stagedOf(".envrc", "a/.envrc"), []string{"a/.envrc"}},
		{"a path of the root", "", stagedOf("only/here", "x/only/here"), []string{"only/here"}},
		{"the same in a worktree on its way", "only", stagedOf("here", "only/here"), []string{"here"}},
		{"the same in another worktree", "x", stagedOf("here", "only/here"), nil},
		{"the same in a worktree further below", "x/y", stagedOf("only/here", ".envrc"), []string{".envrc"}},
		{"nothing", "", stagedOf(), nil},
	} {
		var got []string
		err := eachStaged(tt.data, 20, &rules, tt.top, none, func(e staged) { got = append(got, e.at) })
		if err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q, %v", tt.name, got, tt.want, err)
		}
	}
	n := 0
	count := func(staged) { n++ }
	if err := eachStaged(stagedOf(".envrc", "a/.envrc")[:100], 20, &rules, "", none, count); err == nil || n != 0 {
		t.Errorf("an index that git does not write: %d names, %v", n, err)
	}
	if err := eachStaged(stagedOf(".envrc"), 20, &Rules{}, "", none, count); err != nil || n != 0 {
		t.Errorf("without rules: %d names, %v", n, err)
	}
	many := make([]string, maxStaged+5)
	for i := range many {
		many[i] = fmt.Sprintf("%05d/.envrc", i)
	}
	if err := eachStaged(stagedOf(many...), 20, &rules, "", none, count); err != nil || n != len(many) {
		t.Errorf("%d of %d names, %v", n, len(many), err)
	}
}

// For a listed directory, the report says how many of its files are in the index.
func TestSettleCountsStagedFiles(t *testing.T) {
	w := tempRoot(t)
	bareShape(t, w+"/.git")
	write(t, w, ".git/config.worktree", "[core]\n\thooksPath = tools\n")
	write(t, w, "tools/x", "")
	s := scanned(t, w)
	if !slices.Contains(rowPaths(s), "tools") {
		t.Errorf("what config.worktree names is free: %q", rowPaths(s))
	}
	write(t, w, ".git/index", string(stagedOf(".envrc", ".vscode/a", ".vscode/b")))
	got := map[string]int64{}
	for _, f := range settled(t, s).Flagged {
		got[strings.TrimPrefix(string(f.Path), w+"/")] = f.Files
	}
	if want := map[string]int64{".envrc": 0, ".vscode": 2}; !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// bareShape makes what git takes for a repository.
func bareShape(t *testing.T, dir string) {
	t.Helper()
	write(t, dir, "HEAD", "ref: refs/heads/main\n")
	mkdir(t, dir+"/objects")
	mkdir(t, dir+"/refs/heads")
}

// Where the files of an index are: beside .git, or where git says.
func TestWorktree(t *testing.T) {
	w := tempRoot(t)
	write(t, w, "relative/gitdir", "../tree/.git\r\n")
	write(t, w, "absolute/gitdir", "/tree/.git\n")
	write(t, w, "module/config", "[core \"x\"]\n\tworktree = no\n[user]\n\tworktree = no\n[core]\n\tbare = no\n\tworktree = ../../dep\n")
	write(t, w, "bare/config", "[core]\n\tbare = true\n")
	write(t, w, "broken/config", "[core")
	mkdir(t, w+"/none")
	for name, want := range map[string]string{
		"relative": "/r/tree", "absolute": "/tree", "module": "/dep", "bare": "/r/bare", "broken": "/r/broken", "none": "/r/none",
	} {
		fd := openDir(t, w+"/"+name)
		if got := worktree("/r/"+name, fd); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		if got := worktree("/r/"+name+"/.GIT", fd); got != "/r/"+name {
			t.Errorf("below %s: %q", name, got)
		}
	}
}

// A split index replaces entries of another file by ones without a name.
func TestSettleStagedSplit(t *testing.T) {
	for _, version := range []string{"2", "4"} {
		w := tempRoot(t)
		for i := range 200 {
			write(t, w, "f/"+string(rune('a'+i/26))+string(rune('a'+i%26)), "x")
		}
		write(t, w, "CLAUDE.md", "one\n")
		write(t, w, "z/AGENTS.md", "one\n")
		repo(t, w)
		git(t, w, "-c", "index.version="+version, "update-index", "--split-index")
		s := scanned(t, w)
		git(t, w, "-c", "core.splitIndex=true", "rm", "-q", "--cached", "f/ab")
		write(t, w, "f/ac", "y")
		git(t, w, "-c", "core.splitIndex=true", "add", "f/ac")
		if r := settled(t, s); len(r.Flagged) > 0 {
			t.Fatalf("%+v", r.Flagged)
		}
		git(t, w, "-c", "core.splitIndex=true", "update-index", "--add", "--cacheinfo", "100644,"+strings.TrimSpace(git(t, w, "hash-object", "-w", "README"))+",z/AGENTS.md")
		data, _ := os.ReadFile(w + "/.git/index")
		if strings.Contains(string(data), "AGENTS") {
			t.Fatal("the index names it: it is not split")
		}
		if r := settled(t, s); len(r.Flagged) != 1 || string(r.Flagged[0].Path) != w+"/z/AGENTS.md" {
			t.Errorf("version %s: %+v", version, r.Flagged)
		}
	}
}

// A file that the index no longer looks at is named, also where a split index names it
// in its other file.
func TestSettleBlindSplit(t *testing.T) {
	w := tempRoot(t)
	repo(t, w)
	for _, name := range []string{"a", "b", "c"} {
		write(t, w, name, name)
	}
	git(t, w, "add", ".")
	git(t, w, "update-index", "--split-index")
	s := scanned(t, w)
	git(t, w, "update-index", "--assume-unchanged", "b")
	if r := settled(t, s); len(r.Flagged) != 1 || !strings.Contains(r.Flagged[0].Reason, `1 more as assume-unchanged, "b": `) {
		t.Errorf("listed: %+v", r.Flagged)
	}
}

// TestStands: what git would write is there already, as a file or as a link.
func TestStands(t *testing.T) {
	w := tempRoot(t)
	write(t, w, "d/file", "text")
	write(t, w, "d/program", "text")
	chmod(t, w+"/d/program", 0o755)
	link(t, "text", w, "d/link")
	root, err := unix.Open(w, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(root)
	for _, tt := range []struct {
		name, text string
		mode       uint32
		want       bool
	}{
		{"d/file", "text", 0o100644, true},
		{"d/file", "other", 0o100644, false},
		{"d/file", "text", 0o100755, false},
		{"d/program", "text", 0o100755, true},
		{"d/file", "text", 0o120000, false},
		{"d/link", "text", 0o120000, true},
		{"d/link", "other", 0o120000, false},
		{"d/link", "text", 0o100644, false},
		{"d/none", "text", 0o100644, false},
		{"d/none", "", 0o120000, false},
		{"e/file", "text", 0o100644, false},
		{"d", "", 0o160000, false},
	} {
		e := staged{name: tt.name, mode: tt.mode, id: blobID([]byte(tt.text), 20)}
		if got := e.matchesTree(root, 20, func(int64) bool { return true }); got != tt.want {
			t.Errorf("%+v: %v", tt, got)
		}
	}
	e := staged{name: "d/file", mode: 0o100644, id: blobID([]byte("text"), 20)}
	if e.matchesTree(root, 20, func(int64) bool { return false }) {
		t.Error("it was read, although nothing more may be read")
	}
}

// The index of a worktree, and a hostile number of names.
func TestSettleStagedElsewhere(t *testing.T) {
	w := tempRoot(t)
	repo(t, w+"/main")
	git(t, w+"/main", "worktree", "add", "-q", "../tree")
	s := scanned(t, w)
	id := strings.TrimSpace(git(t, w+"/main", "hash-object", "-w", "README"))
	git(t, w+"/tree", "update-index", "--add", "--cacheinfo", "100755,"+id+",a/.envrc")
	var many []string
	for i := range maxStagedRows + 5 {
		many = append(many, "d"+string(rune('a'+i/26))+string(rune('a'+i%26))+"/.envrc")
	}
	os.WriteFile(w+"/main/.git/index", indexOf(20, "", many...), 0o644)
	r := settled(t, s)
	at := slices.IndexFunc(r.Flagged, func(f Flagged) bool { return string(f.Path) == w+"/tree/a/.envrc" })
	if at < 0 || !strings.Contains(r.Flagged[at].Reason, "/main/.git/worktrees/tree/index") {
		t.Errorf("%+v", r.Flagged)
	}
	at = slices.IndexFunc(r.Flagged, func(f Flagged) bool { return string(f.Path) == w+"/main/.git/index" })
	if at < 0 || r.Flagged[at].Files != 5 || len(r.Flagged) != maxStagedRows+2 {
		t.Errorf("%d: %+v", len(r.Flagged), r.Flagged[max(at, 0)])
	}
}

// The second file of a split index may be as large as an index that git is given:
// in a larger one than is read names would be out of sight.
func TestSharedIndexMayBeLarge(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "sharedindex.x", "")
	if err := os.Truncate(dir+"/sharedindex.x", maxIndex+1); err != nil {
		t.Fatal(err)
	}
	d, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if data := NewBudget().sharedAt(int(d.Fd()))("sharedindex.x"); len(data) != maxIndex+1 {
		t.Errorf("%d bytes are read of %d", len(data), maxIndex+1)
	}
}
