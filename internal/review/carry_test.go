//go:build linux

package review

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary/workspace"
)

// planned is a step that puts the run's file d/a into its place, prepared if so asked.
func (f *field) planned(a *applier, beside, prepare bool) *work {
	f.t.Helper()
	dir, err := a.dir("d")
	if err != nil {
		f.t.Fatal(err)
	}
	a.crossMount = beside
	w := a.work(&Change{Path: "d/a", Type: File, Mode: 0o644}, put, "d/a", dir)
	w.ours, w.whole, w.in.Done = State{Type: File, Mode: 0o644}, true, &appliedState{}
	if w.in.Was, err = readExpected(dir, "a"); err != nil {
		f.t.Fatal(err)
	}
	if prepare {
		if err := a.make(w); err != nil {
			f.t.Fatal(err)
		}
		f.t.Cleanup(func() { w.temp.Close() })
	}
	return w
}

// temps counts what has a private name.
func (f *field) temps() int {
	a, _ := filepath.Glob(f.ws + "/d/" + tempPrefix + "*")
	b, _ := filepath.Glob(f.dir + "/ready/*")
	return len(a) + len(b)
}

// TestStepThatFails: what was prepared for a step that failed is removed, and the
// journal says that the step is over, unless another program's file has the private
// name.
func TestStepThatFails(t *testing.T) {
	write := func(ws string) { os.WriteFile(ws+"/d/a", []byte("theirs"), 0o644) }
	for _, row := range []struct {
		name   string
		act    act
		lower  string
		beside bool
		before func(ws string)
		hook   func(ws string) func(string, bool) error
		err    string
		open   int // steps that are not over
		temps  int
	}{
		{"it does not", put, "d/a=old", false, nil, nil, "", 0, 0},
		{"two file systems", put, "d/a=old", false, nil, func(string) func(string, bool) error { return breaks("rename", 1, unix.EXDEV) }, "cross-device", 1, 1},
		{"two file systems, and it was beside its place", put, "d/a=old", true, nil, func(string) func(string, bool) error { return breaks("rename", 1, unix.EXDEV) }, "cross-device", 0, 0},
		{"something appeared", put, "d/", false, write, nil, "appeared", 0, 0},
		{"it was changed", put, "d/a=old", false, write, nil, "changed in the meantime", 0, 0},
		{"it was exchanged at once", put, "d/", false, nil, func(ws string) func(string, bool) error {
			return func(op string, done bool) error {
				if op == "rename" && done {
					os.WriteFile(ws+"/x", []byte("theirs"), 0o644)
					os.Rename(ws+"/x", ws+"/d/a")
				}
				return nil
			}
		}, "as soon as it was applied", 0, 0},
		{"what was there cannot be put back", put, "d/a=old", false, write, func(string) func(string, bool) error { return breaks("rename", 2, unix.EIO) }, "putting it back", 1, 1},
		{"it was replaced twice", put, "d/a=old", false, write, func(ws string) func(string, bool) error {
			n := 0
			return func(op string, done bool) error {
				if op == "rename" && done {
					if n++; n == 1 {
						os.Remove(ws + "/d/a")
						os.WriteFile(ws+"/d/a", []byte("again"), 0o644)
					}
				}
				return nil
			}
		}, "replaced twice", 1, 1},
		{"it is taken away", remove, "d/a=old", false, nil, nil, "", 0, 0},
		{"what is taken away was changed", remove, "d/a=old", false, write, nil, "changed in the meantime", 0, 0},
		{"it cannot be taken away", remove, "d/a=old", false, nil, func(string) func(string, bool) error { return breaks("rename", 1, unix.EIO) }, "input/output", 1, 0},
		{"it cannot be taken away to another file system", remove, "d/a=old", false, nil, func(string) func(string, bool) error { return breaks("rename", 1, unix.EXDEV) }, "cross-device", 1, 0},
		{"its bits cannot be set", chmod, "d/a=old", false, nil, func(string) func(string, bool) error { return breaks("chmod", 1, unix.EIO) }, "input/output", 0, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := newField(t, Overlay).lower(row.lower).upper("d/a=ours")
			a := f.applier(f.collect(), nil)
			w := f.planned(a, row.beside, row.act == put)
			if w.in.Act = row.act; row.act == chmod {
				w.in.Temp = ""
			}
			if row.before != nil {
				row.before(f.ws)
			}
			if row.hook != nil {
				a.d.hook = row.hook(f.ws)
			}
			a.j.open = 1
			if err := a.carryOne(w); !says(err, row.err) {
				t.Errorf("%v", err)
			}
			if n := f.temps(); a.j.open != row.open || n != row.temps {
				t.Errorf("%d steps are open, %d things have private names", a.j.open, n)
			}
		})
	}
}

