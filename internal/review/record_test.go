//go:build linux

package review

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary/workspace"
)

// TestWhatApplyCarries: what is accepted, in whole or in part, and what was applied
// before in part and is rejected now; never what is undecided, applied or cannot be.
func TestWhatApplyCarries(t *testing.T) {
	part := func(d Decision) *choice { return &choice{by: map[string]Decision{"1": Reject, "2": d}} }
	for i, row := range []struct {
		c     Change
		saved *savedChange
		want  bool
	}{
		{Change{Decision: Accept}, nil, true},
		{Change{Decision: Reject}, nil, false},
		{Change{}, nil, false},
		{Change{Decision: Accept, Applied: true}, nil, false},
		{Change{Decision: Accept, Cannot: "it is a pipe"}, nil, false},
		{Change{Decision: Accept, hunks: part(Accept)}, nil, true},
		{Change{Decision: Undecided, hunks: part(Accept)}, nil, true},
		{Change{Decision: Reject, hunks: part(Reject)}, nil, false},
		{Change{Decision: Reject, hunks: part(Reject)}, &savedChange{}, false},
		{Change{Decision: Reject, hunks: part(Reject)}, &savedChange{Done: &appliedState{}}, true},
		{Change{Decision: Undecided, hunks: part(Undecided)}, &savedChange{Done: &appliedState{}}, false},
	} {
		row.c.Path = "a"
		a := &applier{Set: &Set{saved: &decisionFile{list: map[workspace.Name]*savedChange{}}}}
		if row.saved != nil {
			a.saved.list["a"] = row.saved
		}
		if got := a.wanted(&row.c); got != row.want {
			t.Errorf("row %d: %t", i, got)
		}
	}
}

// TestWhatIsSafe: a change is applied without a look only if nothing speaks against it
// and against the directories that it is in, by its old name too.
func TestWhatIsSafe(t *testing.T) {
	a := &applier{Set: &Set{index: map[string]*Change{
		"flagged": {Flags: []Flag{{"x", "y"}}}, "plain": {}, "link": {Type: Link}, "waslink": {OldType: Link}, "d/flagged": {Flags: []Flag{{"x", "y"}}},
	}}}
	below := func(name string) string { return `it lies below "` + name + `", which needs a decision first` }
	for _, row := range []struct {
		c    Change
		want string
	}{
		{Change{Path: "a"}, ""},
		{Change{Path: "plain/a", From: "d/a"}, ""},
		{Change{Path: "flagged"}, ""}, // its own flags count, and here it has none
		{Change{Path: "flaggedtoo/a"}, ""},
		{Change{Path: "flagged/a"}, below("flagged")},
		{Change{Path: "d/flagged/e/a"}, below("d/flagged")},
		{Change{Path: "link/a"}, below("link")},
		{Change{Path: "waslink/a"}, below("waslink")},
		{Change{Path: "a", From: "flagged/a", Kind: Renamed}, below("flagged")},
		{Change{Path: "a", Cannot: "it is a pipe"}, "it is a pipe"},
		{Change{Path: "a", Flags: []Flag{{"x", "y"}}}, "y"},
		{Change{Path: "a", Type: Link}, "it is a link, or was one"},
		{Change{Path: "a", OldType: Link}, "it is a link, or was one"},
		{Change{Path: "a", Kind: History}, "it needs a decision of its own"},
		{Change{Path: "a", Kind: TypeChanged}, "it needs a decision of its own"},
		{Change{Path: "a", hunks: &choice{}}, "it was decided in part only"},
	} {
		if got := a.unsafeReason(&row.c); got != row.want {
			t.Errorf("%q from %q: %q, want %q", row.c.Path, row.c.From, got, row.want)
		}
	}
}

// TestSafeLeavesWhatWasDecided: Safe accepts what is undecided, and neither takes a
// decision back nor names what was applied among what is left.
func TestSafeLeavesWhatWasDecided(t *testing.T) {
	f := newField(t, Overlay).upper("no=1", "yes=1", "open=1", "Makefile=1", "GNUmakefile=1")
	s := f.collect()
	if err := errors.Join(s.Decide(s.Find("no"), Reject), s.Decide(s.Find("Makefile"), Reject), s.Decide(s.Find("yes"), Accept)); err != nil {
		t.Fatal(err)
	}
	s.Find("GNUmakefile").Applied = true
	r := f.apply(s, Options{Safe: true})
	slices.Sort(r.Applied)
	if !slices.Equal(r.Applied, []workspace.Name{"open", "yes"}) || len(r.Left) > 0 || s.Find("no").Decision != Reject {
		t.Errorf("%+v, no is %v", r, s.Find("no").Decision)
	}
}

