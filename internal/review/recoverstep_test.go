//go:build linux

package review

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary/workspace"
)

// TestEachStepIsEnded: a step that an interrupted apply had begun is carried out or
// undone, according to the files with its name and with the private one; no file is
// lost.
func TestEachStepIsEnded(t *testing.T) {
	old := func(content string) State {
		sum := map[string]string{"old": "cba06b5736faf67e54b07b561eae94395e774c517a7d910a54369e1263ccfbd4", "new": "11507a0e2f5e69d5dfa40a62a1bd7b6ee57e6bcd85c67c9b8431b36fff21c437"}[content]
		return State{Type: File, Mode: 0o644, Size: 3, SHA256: sum}
	}
	link := State{Type: Link, Mode: 0o777, Target: "x"}
	unknown := old("new")
	unknown.SHA256 = ""
	dir := State{Type: Dir, Mode: 0o755}
	const yet, kept, back, at = "it had not been changed yet; what was prepared for it is removed", "it had been changed; what it was before is kept in the review",
		"another process had changed it, and that version is back in place", "it was changed as soon as it was applied; look at it"
	for _, row := range []struct {
		name  string
		act   act
		ws    []string // t is the private name
		made  string   // what was prepared, by its name now
		was   State
		left  *State
		base  []string
		hook  func(string, bool) error
		did   bool
		says  string
		err   string
		after []string
		keeps []string // in base
	}{
		{name: "prepared", act: put, ws: []string{"d/a=old", "d/t=new"}, made: "d/t", was: old("old"), says: yet, after: []string{"d/", "0644 d/a=old"}},
		{name: "a directory prepared", act: put, ws: []string{"d/t/"}, made: "d/t", says: yet, after: []string{"d/"}},
		{name: "half prepared", act: put, ws: []string{"d/a=old", "d/t=ne"}, was: old("old"), says: yet, after: []string{"d/", "0644 d/a=old"}},
		{name: "exchanged", act: put, ws: []string{"d/a=new", "d/t=old"}, made: "d/a", was: old("old"), did: true, says: kept, after: []string{"d/", "0644 d/a=new"}, keeps: []string{"d/", "0644 d/a=old"}},
		{name: "exchanged, and half a copy is kept", act: put, ws: []string{"d/a=new", "d/t=old"}, made: "d/a", was: old("old"), base: []string{"d/t=ol"}, did: true, says: kept, after: []string{"d/", "0644 d/a=new"}, keeps: []string{"d/", "0644 d/a=old"}},
		{name: "exchanged with what somebody changed", act: put, ws: []string{"d/a=new", "d/t=theirs"}, made: "d/a", was: old("old"), says: back, after: []string{"d/", "0644 d/a=theirs"}},
		{name: "exchanged with a directory that holds something", act: put, ws: []string{"d/a=new", "d/t/x=1"}, made: "d/a", was: dir, says: back, after: []string{"d/", "d/a/", "0644 d/a/x=1"}},
		{name: "exchanged with what somebody changed, and ours is gone", act: put, ws: []string{"d/t=theirs"}, made: "none", was: old("old"), says: back, after: []string{"d/", "0644 d/a=theirs"}},
		{name: "exchanged with what somebody changed, and changed again", act: put, ws: []string{"d/a=again", "d/t=theirs"}, made: "none", was: old("old"), says: "replaced twice", after: []string{"d/", "0644 d/a=again", "0644 d/t=theirs"}},
		{name: "a directory exchanged with what somebody changed", act: put, ws: []string{"d/a/", "d/t=theirs"}, made: "d/a", was: old("old"), says: back, after: []string{"d/", "0644 d/a=theirs"}},
		{name: "exchanged, and cannot be put back", act: put, ws: []string{"d/a=new", "d/t=theirs"}, made: "d/a", was: old("old"), hook: breaks("rename", 1, unix.EIO), err: "putting it back", after: []string{"d/", "0644 d/a=new", "0644 d/t=theirs"}},
		{name: "exchanged, and cannot be kept", act: put, ws: []string{"d/a=new", "d/t=old"}, made: "d/a", was: old("old"), hook: breaks("rename", 1, unix.EIO), err: "input/output error", after: []string{"d/", "0644 d/a=new", "0644 d/t=old"}, keeps: []string{"d/"}},
		{name: "taken out", act: remove, ws: []string{"d/t=old"}, was: old("old"), did: true, says: kept, after: []string{"d/"}, keeps: []string{"d/", "0644 d/a=old"}},
		{name: "what somebody changed was taken out", act: remove, ws: []string{"d/t=theirs"}, was: old("old"), says: back, after: []string{"d/", "0644 d/a=theirs"}},
		{name: "what somebody changed was taken out, and made again", act: remove, ws: []string{"d/a=again", "d/t=theirs"}, was: old("old"), says: "replaced twice", after: []string{"d/", "0644 d/a=again", "0644 d/t=theirs"}},
		{name: "taken out, and cannot be put back", act: remove, ws: []string{"d/t=theirs"}, was: old("old"), hook: breaks("rename", 1, unix.EIO), err: "input/output error", after: []string{"d/", "0644 d/t=theirs"}},
		{name: "removed", act: remove, ws: []string{"d/"}, was: old("old"), did: true, after: []string{"d/"}},
		{name: "not removed", act: remove, ws: []string{"d/a=old"}, was: old("old"), after: []string{"d/", "0644 d/a=old"}},
		{name: "removed with its directory", act: remove, ws: []string{"x/"}, was: old("old"), did: true, after: []string{"x/"}},
		{name: "its directory is a link", act: remove, ws: []string{"d->x"}, was: old("old"), after: []string{"d->x"}},
		{name: "prepared for a directory that is gone", act: put, ws: []string{"x/"}, was: old("old"), after: []string{"x/"}},
		{name: "in place", act: put, ws: []string{"d/a=new"}, made: "d/a", left: ptr(old("new")), did: true, after: []string{"d/", "0644 d/a=new"}},
		{name: "in place, and changed", act: put, ws: []string{"d/a=nex"}, made: "d/a", left: ptr(old("new")), says: at, after: []string{"d/", "0644 d/a=nex"}},
		{name: "in place, and it is not known what it is", act: put, ws: []string{"d/a=nex"}, made: "d/a", did: true, after: []string{"d/", "0644 d/a=nex"}},
		{name: "in place, and too large to be hashed", act: put, ws: []string{"d/a=nex"}, made: "d/a", left: &unknown, did: true, after: []string{"d/", "0644 d/a=nex"}},
		{name: "a link in place", act: put, ws: []string{"d/a->x"}, made: "d/a", left: &link, did: true, after: []string{"d/", "d/a->x"}},
		{name: "not in place", act: put, ws: []string{"d/"}, made: "none", left: ptr(old("new")), after: []string{"d/"}},
		{name: "another is in place", act: put, ws: []string{"d/a=new"}, made: "d", left: ptr(old("new")), after: []string{"d/", "0644 d/a=new"}},
		{name: "one on another file system is in place", act: put, ws: []string{"d/a=new"}, made: "/dev", left: ptr(old("new")), after: []string{"d/", "0644 d/a=new"}},
		{name: "nothing was prepared", act: put, ws: []string{"d/a=new"}, left: ptr(old("new")), after: []string{"d/", "0644 d/a=new"}},
		{name: "one call", act: chmod, ws: []string{"d/a=old"}, was: old("old"), after: []string{"d/", "0644 d/a=old"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := newField(t, Overlay).lower(row.ws...)
			f.make(f.dir+"/base", row.base...)
			a := f.applier(f.collect(), nil)
			story := &journalState{made: map[int]tempInode{}, left: map[int]State{}}
			in := &intent{Step: 3, Act: row.act, Path: "d/a", Temp: "t", Was: targetState{State: row.was}}
			if row.act == chmod {
				in.Temp = ""
			}
			if row.made != "" {
				var st unix.Stat_t
				unix.Lstat(f.ws+"/"+row.made, &st)
				m := tempInode{3, st.Ino, st.Dev}
				if row.made == "/dev" { // the number is the same, and the device is not
					unix.Lstat(f.ws+"/d/a", &st)
					m = tempInode{3, st.Ino, st.Dev + 1}
				}
				story.made[3] = m
			}
			if row.left != nil {
				story.left[3] = *row.left
			}
			a.d.hook = row.hook
			did, err := a.recoverStep(story, in)
			if did != row.did || !says(err, row.err) {
				t.Errorf("carried out: %t, %v", did, err)
			}
			var said []string
			for _, p := range a.rep.Recovered {
				said = append(said, p.Why)
			}
			if len(said) != map[bool]int{true: 1}[row.says != ""] || !strings.Contains(strings.Join(said, ""), row.says) {
				t.Errorf("it says %q", said)
			}
			want(t, tree(t, f.ws), row.after...)
			want(t, tree(t, f.dir+"/base"), row.keeps...)
		})
	}
}