// TestStepsThatAreCarried: nothing is put into place before what is prepared is noted,
// and a failure is reported once, for its change or for the whole.
func TestStepsThatAreCarried(t *testing.T) {
	for _, row := range []struct {
		name    string
		hook    func(end func()) func(string, bool) error
		err     string
		applied int
		refused string
		inPlace bool
	}{
		{"it goes well", nil, "", 1, "", true},
		{"a full disk", func(func()) func(string, bool) error { return breaks("write", 2, unix.ENOSPC) }, "", 0, "no space", false},
		{"it is not on disk", func(func()) func(string, bool) error { return breaks("fsync", 2, unix.EIO) }, "", 0, "input/output", false},
		{"the journal cannot be begun", func(func()) func(string, bool) error { return breaks("write", 1, unix.EIO) }, "writing the journal", 0, "", false},
		{"the journal cannot be written", func(func()) func(string, bool) error { return breaks("write", 3, unix.EIO) }, "writing the journal", 0, "", false},
		{"it is ended", func(end func()) func(string, bool) error {
			return func(op string, done bool) error {
				if op == "fsync" {
					end()
				}
				return nil
			}
		}, "context canceled", 0, "", false},
		{"it is ended when it was prepared", func(end func()) func(string, bool) error {
			n := 0
			return func(op string, done bool) error {
				if op == "fsync" && !done {
					if n++; n == 3 {
						end()
					}
				}
				return nil
			}
		}, "context canceled", 0, "", false},
		{"its name cannot be given", func(func()) func(string, bool) error { return breaks("rename", 1, unix.EIO) }, "", 0, "input/output", false},
		{"it cannot be renamed from the review", func(func()) func(string, bool) error { return breaks("rename", 1, unix.EXDEV) }, "", 1, "", true},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := newField(t, Overlay).lower("d/").upper("d/a=ours")
			a := f.applier(f.collect(), nil)
			ctx, end := context.WithCancel(t.Context())
			defer end()
			a.ctx = ctx
			w := f.planned(a, false, false)
			w.in.Last = true
			if row.hook != nil {
				a.d.hook = row.hook(end)
			}
			if err := a.carry([]*work{w}); !says(err, row.err) {
				t.Errorf("%v", err)
			}
			if len(a.rep.Applied) != row.applied || len(a.rep.Refused) != map[bool]int{true: 1}[row.refused != ""] || row.refused != "" && !strings.Contains(a.rep.Refused[0].Why, row.refused) {
				t.Errorf("%+v", a.rep)
			}
			if _, err := os.Lstat(f.ws + "/d/a"); (err == nil) != row.inPlace || f.temps() > 0 || a.j.open != 0 {
				t.Errorf("in place: %t, %d private names, %d steps are open", err == nil, f.temps(), a.j.open)
			}
			if row.inPlace {
				story, err := readJournal(f.dir)
				if err != nil || len(story.made) != len(story.steps) && len(story.steps) != 2 || !story.ended[w.in.Step] || story.left[w.in.Step].Size != 4 {
					t.Errorf("%+v, %v", story, err)
				}
				if made := a.saved.list["d/a"].Made; !slices.Equal(made, []workspace.Name{"d/a"}) || !a.trees.gone["d/a"] {
					t.Errorf("made: %q", made)
				}
			}
		})
	}
	// What comes after a step that failed is not carried out, of the same change.
	f := newField(t, Overlay).lower("d/", "e/").upper("d/a=ours")
	a := f.applier(f.collect(), breaks("rename", 1, unix.EIO))
	one, two := f.planned(a, false, false), f.planned(a, false, false)
	two.c = one.c
	if err := a.carry([]*work{one, two}); err != nil || !one.failed || !two.failed || f.temps() > 0 || a.j.open != 0 || len(a.rep.Refused) != 1 {
		t.Errorf("%v, %+v, %d steps are open", err, a.rep, a.j.open)
	}
	if err := a.carry(nil); err != nil {
		t.Errorf("nothing: %v", err)
	}
}

