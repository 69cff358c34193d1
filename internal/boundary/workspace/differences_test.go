//go:build linux

package workspace

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// differences settles a tree and formats what is listed: kind, path, and what else is
// reported.
func differences(t testing.TB, s *Snapshot) []string {
	t.Helper()
	r, err := s.Settle(context.Background(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, d := range r.Differences {
		line := string(d.Kind) + " " + strings.TrimPrefix(string(d.Path), s.Root+"/")
		if d.From != "" {
			line += " from " + strings.TrimPrefix(string(d.From), s.Root+"/")
		}
		if d.Type != "file" {
			line += " " + d.Type
		}
		if d.OldMode != 0 && d.Kind != KindDeleted {
			line += fmt.Sprintf(" %o>%o", d.OldMode, d.Mode)
		}
		if d.Files > 0 && !strings.HasSuffix(string(d.Path), ".git") { // how many git writes is its own affair
			line += fmt.Sprintf(" (%d)", d.Files)
		}
		if d.Flag != nil {
			line += " !" + string(d.Flag.Change)
		}
		if d.Held != "" {
			line += " held"
		}
		out = append(out, line)
	}
	return out
}

func rename(t testing.TB, w, from, to string) {
	t.Helper()
	if err := os.Rename(filepath.Join(w, from), filepath.Join(w, to)); err != nil {
		t.Fatal(err)
	}
}

func remove(t testing.TB, w string, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := os.RemoveAll(filepath.Join(w, name)); err != nil {
			t.Fatal(err)
		}
	}
}

// changesOfRuns are runs, and what is listed of them afterwards.
var changesOfRuns = []struct {
	name   string
	during func(t *testing.T, w string)
	want   []string
}{
	{"nothing", func(*testing.T, string) {}, nil},
	{"a file edited in place, one replaced, one added, one gone", func(t *testing.T, w string) {
		write(t, w, "src/a.go", "changed\n")
		write(t, w, "src/tmp", "changed\n")
		rename(t, w, "src/tmp", "src/b.go")
		write(t, w, "src/new.go", "")
		remove(t, w, "src/c.go")
	}, []string{"modified src/a.go", "modified src/b.go", "deleted src/c.go", "added src/new.go"}},
	{"an edit whose times were set back", func(t *testing.T, w string) {
		st, err := os.Stat(w + "/src/a.go")
		if err != nil {
			t.Fatal(err)
		}
		write(t, w, "src/a.go", "package b\n")
		if err := os.Chtimes(w+"/src/a.go", st.ModTime(), st.ModTime()); err != nil {
			t.Fatal(err)
		}
	}, []string{"modified src/a.go"}},
	{"a mode", func(t *testing.T, w string) { chmod(t, w+"/src/a.go", 0o600) }, []string{"modified src/a.go 644>600"}},
	{"a file renamed, and one that only looks so", func(t *testing.T, w string) {
		rename(t, w, "src/a.go", "src/z.go")
		remove(t, w, "src/b.go") // its inode is used again
		write(t, w, "src/y.go", "package x\n")
	}, []string{"deleted src/b.go", "added src/y.go", "renamed src/z.go from src/a.go"}},
	{"a file renamed that got another mode", func(t *testing.T, w string) {
		rename(t, w, "src/a.go", "src/z.go")
		chmod(t, w+"/src/z.go", 0o600)
	}, []string{"renamed src/z.go from src/a.go 644>600"}},
	{"a file replaced by one of another mode", func(t *testing.T, w string) {
		write(t, w, "src/tmp", "changed\n")
		chmod(t, w+"/src/tmp", 0o600)
		rename(t, w, "src/tmp", "src/b.go")
	}, []string{"modified src/b.go 644>600"}},
	{"a directory renamed, and a file in it edited", func(t *testing.T, w string) {
		rename(t, w, "src", "lib")
		write(t, w, "lib/a.go", "changed\n")
	}, []string{"renamed lib from src dir", "modified lib/a.go"}},
	{"two directories that changed places", func(t *testing.T, w string) {
		rename(t, w, "src", "tmp")
		rename(t, w, "doc", "src")
		rename(t, w, "tmp", "doc")
	}, []string{"renamed doc from src dir", "renamed src from doc dir"}},
	{"a directory removed, and one made anew", func(t *testing.T, w string) {
		remove(t, w, "src", "doc")
		write(t, w, "doc/one", "")
		write(t, w, "doc/three", "")
	}, []string{"modified doc/one", "added doc/three", "deleted doc/two", "deleted src dir", "deleted src/a.go", "deleted src/b.go", "deleted src/c.go", "deleted src/deep dir", "deleted src/deep/d.go"}},
	{"a file that became a directory, and a link", func(t *testing.T, w string) {
		remove(t, w, "src/a.go", "src/b.go")
		write(t, w, "src/a.go/x", "")
		link(t, "c.go", w, "src/b.go")
	}, []string{"type src/a.go dir", "added src/a.go/x", "type src/b.go link"}},
	{"pipes, empty directories and odd names", func(t *testing.T, w string) {
		if err := unix.Mkfifo(w+"/pipe", 0o600); err != nil {
			t.Fatal(err)
		}
		mkdir(t, w+"/empty")
		write(t, w, "new\nline", "")
		write(t, w, "--apply-all-safe", "")
	}, []string{"added pipe fifo !fifo", "added --apply-all-safe", "added empty dir", "added new\nline"}},
	{"what the host would execute, first", func(t *testing.T, w string) {
		write(t, w, "a", "")
		write(t, w, "x/.vscode/tasks.json", "{}")
		write(t, w, "Makefile", "all:\n")
		link(t, "/etc/passwd", w, "z")
	}, []string{"added Makefile !added", "added x/.vscode dir !added held", "added z link !link-leaving-workspace", "added a", "added x dir"}},
	{"a repository's internals as one, and no more than those", func(t *testing.T, w string) {
		repo(t, w)
		write(t, w, ".git/odd", "")
	}, []string{"added .git dir", "added .git/branches dir", "added .git/config", "added .git/description", "added .git/info dir", "added .git/info/exclude", "added .git/odd", "added README"}},
	{"what is only shaped like a repository one by one", func(t *testing.T, w string) {
		write(t, w, "src/HEAD", "ref: refs/heads/x\n")
		write(t, w, "src/objects/evil.sh", "")
		write(t, w, "src/refs/x", "")
	}, []string{"added src/HEAD", "added src/objects dir", "added src/objects/evil.sh", "added src/refs dir", "added src/refs/x"}},
	{"installed dependencies as one", func(t *testing.T, w string) {
		write(t, w, "node_modules/x/index.js", "")
		write(t, w, "node_modules/y/index.js", "")
	}, []string{"added node_modules dir (2) !added"}},
}

// oldTree is what every row starts from. Its inodes are older than the run.
func oldTree(t testing.TB) string {
	w := tempRoot(t)
	for _, name := range []string{"src/a.go", "src/b.go", "src/c.go", "src/deep/d.go", "doc/one", "doc/two"} {
		write(t, w, name, "package x\n")
	}
	time.Sleep(2 * clockSlack)
	return w
}

func wantList(t *testing.T, got, want []string) {
	t.Helper()
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Errorf("the list is\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func TestDifferences(t *testing.T) {
	for _, c := range changesOfRuns {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := oldTree(t)
			s := scanned(t, w, Remember())
			c.during(t, w)
			wantList(t, differences(t, s), c.want)

			w = oldTree(t)
			s = watched(t, w)
			c.during(t, w)
			wantList(t, differences(t, s), c.want)
		})
	}
}

