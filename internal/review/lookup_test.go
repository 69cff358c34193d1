//go:build linux

package review

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary/workspace"
)

// TestWhatIsExpected: a path is as expected if its type, its bits and its content are, and
// the file itself where that is known; of a link and of a directory less counts.
func TestWhatIsExpected(t *testing.T) {
	f := newField(t, Overlay).lower("a=old", "l->x", "d/e=1", "pipe|")
	dir, err := unix.Open(f.ws, openTop, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(dir)
	see := func(name string) targetState {
		e, err := readExpected(dir, name)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	change := func(e targetState, with func(e *targetState)) targetState {
		if e.ID != nil {
			id := *e.ID
			e.ID = &id
		}
		with(&e)
		return e
	}
	noID := func(e *targetState) { e.ID = nil }
	for _, row := range []struct {
		what, name string
		e          targetState
		moved      bool
		is, holds  bool
	}{
		{"the same", "a", see("a"), false, true, true},
		{"the same content", "a", change(see("a"), noID), false, true, true},
		{"another file", "a", change(see("a"), func(e *targetState) { e.ID.Ino++ }), false, false, true},
		{"another change time", "a", change(see("a"), func(e *targetState) { e.ID.Ctime++ }), false, false, true},
		{"another change time, which counts not", "a", change(see("a"), func(e *targetState) { e.ID.Ctime++ }), true, true, true},
		{"other bits", "a", change(see("a"), func(e *targetState) { e.Mode = 0o600 }), false, false, false},
		{"another size", "a", change(see("a"), func(e *targetState) { e.Size = 4 }), false, false, false},
		{"other content", "a", change(see("a"), func(e *targetState) { e.SHA256 = "x" }), false, false, false},
		{"content that is not known", "a", change(see("a"), func(e *targetState) { e.SHA256 = "" }), false, true, true},
		{"content that is not known of any file", "a", change(see("a"), func(e *targetState) { e.SHA256, e.ID = "", nil }), false, false, false},
		{"a link", "l", see("l"), false, true, true},
		{"a link of other bits", "l", change(see("l"), func(e *targetState) { e.Mode = 0o755 }), false, true, false},
		{"a link elsewhere", "l", change(see("l"), func(e *targetState) { e.Target = "y" }), false, false, true},
		{"another link", "l", change(see("l"), func(e *targetState) { e.ID.Ino++ }), false, false, true},
		{"a directory", "d", see("d"), false, true, true},
		{"a directory of another size", "d", change(see("d"), func(e *targetState) { e.Size++ }), false, true, true},
		{"another directory", "d", change(see("d"), func(e *targetState) { e.ID.Ino++ }), false, true, true},
		{"any directory", "d", change(see("d"), noID), false, true, false},
		{"another type", "d", change(see("a"), func(e *targetState) { e.Mode = 0o755 }), false, false, false},
		{"nothing", "none", targetState{}, false, true, false},
		{"something", "none", see("a"), false, false, false},
	} {
		if is, err := row.e.matches(dir, row.name, row.moved); err != nil || is != row.is {
			t.Errorf("%s: %t, %v", row.what, is, err)
		}
		if row.name == "none" || row.what == "another type" {
			continue
		}
		fd, err := unix.Openat(dir, row.name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		var st unix.Statx_t
		if err := statusOf(fd, &st); err != nil {
			t.Fatal(err)
		}
		if holds, err := row.e.descriptorMatches(fd, &st); err != nil || holds != row.holds {
			t.Errorf("%s: holds %t, %v", row.what, holds, err)
		}
		unix.Close(fd)
	}
	if e := see("none"); e.ID != nil || e.Type != None {
		t.Errorf("%+v", e)
	}
}

// TestWhatAPathMustBe: what Apply made of it, what was kept, or what is in the
// workspace if that is as old as the run; otherwise it is unknown.
func TestWhatAPathMustBe(t *testing.T) {
	f := newField(t, Overlay).lower("a=workspace", "kept=new", "dir/x=1", "keptdir=1", "gone=1", "done=1", "l->d", "made=1")
	f.make(f.dir+"/base", "0640 kept=old", "keptdir/x=1", "gone=old", "made=old")
	s := f.collect()
	dir := s.trees.tree
	s.trees.gone = map[string]bool{"gone": true}
	ids := map[string]workspace.Identity{}
	for _, n := range []string{"a", "dir", "kept", "keptdir", "gone", "done"} {
		e, err := readExpected(dir, n)
		if err != nil {
			t.Fatal(err)
		}
		ids[n] = *e.ID
	}
	s.saved.list["done"] = &savedChange{Done: &appliedState{Left: State{Type: File, Size: 99}}}
	s.saved.list["undone"] = &savedChange{}
	old := func(id workspace.Identity, with func(*workspace.Identity)) workspace.Identity { with(&id); return id }
	const young, ancient = 1, 1 << 62
	for _, row := range []struct {
		name   string
		c      Change
		path   string
		start  map[string]workspace.Identity
		listed bool
		began  int64
		typ    Type
		size   int64
		known  bool
	}{
		{"applied", Change{Path: "done", OldType: File}, "done", nil, false, 0, File, 99, true},
		{"the old name of what was applied", Change{Path: "done", From: "a", OldType: File, Kind: Renamed}, "a", nil, false, ancient, File, 9, true},
		{"new", Change{Path: "new"}, "new", nil, false, 0, None, 0, true},
		{"new, and nothing is done", Change{Path: "undone"}, "undone", nil, false, 0, None, 0, true},
		{"new, and it was there", Change{Path: "new"}, "new", map[string]workspace.Identity{"new": {}}, false, 0, None, 0, false},
		{"a new name", Change{Path: "a", From: "b", OldType: File, Kind: Renamed}, "a", nil, false, 0, None, 0, true},
		{"kept", Change{Path: "kept", OldType: File}, "kept", nil, true, 0, File, 3, true},
		{"kept as a directory", Change{Path: "keptdir", OldType: File}, "keptdir", nil, false, ancient, File, 1, true},
		{"kept, and made by Apply", Change{Path: "gone", OldType: File}, "gone", nil, false, ancient, File, 1, true},
		{"as on the list", Change{Path: "a", OldType: File}, "a", ids, true, young, File, 9, true},
		{"not as on the list", Change{Path: "a", OldType: File}, "a", map[string]workspace.Identity{"a": old(ids["a"], func(i *workspace.Identity) { i.Ctime-- })}, true, ancient, File, 9, false},
		{"a directory of the same bits", Change{Path: "dir", OldType: Dir}, "dir", map[string]workspace.Identity{"dir": old(ids["dir"], func(i *workspace.Identity) { i.Ctime-- })}, true, young, Dir, 0, true},
		{"a directory of other bits", Change{Path: "dir", OldType: Dir}, "dir", map[string]workspace.Identity{"dir": old(ids["dir"], func(i *workspace.Identity) { i.Mode++ })}, true, young, Dir, 0, false},
		{"not on the list", Change{Path: "a", OldType: File}, "a", nil, true, ancient, File, 9, false},
		{"older than the run", Change{Path: "a", OldType: File}, "a", nil, false, ancient, File, 9, true},
		{"younger than the run", Change{Path: "a", OldType: File}, "a", nil, false, young, File, 9, false},
		{"a directory", Change{Path: "dir", OldType: Dir}, "dir", nil, false, young, Dir, 0, true},
		{"it is not known when the run began", Change{Path: "a", OldType: File}, "a", nil, false, 0, File, 9, false},
		{"not there any more", Change{Path: "none", OldType: File}, "none", nil, false, ancient, None, 0, false},
		{"nor its directory", Change{Path: "none/a", OldType: File}, "none/a", nil, false, ancient, None, 0, false},
	} {
		s.start, s.listed, s.began = row.start, row.listed, row.began
		if row.path != string(row.c.Path) { // as planRemove asks
			row.c = Change{Path: workspace.Name(row.path), OldType: row.c.OldType, Kind: Deleted}
		}
		e, known, err := s.expectedNow(&row.c)
		if err != nil || known != row.known || e.Type != row.typ || e.Type == File && e.Size != row.size {
			t.Errorf("%s: %+v, known: %t, %v", row.name, e, known, err)
		}
	}
	if _, known, err := s.expectedNow(&Change{Path: "l/a", OldType: File}); err == nil || known {
		t.Errorf("behind a link: %v", err)
	}
	// What a conflict shows of the start is what was kept, or nothing that is not known.
	for _, row := range []struct {
		c          Change
		path       string
		base, ours Side
		theirs     Type
	}{
		{Change{Path: "kept", OldType: File, Kind: Deleted}, "kept", Side{Type: File, Size: 3}, Side{Known: true}, File},
		{Change{Path: "a", OldType: File, Kind: Deleted}, "a", Side{Type: File}, Side{Known: true}, File},
		{Change{Path: "gone", OldType: File, Kind: Deleted}, "gone", Side{Known: true}, Side{Known: true}, File},
		{Change{Path: "made", OldType: File, Kind: Deleted}, "made", Side{Type: File, Size: 3}, Side{Known: true}, File},
		{Change{Path: "new", Kind: Added, Type: File}, "new", Side{Known: true}, Side{Known: true}, None},
		{Change{Path: "none", Kind: Deleted, OldType: Dir}, "none", Side{Type: Dir}, Side{Known: true}, None},
	} {
		k := s.conflict(&row.c, row.path, "why")
		known := row.base.Known || row.base.Size > 0
		if k.Base.Type != row.base.Type || k.Base.Size != row.base.Size || k.Base.Known != known || k.Ours.Type != row.ours.Type || k.Theirs.Type != row.theirs || k.Why != "why" {
			t.Errorf("%s: %+v", row.path, k)
		}
	}
	f.upper("b=1")
	if k := s.conflict(&Change{Path: "b", From: "a", OldType: File, Type: File, Kind: Renamed}, "a", ""); k.Ours.Type != None || !k.Ours.Known {
		t.Errorf("the old name of a rename becomes %+v", k.Ours)
	}
	if k := s.conflict(&Change{Path: "b", From: "a", OldType: File, Type: File, Kind: Renamed}, "b", ""); k.Ours.Type != File {
		t.Errorf("the new name of a rename becomes %+v", k.Ours)
	}
}

// TestOldSideOfAName: what was kept comes before the workspace, a directory is that of
// the workspace while it has one, and each name is listed once.
func TestOldSideOfAName(t *testing.T) {
	f := newField(t, Overlay).lower("d/a=workspace", "d/both=workspace", "0750 d/sub/x=1", "d/made=1", "d/became=1", "only/x=1")
	f.make(f.dir+"/base", "d/both=kept", "d/sub/y=1", "d/kept=1", "d/became/y=1", "d/lost/y=1")
	if err := unix.Chmod(f.dir+"/base/d/sub", 0o700); err != nil {
		t.Fatal(err)
	}
	s := f.collect()
	s.trees.gone = map[string]bool{"d/made": true}
	s.trees.modes = map[string]uint32{"d/both": unix.S_IFREG | 0o4711, "d/kept": unix.S_IFLNK | 0o777}
	l, opened, err := s.trees.openLevel("d", false, true)
	if err != nil || opened || l.upper != nil {
		t.Fatalf("%v, %t", err, opened)
	}
	defer l.close()
	for name, want := range map[string]struct {
		ok, kept bool
		mode     uint16
	}{
		"a": {true, false, unix.S_IFREG | 0o644}, "both": {true, true, unix.S_IFREG | 0o4711}, "kept": {true, true, unix.S_IFREG | 0o644}, "sub": {true, false, unix.S_IFDIR | 0o755},
		"became": {true, true, unix.S_IFDIR | 0o755}, "lost": {true, true, unix.S_IFDIR | 0o755}, "made": {}, "none": {},
	} {
		o, ok, err := l.old(name)
		if err != nil || ok != want.ok || o.kept != want.kept || ok && o.st.Mode != want.mode || ok && (o.dir == l.base) != want.kept {
			t.Errorf("%s: %t, kept: %t, mode %o, %v", name, ok, o.kept, o.st.Mode, err)
		}
	}
	for range 2 {
		var all []string
		if err := l.oldNames(func(n string) error { all = append(all, n); return nil }); err != nil {
			t.Fatal(err)
		}
		slices.Sort(all)
		want(t, all, "a", "became", "both", "kept", "lost", "sub")
		if err := l.rewind(); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.oldNames(func(string) error { return io.ErrNoProgress }); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("%v", err)
	}
	for _, row := range []struct {
		path         string
		upper, lower bool
		has          [3]bool
		err          bool
	}{
		{"only", false, true, [3]bool{false, false, true}, false}, {"d/lost", false, true, [3]bool{false, true, false}, false}, {"d/a", false, true, [3]bool{}, false}, {"", true, true, [3]bool{true, true, true}, false},
		{"", true, false, [3]bool{true, false, false}, false}, {"only", true, true, [3]bool{}, true},
	} {
		l, _, err := s.trees.openLevel(row.path, row.upper, row.lower)
		if (err != nil) != row.err {
			t.Errorf("%q: %v", row.path, err)
		}
		if err != nil {
			continue
		}
		if has := [3]bool{l.upper != nil, l.base != nil, l.tree != nil}; has != row.has {
			t.Errorf("%q: %v", row.path, has)
		}
		l.close()
	}
}

// TestWhatAReviewHolds: what is beyond a limit is counted, and reported at the end.
func TestWhatAReviewHolds(t *testing.T) {
	c := &collector{lim: limits{changes: 2, names: 3, compare: 10, unseen: 1}}
	if !c.reserve("ab") || c.reserve("cd") || !c.reserve("c") || c.reserve("") {
		t.Errorf("room: %+v", c.lim)
	}
	if !c.mayRead(10) || c.mayRead(1) || !c.mayRead(0) {
		t.Errorf("read %d", c.read)
	}
	v := &comparison{collector: c, job: job{path: "p"}}
	if v.listError(nil) != nil || len(c.unseen) > 0 {
		t.Errorf("unseen: %v", c.unseen)
	}
	for _, err := range []error{context.Canceled, context.DeadlineExceeded} {
		if !errors.Is(v.listError(err), err) || len(c.unseen) > 0 {
			t.Errorf("%v: unseen %v", err, c.unseen)
		}
	}
	if v.listError(unix.EIO) != nil || len(c.unseen) != 1 || c.missed != 0 {
		t.Errorf("unseen: %v", c.unseen)
	}
	c.addUnseen("q", "x")
	c.finish()
	if len(c.unseen) != 3 || c.unseen[1].Reason != "2 more changes than one review can hold" || c.unseen[2].Reason != "1 more places that were not looked at" {
		t.Errorf("unseen: %v", c.unseen)
	}
	c = &collector{}
	if c.finish(); len(c.unseen) > 0 {
		t.Errorf("unseen: %v", c.unseen)
	}
	v = &comparison{collector: c, job: job{path: "p"}, found: []*Change{{Path: "p"}, {Path: "q"}}}
	if v.noteOpened(); len(v.found[0].Notes) != 1 || len(v.found[1].Notes) > 0 {
		t.Errorf("%+v", v.found)
	}
}

// TestShapeOfARepository: a directory with HEAD, objects and refs is one, of the run or of
// before, unless the run took one of them away.
func TestShapeOfARepository(t *testing.T) {
	f := newField(t, Overlay)
	f.lower("old/HEAD=x", "old/objects/", "old/refs/", "half/HEAD=x", "half/objects/", "none/HEAD=x")
	f.upper("new/HEAD=x", "new/objects/", "new/refs/", "half/refs/", "part/HEAD=x", "part/objects/", "old/x=1", "none/refs/")
	s := f.collect()
	for _, row := range []struct {
		path  string
		which int
		want  bool
	}{{"new", onlyUpper, true}, {"part", onlyUpper, false}, {"half", both, true}, {"half", onlyUpper, false}, {"old", onlyLower, true}, {"old", both, true}, {"none", both, false}} {
		l, _, err := s.trees.openLevel(row.path, row.which != onlyLower, row.which != onlyUpper)
		if err != nil {
			t.Fatal(err)
		}
		v := &comparison{collector: &collector{t: s.trees}, job: job{path: row.path, which: row.which, look: s.Source.Rules.Look()}, l: l}
		if got := v.repository(); got != row.want {
			t.Errorf("%s, %d: %t", row.path, row.which, got)
		}
		v.look = v.look.Repository()
		if v.repository() {
			t.Errorf("%s is in a repository already", row.path)
		}
		l.close()
	}
}

// TestHeadingOfAReview: what review.json says fills what the caller left open, and the
// rest of it becomes notes.
func TestHeadingOfAReview(t *testing.T) {
	for i, row := range []struct {
		r       workspace.Review
		given   Source
		mode    Mode
		ws      string
		running bool
		notes   []string
	}{
		{workspace.Review{Mode: "overlay", Workspace: "/w"}, Source{}, Overlay, "/w", false, nil},
		{workspace.Review{Mode: "overlay", Workspace: "/w"}, Source{Mode: Copy, Workspace: "/v"}, Copy, "/v", false, nil},
		{workspace.Review{Mode: "overlay", Workspace: "/w", State: workspace.ReviewRunning}, Source{}, Overlay, "/w", true, nil},
		{workspace.Review{Mode: "copy", Workspace: "/w", Died: true, Written: []workspace.Name{"x"}, Left: []workspace.Name{"y"}, Apart: []workspace.Name{"z"}}, Source{}, Copy, "/w", false, []string{"died", `"x"`, `"y"`}},
	} {
		s := &Set{Source: row.given}
		s.Source.Dir = t.TempDir()
		if err := row.r.Write(s.Source.Dir); err != nil {
			t.Fatal(err)
		}
		err := s.readReview()
		if err != nil || s.Source.Mode != row.mode || s.Source.Workspace != row.ws || s.running != row.running || len(s.Notes) != len(row.notes) || len(s.apart) != len(row.r.Apart) {
			t.Errorf("row %d: %+v, %v", i, s, err)
			continue
		}
		for n, want := range row.notes {
			if !strings.Contains(s.Notes[n], want) {
				t.Errorf("row %d: %q", i, s.Notes[n])
			}
		}
	}
	s := &Set{Source: Source{Dir: t.TempDir()}}
	if err := s.readReview(); err != nil {
		t.Errorf("without a review.json: %v", err)
	}
	if err := os.WriteFile(s.Source.Dir+"/"+workspace.ReviewFile, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.readReview(); err == nil {
		t.Error("half a review.json was read")
	}
}