// TestWhatArrived: what is in place is ours if it is the same file with the same bits and
// content.
func TestWhatArrived(t *testing.T) {
	const replaced, changed = "something else was in its place", "it was changed as soon as"
	for _, row := range []struct {
		name  string
		does  func(f *field, w *work)
		err   string
		large bool // it is compared with the run's, as no digest is known
	}{
		{"ours", nil, "", false},
		{"nothing", func(f *field, w *work) { os.Remove(f.ws + "/d/a") }, replaced, false},
		{"another", func(f *field, w *work) {
			os.WriteFile(f.ws+"/x", []byte("ours"), 0o644)
			os.Rename(f.ws+"/x", f.ws+"/d/a")
		}, replaced, false},
		{"of another device", func(f *field, w *work) { w.ino.Dev++ }, replaced, false},
		{"of other content", func(f *field, w *work) { os.WriteFile(f.ws+"/d/a", []byte("xurs"), 0o644) }, changed, false},
		{"longer", func(f *field, w *work) { os.WriteFile(f.ws+"/d/a", []byte("ours and more"), 0o644) }, changed, false},
		{"of other bits", func(f *field, w *work) { os.Chmod(f.ws+"/d/a", 0o755) }, changed, false},
		{"of other bits, and not of a file", func(f *field, w *work) { os.Chmod(f.ws+"/d/a", 0o755); w.temp.Close(); w.temp = nil }, "", false},
		{"as the run's", nil, "", true},
		{"not as the run's", func(f *field, w *work) { os.WriteFile(f.ws+"/d/a", []byte("xurs"), 0o644) }, changed, true},
		{"of other bits than the run's", func(f *field, w *work) { os.Chmod(f.ws+"/d/a", 0o755) }, changed, true},
		{"and the run's is gone", func(f *field, w *work) { os.Remove(f.dir + "/upper/d/a") }, "no such file", true},
	} {
		f := newField(t, Overlay).lower("d/").upper("d/a=ours")
		a := f.applier(f.collect(), nil)
		w := f.planned(a, false, true)
		if err := unix.Renameat(w.tempDir, w.in.Temp, w.dir, "a"); err != nil {
			t.Fatal(err)
		}
		if row.large {
			w.ours.SHA256 = ""
		}
		if row.does != nil {
			row.does(f, w)
		}
		if err := a.checkPlaced(w); !says(err, row.err) {
			t.Errorf("%s: %v", row.name, err)
		}
	}
}

