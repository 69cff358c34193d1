//go:build linux

package review

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary/workspace"
)

// TestStartOfWhatChanged: of the list of the start the files of changes are kept in mind,
// by old names and as parts of a history too, and the time of the list if none is known.
func TestStartOfWhatChanged(t *testing.T) {
	f := newField(t, Overlay).lower("a=1", "old=1", "part=1", "other=1")
	s := f.collect()
	s.Changes = []*Change{{Path: "a"}, {Path: "new", From: "old"}, {Path: ".git", parts: []*Change{{Path: "part"}}}}
	s.order()
	if err := s.readStart(5); err != nil || s.listed || s.began != 5 || len(s.start) > 0 {
		t.Errorf("without a list: %v, %v, began %d", err, s.start, s.began)
	}
	w, err := os.Create(f.dir + "/" + workspace.StartFile)
	if err == nil {
		err = errors.Join(workspace.WriteFacts(t.Context(), f.ws, time.Unix(0, 7).UnixNano(), w), w.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	for began, want := range map[int64]int64{5: 5, 0: 7} {
		err := s.readStart(began)
		var names []string
		for n := range s.start {
			names = append(names, n)
		}
		slices.Sort(names)
		if err != nil || !s.listed || s.began != want || !slices.Equal(names, []string{"a", "old", "part"}) {
			t.Errorf("began %d: %v, %q, %d", began, err, names, s.began)
		}
	}
}

// TestLinesAtTheEnd: equal lines at the end count without the first of them, which is whole
// only if it began in both.
func TestLinesAtTheEnd(t *testing.T) {
	for _, row := range []struct {
		a, b string
		keep int
		want int
	}{
		{"1\n2\n", "0\n1\n2\n", 0, 2}, {"0\n1\n2\n", "1\n2\n", 0, 2}, {"1\n2\n", "1\n2\n", 0, 4}, {"x1\n2\n", "y1\n2\n", 0, 2}, {"x\n1\n2\n3\n", "y\n1\n2\n3\n", 1, 4}, {"x\n1\n", "y\n1\n", 3, 0}, {"a", "ba", 0, 0}, {"", "", 1, 0},
	} {
		if got := tail([]byte(row.a), []byte(row.b), row.keep); got != row.want {
			t.Errorf("%q, %q: %d", row.a, row.b, got)
		}
	}
}

// TestPlanOfAcceptedLines: a file is made of the accepted lines and of nothing else, with
// the bits of the run only if that makes it the run's.
func TestPlanOfAcceptedLines(t *testing.T) {
	lines := func(first, last string) string { return first + "a\nb\nc\nd\ne\nf\ng\nh\ni\nj\n" + last }
	f := newField(t, Overlay).lower("a="+lines("1\n", "2\n"), "emptied=1\n").upper("0755 a="+lines("3\n", "4\n"), "emptied=")
	s := f.collect()
	a := f.applier(s, nil)
	for i, row := range []struct {
		path   string
		accept []bool
		want   string
		mode   uint32
	}{
		{"a", []bool{true, false}, lines("3\n", "2\n"), 0o644},
		{"a", []bool{false, true}, lines("1\n", "4\n"), 0o644},
		{"a", []bool{false, false}, lines("1\n", "2\n"), 0o644},
		{"a", []bool{true, true}, lines("3\n", "4\n"), 0o755},
		{"emptied", []bool{true}, "", 0o644},
	} {
		c := s.Find(row.path)
		d, err := s.Diff(c)
		if err != nil || len(d.Hunks) != len(row.accept) {
			t.Fatalf("%d hunks, %v", len(d.Hunks), err)
		}
		c.hunks = &choice{by: map[string]Decision{}}
		n := 0
		for h, yes := range row.accept {
			if c.hunks.by[d.Hunks[h].ID] = Reject; yes {
				c.hunks.by[d.Hunks[h].ID] = Accept
				n++
			}
		}
		w, did := &work{c: c, ours: State{Type: File, Mode: c.Mode}}, &appliedState{}
		if err := a.planHunks(w, did); err != nil || w.data == nil || string(w.data) != row.want || w.ours.Mode != row.mode || len(did.Hunks) != n || w.ours.Size != int64(len(row.want)) {
			t.Errorf("row %d: %v, %q, mode %o, %q applied", i, err, w.data, w.ours.Mode, did.Hunks)
		}
		c.hunks.by["of another diff"] = Reject
		if err := a.planHunks(w, did); !errors.Is(err, ErrChanged) {
			t.Errorf("row %d: with a hunk that is none: %v", i, err)
		}
		c.hunks = nil
	}
}

// TestNoteOfADeadApply: an interrupted apply is ended silently, and reported if it
// cannot be ended or is still running.
func TestNoteOfADeadApply(t *testing.T) {
	for want, does := range map[string]func(f *field){
		"": func(*field) {},
		"an apply that died left something behind": func(f *field) { f.make(f.dir, "ready=no directory") },
		"the changes shown are being applied":      func(f *field) { f.make(f.dir, "lock/") },
	} {
		f := newField(t, Overlay).lower("a=1").upper("a=2")
		f.make(f.dir, "journal=\n")
		does(f)
		s := f.collect()
		if len(s.Notes) != map[bool]int{true: 1}[want != ""] || !strings.Contains(strings.Join(s.Notes, ""), want) {
			t.Errorf("%q: %q", want, s.Notes)
		}
		if _, err := os.Lstat(f.dir + "/journal"); (err == nil) != (want != "") {
			t.Errorf("%q: the journal: %v", want, err)
		}
	}
}

// TestHistoryOfManySteps: a history is carried to its end over several batches, and no
// further than the batch in which something failed: a ref would lead to a missing
// object.
func TestHistoryOfManySteps(t *testing.T) {
	for _, row := range []struct {
		name string
		hook func(string, bool) error
	}{
		{"it goes well", func(string, bool) error { return nil }},
		{"an object cannot be made", breaks("create", 3, unix.EIO)},
	} {
		f := newFieldIn(t, Overlay, inMemory(t))
		f.fast = true
		f.lower(".git/HEAD=ref: refs/heads/main\n", ".git/objects/", ".git/refs/")
		up, id := f.dir+"/upper", ""
		for i := range batch + 2 {
			id = loose(t, up, "blob", strings.Repeat("x", i))
		}
		f.upper(".git/refs/tags/x=" + id + "\n")
		s := f.collect()
		f.acceptAll(s)
		r, err := s.Apply(t.Context(), Options{hook: row.hook})
		_, there := os.Lstat(f.ws + "/.git/refs/tags/x")
		objects, _ := filepath.Glob(f.ws + "/.git/objects/??/*")
		switch row.name {
		case "it goes well":
			if err != nil || !r.Settled || there != nil || len(objects) != batch+2 {
				t.Errorf("%s: %v, %d objects, %+v", row.name, err, len(objects), r)
			}
		case "an object cannot be made":
			if err != nil || there == nil || len(objects) >= batch || len(r.Refused) != 1 || len(r.Applied) > 0 {
				t.Errorf("%s: %v, the ref: %v, %d objects, %+v", row.name, err, there, len(objects), r)
			}
		}
		s.Close()
	}
}

// TestDirectoriesThatAreMade: a directory is made beside its place if it cannot be
// moved there, one that another program made meanwhile serves as well, and different
// bits are set on an existing one and replace nothing.
func TestDirectoriesThatAreMade(t *testing.T) {
	meanwhile := func(ws string) func(string, bool) error {
		return func(op string, done bool) error {
			if op == "rename" && !done {
				os.Mkdir(ws+"/new", 0o755)
			}
			return nil
		}
	}
	for _, row := range []struct {
		name    string
		hook    func(ws string) func(string, bool) error
		refused string
	}{
		{"it is made", func(string) func(string, bool) error { return breaks("rename", 0, nil) }, ""},
		{"it cannot be moved", func(string) func(string, bool) error { return breaks("rename", 1, unix.EXDEV) }, ""},
		{"somebody made it meanwhile", meanwhile, ""},
		{"it cannot get its name", func(string) func(string, bool) error { return breaks("rename", 1, unix.EIO) }, "making directory"},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := newField(t, Overlay).lower("d/x=1").upper("new/a=1", "0700 d/")
			s := f.collect()
			f.acceptAll(s)
			r := f.apply(s, Options{hook: row.hook(f.ws)})
			after := []string{"d/", "0644 d/x=1"}
			if row.refused == "" {
				after = append(after, "new/", "0644 new/a=1")
			}
			want(t, tree(t, f.ws), after...)
			if info, err := os.Stat(f.ws + "/d"); err != nil || info.Mode().Perm() != 0o700 {
				t.Errorf("%v, %v", info, err)
			}
			if r.Settled != (row.refused == "") || !r.Settled && (len(r.Refused) != 1 || !strings.Contains(r.Refused[0].Why, row.refused)) {
				t.Errorf("%+v", r)
			}
			if left, _ := os.ReadDir(f.dir + "/ready"); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}