func ptr(s State) *State { return &s }

// TestEndOfADeadApply: what its journal says was carried out is written down: which paths
// it made, what became of each change, and that its locks are gone.
func TestEndOfADeadApply(t *testing.T) {
	f := newField(t, Overlay).lower("a=1", "new=1", "r/index.lock="+lockText, "r/"+tempPrefix+"x=", "theirs/index.lock=theirs").upper("a=2", "new=1")
	s := f.collect()
	journal := strings.Join([]string{
		`{"intent":{"step":1,"act":"put","path":"new","change":"c1","temp":"t1","was":{"type":"none"},"done":{"digest":"1"},"last":true}}`,
		`{"intent":{"step":2,"act":"put","path":"over","change":"c2","temp":"t2","was":{"type":"file"},"done":{"digest":"2"},"last":true}}`,
		`{"intent":{"step":3,"act":"remove","path":"gone","change":"c3","temp":"t3","was":{"type":"none"},"done":{"digest":"3"}}}`,
		`{"intent":{"step":4,"act":"put","path":"failed","change":"c4","temp":"t4","was":{"type":"none"},"done":{"digest":"4"},"last":true}}`,
		`{"intent":{"step":7,"act":"put","path":"dir","change":"c5","temp":"t5","was":{"type":"none"},"last":true}}`,
		`{"lefts":[{"step":1,"state":{"type":"file","mode":420,"size":1}}]}`,
		`{"end":1,"did":true}`, `{"end":2,"did":true}`, `{"end":3,"did":true}`, `{"end":4}`, `{"end":7,"did":true}`,
		`{"locks":["r/index.lock","r/` + tempPrefix + `x","theirs/index.lock","none/index.lock"]}`, "",
	}, "\n")
	if err := os.WriteFile(f.dir+"/journal", []byte(journal), 0o600); err != nil {
		t.Fatal(err)
	}
	a := f.applier(s, nil)
	for path, want := range map[workspace.Name]savedChange{
		"c1": {Made: []workspace.Name{"new"}, Done: &appliedState{Digest: "1", Left: State{Type: File, Mode: 0o644, Size: 1}}}, "c2": {Done: &appliedState{Digest: "2"}}, "c3": {}, "c4": {}, "c5": {Made: []workspace.Name{"dir"}},
	} {
		e := a.saved.list[path]
		if e == nil {
			if want.Done != nil || want.Made != nil {
				t.Errorf("%s: nothing is written down", path)
			}
			continue
		}
		if !slices.Equal(e.Made, want.Made) || (e.Done == nil) != (want.Done == nil) || e.Done != nil && (e.Done.Digest != want.Done.Digest || e.Done.Left != want.Done.Left) {
			t.Errorf("%s: %+v", path, e)
		}
	}
	if a.step != 7 {
		t.Errorf("the next step is %d", a.step+1)
	}
	if left, _ := filepath.Glob(f.ws + "/*/*"); !slices.Equal(left, []string{f.ws + "/theirs/index.lock"}) {
		t.Errorf("locks: %q", left)
	}
	again, err := loadDecisions(f.dir)
	if err != nil || again.list["c1"] == nil {
		t.Errorf("on disk: %+v, %v", again.list, err)
	}
}