// TestWhatIsPutOutAgain: what got into the place by mistake leaves it, and what was there
// is there again if it is what it was.
func TestWhatIsPutOutAgain(t *testing.T) {
	for _, row := range []struct {
		name        string
		lower       string
		beside      bool
		temp        string // what has the private name; "" for nothing
		hook        func(string, bool) error
		err         string
		after, kept []string
		temps       int
	}{
		{"nothing was there, from the review", "d/", false, "", nil, "", []string{"d/", "0644 d/a=evil"}, nil, 0},
		{"it was there, from the review", "d/a=old", false, "old", nil, "", []string{"d/", "0644 d/a=evil"}, []string{"d/", "0644 d/a=old"}, 0},
		{"nothing was there", "d/", true, "", nil, "", []string{"d/"}, nil, 0},
		{"it was there", "d/a=old", true, "old", nil, "", []string{"d/", "0644 d/a=old"}, nil, 0},
		{"it was there, and was exchanged too", "d/a=old", true, "bad", nil, "", []string{"d/"}, nil, 0},
		{"it was there, and cannot be put back", "d/a=old", true, "old", breaks("rename", 1, unix.EIO), "putting it back", nil, nil, 1},
		{"it cannot be taken out", "d/", true, "", breaks("rename", 1, unix.EIO), "removing it again", []string{"d/", "0644 d/a=evil"}, nil, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := newField(t, Overlay).lower(row.lower).upper("d/a=ours")
			a := f.applier(f.collect(), nil)
			w := f.planned(a, row.beside, true)
			w.in.Was.ID = nil
			os.Remove(f.ws + "/d/" + w.in.Temp)
			os.Remove(f.dir + "/ready/" + w.in.Temp)
			if at := f.ws + "/d/"; row.temp != "" {
				if !row.beside {
					at = f.dir + "/ready/"
				}
				if err := os.WriteFile(at+w.in.Temp, []byte(row.temp), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			f.lower("d/a=evil")
			a.d.hook = row.hook
			if err := a.takeOut(w); !says(err, row.err) {
				t.Errorf("%v", err)
			}
			if row.after != nil {
				want(t, tree(t, f.ws), row.after...)
			}
			want(t, tree(t, f.dir+"/base"), row.kept...)
			if n := f.temps(); n != row.temps {
				t.Errorf("%d private names", n)
			}
		})
	}
}

// TestLockIsTaken: git's lock is made in the review and moved, or beside its place where
// it cannot be moved.
func TestLockIsTaken(t *testing.T) {
	for _, row := range []struct {
		name     string
		lower    string
		hook     func(string, bool) error
		separate bool // known before
		err      error
		beside   bool
	}{
		{"it is moved", "r/", nil, false, nil, false},
		{"it cannot be moved", "r/", breaks("rename", 1, unix.EXDEV), false, nil, true},
		{"it is made beside its place", "r/", nil, true, nil, true},
		{"it cannot even be renamed", "r/", breaks("rename", 1, unix.EXDEV), true, unix.EXDEV, true},
		{"there is one", "r/index.lock=", nil, false, unix.EEXIST, false},
		{"it cannot be written", "r/", breaks("write", 1, unix.ENOSPC), false, unix.ENOSPC, false},
		{"it cannot be made", "r/", breaks("create", 1, unix.EIO), false, unix.EIO, false},
		{"it cannot be moved, nor removed", "r/", func() func(string, bool) error {
			r, u := breaks("rename", 1, unix.EXDEV), breaks("unlink", 1, unix.EIO)
			return func(op string, done bool) error { return errors.Join(r(op, done), u(op, done)) }
		}(), false, unix.EIO, true},
	} {
		f := newField(t, Overlay).lower(row.lower)
		a := f.applier(f.collect(), nil)
		dir, err := a.dir("r")
		if err != nil {
			t.Fatal(err)
		}
		a.crossMount, a.d.hook = row.separate, row.hook
		lock, err := a.takeLock(dir, "temp")
		if !errors.Is(err, row.err) || (lock != nil) != (row.err == nil) || a.crossMount != row.beside {
			t.Errorf("%s: %v, separate: %t", row.name, err, a.crossMount)
		}
		if lock == nil {
			continue
		}
		lock.Close()
		t.Run(row.name, func(t *testing.T) { want(t, tree(t, f.ws), "r/", "0600 r/index.lock="+lockText) })
		if n := f.temps(); n > 0 {
			t.Errorf("%s: %d private names", row.name, n)
		}
	}
}

// TestDirectoriesOfTheRunAreOpened: permissions that the run took from the owner are
// given back, and what is not a directory is refused.
func TestDirectoriesOfTheRunAreOpened(t *testing.T) {
	f := newField(t, Overlay).lower("open/", "0300 closed/", "0055 shut/", "file=1", "l->open")
	root, err := unix.Open(f.ws, openTop, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(root)
	for name, want := range map[string]struct {
		opened bool
		mode   uint32
		err    error
	}{"open": {false, 0o755, nil}, "closed": {true, 0o700, nil}, "shut": {true, 0o755, nil}, "file": {false, 0o644, unix.ENOTDIR}, "none": {false, 0, unix.ENOENT}, "l": {false, 0o755, unix.ELOOP}} {
		d, opened, err := openOwn(root, name)
		if name == "l" && err != nil {
			err = unix.ELOOP // or ENOTDIR
		}
		if !errors.Is(err, want.err) || opened != want.opened || (d != nil) != (want.err == nil) {
			t.Errorf("%s: %t, %v", name, opened, err)
		}
		var st unix.Stat_t
		if unix.Stat(f.ws+"/"+name, &st); st.Mode&0o7777 != want.mode {
			t.Errorf("%s: mode %o", name, st.Mode)
		}
		if d != nil {
			if _, err := d.Readdirnames(1); err != nil && err.Error() != "EOF" {
				t.Errorf("%s: %v", name, err)
			}
			d.Close()
		}
	}
}