// Without the names of the start, what is there is still listed, and the report says
// that the list is incomplete.
func TestDifferencesAfterSuddenDeath(t *testing.T) {
	w := oldTree(t)
	var b bytes.Buffer
	if err := scanned(t, w, Remember()).Save(&b); err != nil {
		t.Fatal(err)
	}
	write(t, w, "src/a.go", "changed\n")
	write(t, w, "new", "")
	remove(t, w, "src/b.go")
	s, err := Load(&b)
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Settle(context.Background(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Differences) != 2 || r.Differences[0].Kind != KindAdded || r.Differences[1].Kind != KindModified || r.Unsure == "" {
		t.Errorf("after a sudden death: %v, unsure: %q", r.Differences, r.Unsure)
	}
}

func TestDifferencesNotAskedFor(t *testing.T) {
	w := oldTree(t)
	s := scanned(t, w)
	write(t, w, "new", "")
	if got := differences(t, s); got != nil {
		t.Errorf("listed %q", got)
	}
}

// A link whose directory was moved leads elsewhere, though it was not touched.
func TestMovedLinksLeave(t *testing.T) {
	w := tempRoot(t)
	link(t, "../../../in", w, "a/b/c/out")
	link(t, "../../outside", w, "stays/out")
	link(t, "there", w, "a/b/c/in")
	s := scanned(t, w, Remember())
	s.began = time.Now().Add(time.Hour).UnixNano() // no link is newer, whatever the clock of inodes says
	write(t, w, "stays/new", "")
	if err := os.Rename(w+"/a/b/c", w+"/c"); err != nil {
		t.Fatal(err)
	}
	r, err := s.Settle(context.Background(), t.TempDir())
	if err != nil || len(r.Flagged) != 1 || r.Flagged[0].Path != Name(w+"/c/out") || r.Flagged[0].Change != Leaving {
		t.Errorf("%v, %+v", err, r.Flagged)
	}
}

// So it is after a sudden death, when nothing is known of where a directory was.
func TestMovedLinksLeaveAfterSuddenDeath(t *testing.T) {
	w := tempRoot(t)
	link(t, "../../../../in", w, "a/b/c/d/out")
	link(t, "../../outside", w, "stays/out")
	time.Sleep(2 * clockSlack)
	var b bytes.Buffer
	must(t, scanned(t, w, Remember()).Save(&b))
	must(t, os.Rename(w+"/a/b/c", w+"/c"))
	s, err := Load(&b)
	must(t, err)
	r, err := s.Settle(context.Background(), t.TempDir())
	if err != nil || len(r.Flagged) != 1 || r.Flagged[0].Path != Name(w+"/c/d/out") || r.Flagged[0].Change != Leaving {
		t.Errorf("%v, %+v", err, r.Flagged)
	}
}

// Dependencies that were there are one row, whatever became of them.
func TestDifferencesOfDependencies(t *testing.T) {
	for name, c := range map[string]struct {
		during func(w string)
		want   string
	}{
		"a file of them edited":  {func(w string) { write(t, w, "node_modules/a/index.js", "b") }, "modified node_modules dir (1) !changed"},
		"one more with a folder": {func(w string) { write(t, w, "node_modules/b/index.js", "b") }, "modified node_modules dir (1) !changed"},
		"removed":                {func(w string) { remove(t, w, "node_modules") }, "deleted node_modules dir (2) !removed"},
	} {
		w := oldTree(t)
		write(t, w, "node_modules/a/index.js", "a")
		write(t, w, "node_modules/a/package.json", "a")
		time.Sleep(2 * clockSlack)
		s := scanned(t, w, Remember())
		c.during(w)
		if got := strings.Join(differences(t, s), "|"); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// Of two directories with one inode number, as on two file systems, each is found at
// its path.
func TestDirectoriesAreFoundWhereTheyStand(t *testing.T) {
	start := newNames()
	start.add([]byte("q"), &dir{ino: 5}, &listing{}, 1)
	start.add([]byte("p"), &dir{ino: 6}, &listing{}, 1)
	l := newEndWalk(start, 0)
	p, q := &changedDir{path: "p", ino: 5}, &changedDir{path: "q", ino: 5}
	l.dirs = []*changedDir{q, p}
	d := &differ{l: l, ends: map[string]*changedDir{}}
	d.match()
	if p.from == nil || p.from.path != "p" || q.from == nil || q.from.path != "q" {
		t.Errorf("p was %+v, q was %+v", p.from, q.from)
	}
}

// A directory is unchanged if it is at the same path and did not change since; its
// number alone proves too little.
func TestDirectoriesThatDidNotChange(t *testing.T) {
	w := tempRoot(t)
	mkdir(t, w+"/d")
	fd := openDir(t, w+"/d")
	var st unix.Stat_t
	must(t, unix.Fstat(fd, &st))
	for _, tt := range []struct {
		name, path string
		began      int64
		same       bool
	}{
		{"where it stood", "old", st.Ctim.Nano() + 1, true},
		{"elsewhere", "new", st.Ctim.Nano() + 1, false},
		{"changed since", "old", st.Ctim.Nano(), false},
	} {
		start := newNames()
		start.add([]byte("old"), &dir{ino: 5}, &listing{}, 1)
		l := newEndWalk(start, tt.began)
		d := &dir{fd: fd, ino: 5}
		e := l.enter(&walker{path: []byte(tt.path)}, d)
		if (e == nil) != tt.same || (d.was != nil) != tt.same || start.dirs[0].seen.Load() != tt.same {
			t.Errorf("%s: %+v", tt.name, e)
		}
	}
	n := newNames()
	for _, l := range []struct {
		path string
		ino  uint64
	}{{"a", 5}, {"b", 5}, {"", 0}} {
		n.add([]byte(l.path), &dir{ino: l.ino}, &listing{}, 1)
	}
	n.index()
	for _, tt := range []struct {
		path string
		ino  uint64
		want string
	}{{"a", 5, "a"}, {"b", 5, "b"}, {"c", 5, "a"}, {"", 0, ""}, {"c", 0, "none"}, {"a", 6, "none"}} {
		got := "none"
		if l := n.listingFor(tt.path, tt.ino); l != nil {
			got = l.path
		}
		if got != tt.want {
			t.Errorf("%q with the number %d was %q", tt.path, tt.ino, got)
		}
	}
}

// TestUnsureDifferences: the report says why a list may be incomplete.
func TestUnsureDifferences(t *testing.T) {
	for want, l := range map[string]*endWalk{
		"more than":             newEndWalk(newNames(), 0),
		"there were more than":  newEndWalk(nil, 0),
		"the names at the star": newEndWalk(nil, 0),
		"":                      newEndWalk(newNames(), 0),
	} {
		switch want {
		case "more than":
			l.left.Store(-1)
		case "there were more than":
			full := newNames()
			full.left.Store(-1)
			l = newEndWalk(full, 0)
		}
		v := &settle{}
		v.differ(&tree{Root: "/w"}, l, nil)
		if got := v.report.Unsure; !strings.HasPrefix(got, want) || (got == "") != (want == "") {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A flag of a path that is not in the list becomes a row of it: of a directory if it
// is one, or counts files.
func TestFlagsBecomeRows(t *testing.T) {
	v := &settle{report: Report{
		Flagged:     []Flagged{{Path: "/w/file", Change: Removed}, {Path: "/w/counted", Change: Changed, Files: 2}, {Path: "/w/dir", Change: Added}, {Path: "/w/known", Change: Mode}, {Path: "/other/x"}},
		Quarantined: []Quarantined{{Path: "/w/held", Type: "special", Held: "/q/held"}, {Path: "/other/y", Type: "file"}},
	}}
	d := &differ{t: &tree{Root: "/w"}, rows: map[string]*Difference{"known": {Kind: KindModified, Type: "link"}}, ends: map[string]*changedDir{"dir": {}}}
	taken := d.flags(v)
	got := map[string]string{}
	for at, r := range d.rows {
		got[at] = string(r.Kind) + " " + r.Type
		if r.Flag == nil {
			t.Errorf("%s has no flag", at)
		}
	}
	want := map[string]string{"file": "deleted file", "counted": "modified dir", "dir": "added dir", "known": "modified link", "held": "added device"}
	if !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if !taken("held/below/it") || !taken("held") || taken("heldx") || taken("known") {
		t.Error("what was moved out, and what is in it, has no other row")
	}
}