// TestLockOfAnApply: a lock that an apply made is removed, and so is its temporary
// file, wherever it is; a failure is reported, but not that it is gone.
func TestLockOfAnApply(t *testing.T) {
	const temp = tempPrefix + "x"
	for _, row := range []struct {
		name, path string
		ws         []string
		ready      bool
		hook       func(string, bool) error
		err        string
		after      []string
	}{
		{"ours", "r/index.lock", []string{"r/index.lock=" + lockText}, false, nil, "", []string{"r/"}},
		{"of another", "r/index.lock", []string{"r/index.lock=x"}, false, nil, "", []string{"r/", "0644 r/index.lock=x"}},
		{"gone with the repository", "r/index.lock", nil, false, nil, "", nil},
		{"to become one", "r/" + temp, []string{"r/" + temp + "=half"}, false, nil, "", []string{"r/"}},
		{"to become one, in the review", "r/" + temp, nil, true, nil, "", nil},
		{"it cannot be removed", "r/index.lock", []string{"r/index.lock=" + lockText}, false, breaks("unlink", 1, unix.EIO), "removing the lock", []string{"r/", "0644 r/index.lock=" + lockText}},
		{"it was removed in the meantime", "r/index.lock", []string{"r/index.lock=" + lockText}, false, breaks("unlink", 1, unix.ENOENT), "", []string{"r/", "0644 r/index.lock=" + lockText}},
		{"to become one, and it cannot be removed", "r/" + temp, nil, true, breaks("unlink", 1, unix.EIO), "removing an unfinished lock", nil},
	} {
		f := newField(t, Overlay).lower(row.ws...)
		a := f.applier(f.collect(), nil)
		if row.ready {
			f.make(f.dir+"/ready", temp+"=")
		}
		a.d.hook = row.hook
		if err := a.unlock(row.path); !says(err, row.err) {
			t.Errorf("%s: %v", row.name, err)
		}
		t.Run(row.name, func(t *testing.T) { want(t, tree(t, f.ws), row.after...) })
		if left, _ := os.ReadDir(f.dir + "/ready"); len(left) > 0 && row.err == "" {
			t.Errorf("%s: left %v", row.name, left)
		}
	}
}