// TestContentOfASide: both sides of a file are opened by the name that they have; what
// is no file, or was not kept, is refused.
func TestContentOfASide(t *testing.T) {
	f := newField(t, Overlay).lower("old=some content that moved\n", "a=1\n", "b=1\n").upper("a=2\n", "old!", "new=some content that moved\n", "b!", "l->a")
	f.make(f.dir+"/base", "old=kept of old\n", "a=kept of a\n")
	s := f.collect()
	renamed := &Change{Path: "new", From: "old", Kind: Renamed, Type: File, OldType: File}
	list := (&ChangeList{Changes: []workspace.Difference{{Path: "a", Kind: workspace.KindModified, Type: "file"}}}).Set()
	if err := list.Close(); err != nil {
		t.Errorf("closing a list: %v", err)
	}
	for _, row := range []struct {
		name      string
		s         *Set
		c         *Change
		base      bool
		want, err string
	}{
		{"as the run left it", s, s.Find("a"), false, "2\n", ""},
		{"as it was", s, s.Find("a"), true, "kept of a\n", ""},
		{"a rename, as the run left it", s, renamed, false, "some content that moved\n", ""},
		{"a rename, as it was", s, renamed, true, "kept of old\n", ""},
		{"a link", s, s.Find("l"), false, "", "not a regular file on that side"},
		{"a new name, as it was", s, s.Find("l"), true, "", "not a regular file on that side"},
		{"what is gone, as the run left it", s, s.Find("b"), false, "", "not a regular file on that side"},
		{"what is gone, as it was and was not kept", s, s.Find("b"), true, "", "no such file"},
		{"of a list, as it is", list, list.Find("a"), false, "", "it was not kept"},
		{"of a list, as it was", list, list.Find("a"), true, "", "it was not kept"},
	} {
		file, err := row.s.Content(row.c, row.base)
		if err != nil {
			if row.err == "" || !strings.Contains(err.Error(), row.err) {
				t.Errorf("%s: %v", row.name, err)
			}
			continue
		}
		b, _ := io.ReadAll(file)
		file.Close()
		if row.err != "" || string(b) != row.want {
			t.Errorf("%s: %q", row.name, b)
		}
	}
}

// TestChangeTimeInADigest: it counts, except for a file that its owner may not read:
// reading one moves it.
func TestChangeTimeInADigest(t *testing.T) {
	for mode, counts := range map[uint16]bool{0o400: true, 0o644: true, 0o244: false, 0: false} {
		a := unix.Statx_t{Mode: unix.S_IFREG | mode}
		b := a
		b.Ctime.Nsec = 1
		if got := fileDigest(&a) != fileDigest(&b); got != counts {
			t.Errorf("mode %o: %t", mode, got)
		}
		if b = a; fileDigest(&a) != fileDigest(&b) {
			t.Errorf("mode %o: not repeatable", mode)
		}
	}
}

// TestDecisionsThatCannotBeRead: a file that is not a record of decisions is refused,
// and is not taken for an empty one.
func TestDecisionsThatCannotBeRead(t *testing.T) {
	for content, want := range map[string]string{
		`{"version":1,"changes":{"a":{"decision":"accept","digest":"1"}}}`: "",
		`{"version":1}`:                      "",
		`{"version":2}`:                      "version 2 is not known",
		`{"version":1,"changes":{"a":null}}`: "an entry is empty",
		`{"version":1,"changes":{"a":{"decision":"maybe"}}}`: "reading",
		`{`: "reading",
		"":  "reading",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(dir+"/decisions.json", []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := loadDecisions(dir)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", content, err)
		}
		if strings.Contains(content, "accept") && (s.list["a"] == nil || s.list["a"].Decision != Accept) {
			t.Errorf("%s: %+v", content, s.list)
		}
	}
	dir := t.TempDir()
	if _, err := loadDecisions(dir); err != nil {
		t.Errorf("without a file: %v", err)
	}
	if err := os.Mkdir(dir+"/decisions.json", 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := loadDecisions(dir); err == nil || !strings.Contains(err.Error(), "reading the decisions") {
		t.Errorf("a directory: %v", err)
	}
}

// TestWhatApplyMade: a path is known not to have been there by the decisions, and by the
// journal of an apply that died where that put something on nothing for a change.
func TestWhatApplyMade(t *testing.T) {
	dir := t.TempDir()
	s := &decisionFile{dir: dir, list: map[workspace.Name]*savedChange{"c": {Made: []workspace.Name{"c/made"}}, "d": {}}}
	names := func() (all []string) {
		gone, err := s.createdPaths()
		if err != nil {
			t.Fatal(err)
		}
		for n := range gone {
			all = append(all, n)
		}
		slices.Sort(all)
		return all
	}
	want(t, names(), "c/made")
	journal := strings.Join([]string{
		``,
		`{"intent":{"step":1,"act":"put","path":"put","change":"c","was":{"type":"none"}}}`,
		`{"intent":{"step":2,"act":"put","path":"dir","was":{"type":"none"}}}`,
		`{"intent":{"step":3,"act":"put","path":"over","change":"c","was":{"type":"file"}}}`,
		`{"intent":{"step":4,"act":"chmod","path":"bits","change":"c","was":{"type":"none"}}}`,
		`{"intent":{"step":5,"act":"put","path":"cut","cha`,
		`{"intent":{"step":6,"act":"put","path":"last","change":"c","was":{"type":"none"}}}`,
		`{"end":1,"did":true}`, `{"end":3}`, `{"locks":["a","b"]}`, `{"made":[{"step":3,"ino":4,"dev":5}],"lefts":[{"step":3,"state":{"type":"file"}}]}`,
		`{"intent":{"step":7,"act":"put","path":"unfinished","change":"c","was":{"type":"none"}}}`,
	}, "\n")
	if err := os.WriteFile(dir+"/journal", []byte(journal), 0o600); err != nil {
		t.Fatal(err)
	}
	want(t, names(), "c/made", "last", "put")
	j, err := readJournal(dir)
	if err != nil || len(j.steps) != 5 || !j.ended[1] || j.ended[3] || len(j.ended) != 2 || len(j.locks) != 2 || j.made[3].Ino != 4 || j.left[3].Type != File {
		t.Errorf("%+v, %v", j, err)
	}
	if err := errors.Join(os.Remove(dir+"/journal"), os.Mkdir(dir+"/journal", 0o700)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.createdPaths(); err == nil || !strings.Contains(err.Error(), "reading the journal") {
		t.Errorf("a journal that is a directory: %v", err)
	}
}

// TestWhatIsCounted counts each change once by what became of it.
func TestWhatIsCounted(t *testing.T) {
	s := &Set{Unseen: []Unseen{{}}, Changes: []*Change{
		{Kind: Added, Type: File, Size: 1, Decision: Accept, Flags: []Flag{{}}},
		{Kind: Modified, Type: File, Size: 2, Decision: Reject},
		{Kind: Modified, Type: File, Size: 4, hunks: &choice{}, Applied: true},
		{Kind: Modified, Type: File, Size: 8, hunks: &choice{}, Applied: true, Decision: Accept},
		{Kind: Deleted, OldType: File, Size: 16},
		{Kind: Renamed, Type: Dir, Size: 32, Applied: true},
		{Kind: History, Type: Dir, Size: 64, Decision: Accept, Applied: true},
		{Kind: ModeChanged, Type: Link, Size: 128, Cannot: "x", Decision: Reject},
		{Kind: TypeChanged, Type: FIFO, Cannot: "x"},
	}}
	want := Counts{Changes: 9, Flagged: 1, Added: 1, Modified: 3, Deleted: 1, Renamed: 1, Other: 3, Cannot: 2, Accepted: 1, Rejected: 1, Undecided: 2, Applied: 3, Unseen: 1, Bytes: 79}
	if got := s.Counts(); got != want {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	for i, row := range []struct {
		s    Set
		want bool
	}{
		{Set{}, true}, {Set{Changes: []*Change{{Kind: Added}}}, false}, {Set{Changes: []*Change{{Kind: Added, Decision: Accept}}}, false}, {Set{Unseen: []Unseen{{}}}, false},
		{Set{Changes: []*Change{{Kind: Added, Decision: Reject}, {Kind: Added, Cannot: "x"}, {Kind: Added, Decision: Accept, Applied: true}}}, true},
	} {
		if got := row.s.Settled(); got != row.want {
			t.Errorf("row %d: %t", i, got)
		}
	}
}

// TestWordsOfKinds: each value has a word that is read back, and nothing else is read.
func TestWordsOfKinds(t *testing.T) {
	for k := Added; k <= History; k++ {
		var back Kind
		if b, _ := k.MarshalText(); back.UnmarshalText(b) != nil || back != k {
			t.Errorf("%v: %v", k, back)
		}
	}
	var k Kind
	for _, text := range []string{"", "Added", "unknown(8)"} {
		if k.UnmarshalText([]byte(text)) == nil {
			t.Errorf("%q: %v", text, k)
		}
	}
	if Kind(8).String() != "unknown(8)" || Type(6).String() != "device" || Type(7).String() != "unknown(7)" {
		t.Errorf("%v %v %v", Kind(8), Type(6), Type(7))
	}
}

// TestSetOfAList: a change of a list is shown under its path from the workspace, with
// what was found when the run ended, and is applied already.
func TestSetOfAList(t *testing.T) {
	l := ChangeList{Workspace: "/ws", Changes: []workspace.Difference{
		{Path: "/ws/Makefile", Kind: workspace.KindModified, Type: "file", Flag: &workspace.Flagged{Rule: "seen", Reason: "x"}},
		{Path: "/ws/deps", Kind: workspace.KindAdded, Type: "dir", Files: 2},
		{Path: "/ws/gone", Kind: workspace.KindDeleted, Type: "link"},
		{Path: "/ws/pipe", Kind: workspace.KindAdded, Type: "fifo", Held: "/state/held"},
		{Path: "/ws/new", From: "/ws/old", Kind: workspace.KindRenamed, Type: "file", Files: 1},
		{Path: "/other/a", Kind: "?", Type: "?"},
	}}
	s := l.Set()
	want(t, lines(s), `modified "Makefile" [seen] applied`, `modified "/other/a" applied`, `added "deps" none→dir applied`,
		`deleted "gone" link→none applied`, `renamed "new" from "old" applied`, `added "pipe" none→fifo applied`)
	for path, note := range map[string]string{"deps": "2 files in it changed", "new": "1 file in it changed", "pipe": "moved out of the workspace, to /state/held"} {
		if c := s.Find(path); !slices.Equal(c.Notes, []string{note}) || c.Cannot != "" {
			t.Errorf("%s: %q, %q", path, c.Notes, c.Cannot)
		}
	}
}

// TestOldListsGo: a list that is too old or one too many is removed, unless settings of git
// wait in it.
func TestOldListsGo(t *testing.T) {
	reviews := t.TempDir()
	keep := func(session string, ended time.Time, refused ...string) {
		l := ChangeList{Version: 1, Session: session, Workspace: "/ws", Ended: ended}
		for _, why := range refused {
			l.Git = append(l.Git, workspace.ConfigChange{File: "/ws/.git/config", Section: "user", Key: "name", Now: []string{"x"}, Refused: why})
		}
		if err := l.Keep(filepath.Join(reviews, session)); err != nil {
			t.Fatal(err)
		}
	}
	now := time.Now()
	keep("0-waits", now.Add(-2*maxDirectTime), "", "why")
	keep("1-refused", now.Add(-2*maxDirectTime), "why")
	keep("2-old", now.Add(-2*maxDirectTime))
	keep("3-waits", now, "")
	for i := range maxDirect {
		keep(fmt.Sprintf("4-%02d", i), now)
	}
	entries, err := os.ReadDir(reviews)
	if err != nil || len(entries) != maxDirect+2 || entries[0].Name() != "0-waits" || entries[1].Name() != "3-waits" {
		t.Errorf("%v are left, %v", entries, err)
	}
}

// TestObeyedOnce: what leads to a change is a flag of it, once.
func TestObeyedOnce(t *testing.T) {
	c := &Change{Path: "a"}
	for _, r := range []*workspace.Rule{nil, {Pattern: "x", Reason: "1"}, {Pattern: "x", Reason: "2"}, {Pattern: "y", Reason: "3"}} {
		c.obey(r)
	}
	if !slices.Equal(c.Flags, []Flag{{"x", "what x names or leads to: 1"}, {"y", "what y names or leads to: 3"}}) {
		t.Errorf("%+v", c.Flags)
	}
}

// TestDone: a change is done when what is accepted now is what was applied, no less and
// no more.
func TestDone(t *testing.T) {
	accepted := func(ids ...string) map[string]Decision {
		m := map[string]Decision{"a": Reject, "b": Reject}
		for _, id := range ids {
			m[id] = Accept
		}
		return m
	}
	for _, tt := range []struct {
		name  string
		hunks map[string]Decision
		done  *appliedState
		want  bool
	}{
		{"nothing was applied", accepted("a"), nil, false},
		{"all was, of another change", nil, &appliedState{Digest: "2"}, false},
		{"all was", nil, &appliedState{Digest: "1"}, true},
		{"a part was, and all is accepted", nil, &appliedState{Digest: "1", Hunks: []string{"a"}}, false},
		{"all was, and all parts are accepted", accepted("a", "b"), &appliedState{Digest: "1"}, true},
		{"all was, and a part is accepted", accepted("a"), &appliedState{Digest: "1"}, false},
		{"the part was", accepted("a"), &appliedState{Digest: "1", Hunks: []string{"a"}}, true},
		{"another part was", accepted("a"), &appliedState{Digest: "1", Hunks: []string{"b"}}, false},
		{"less was", accepted("a", "b"), &appliedState{Digest: "1", Hunks: []string{"a"}}, false},
	} {
		if got := (&savedChange{Hunks: tt.hunks, Done: tt.done}).isApplied("1"); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}
