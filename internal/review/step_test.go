//go:build linux

package review

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary/workspace"
)

// applier is ready to carry out single steps.
func (f *field) applier(s *Set, hook func(op string, done bool) error) *applier {
	f.t.Helper()
	if err := s.Hold(); err != nil {
		f.t.Fatal(err)
	}
	a := s.applier(f.t.Context(), Options{})
	if err := a.prepare(); err != nil {
		f.t.Fatal(err)
	}
	var err error
	if a.j, err = openJournal(a.d, f.dir); err != nil {
		f.t.Fatal(err)
	}
	a.d.hook = hook
	f.t.Cleanup(func() { a.closeDirs(); a.j.f.Close() })
	return a
}

// says reports whether err is nil if want is "", and otherwise contains want.
func says(err error, want string) bool {
	return (err == nil) == (want == "") && (err == nil || strings.Contains(err.Error(), want))
}

// breaks returns a hook that has the n-th call of an operation fail before it is made.
func breaks(op string, n int, err error) func(string, bool) error {
	return func(o string, done bool) error {
		if o != op || done {
			return nil
		}
		if n--; n == 0 {
			return err
		}
		return nil
	}
}

// TestKeepsWhatIsReplaced: what was swapped out is moved into the review, or copied where
// it cannot be moved; what is there already stays, and nothing unfinished does.
func TestKeepsWhatIsReplaced(t *testing.T) {
	both := func(first func(string, bool) error, more ...func(string, bool) error) func() func(string, bool) error {
		return func() func(string, bool) error {
			return func(op string, done bool) error {
				err := first(op, done)
				for _, m := range more {
					err = errors.Join(err, m(op, done))
				}
				return err
			}
		}
	}
	exdev := func(more ...func(string, bool) error) func() func(string, bool) error {
		return both(breaks("rename", 1, unix.EXDEV), more...)
	}
	for _, row := range []struct {
		name  string
		temp  string
		large bool
		base  []string
		hook  func() func(string, bool) error
		kept  bool
		err   string
		after []string // of base
		left  bool     // under its private name
	}{
		{"it is moved", "0640 temp=1", false, nil, nil, true, "", []string{"d/", "d/e/", "0640 d/e/a=1"}, false},
		{"a link is moved", "temp->x", false, nil, nil, true, "", []string{"d/", "d/e/", "d/e/a->x"}, false},
		{"one is there", "temp=1", false, []string{"d/e/a=0"}, nil, false, "", []string{"d/", "d/e/", "0644 d/e/a=0"}, true},
		{"it cannot be moved", "temp=1", false, nil, both(breaks("rename", 1, unix.EIO)), false, "input/output error", []string{"d/", "d/e/"}, true},
		{"a file is where its directory would be", "temp=1", false, []string{"d=0"}, nil, false, "", []string{"0644 d=0"}, true},
		{"a link is where its directory would be", "temp=1", false, []string{"d->x"}, nil, false, "symbolic link", []string{"d->x"}, true},
		{"its directory cannot be made", "temp=1", false, nil, both(breaks("mkdir", 2, unix.EIO)), false, "input/output error", []string{"d/"}, true},
		{"its directory is there by then", "temp=1", false, []string{"d/"}, both(breaks("mkdir", 1, unix.EEXIST)), false, "no such file", []string{"d/"}, true},
		{"it is copied", "0640 temp=1", false, nil, exdev(), false, "", []string{"d/", "d/e/", "0640 d/e/a=1"}, true},
		{"a link is copied", "temp->x", false, nil, exdev(), false, "", []string{"d/", "d/e/", "d/e/a->x"}, true},
		{"it is copied once more", "temp=1", false, []string{"d/e/temp=half"}, exdev(), false, "", []string{"d/", "d/e/", "0644 d/e/a=1"}, true},
		{"a copy is there", "temp=1", false, []string{"d/e/a=0"}, exdev(), false, "", []string{"d/", "d/e/", "0644 d/e/a=0"}, true},
		{"half a copy cannot be removed", "temp=1", false, []string{"d/e/temp=half"}, exdev(breaks("unlink", 1, unix.EIO)), false, "input/output error", []string{"d/", "d/e/", "0644 d/e/temp=half"}, true},
		{"a pipe is not copied", "temp|", false, nil, exdev(), false, "", []string{"d/", "d/e/"}, true},
		{"what is too large is not copied", "temp=1", true, nil, exdev(), false, "", []string{"d/", "d/e/"}, true},
		{"a copy cannot be made", "temp=1", false, nil, exdev(breaks("create", 1, unix.EIO)), false, "input/output error", []string{"d/", "d/e/"}, true},
		{"a copy cannot be written", "temp=1", false, nil, exdev(breaks("write", 1, unix.ENOSPC)), false, "no space", []string{"d/", "d/e/"}, true},
		{"a copy is not on disk", "temp=1", false, nil, exdev(breaks("fsync", 1, unix.EIO)), false, "input/output error", []string{"d/", "d/e/", "0644 d/e/temp=1"}, true},
		{"a copy cannot get its name", "temp=1", false, nil, exdev(breaks("rename", 2, unix.EIO)), false, "input/output error", []string{"d/", "d/e/", "0644 d/e/temp=1"}, true},
		{"a copy of a link cannot be made", "temp->x", false, nil, exdev(breaks("symlink", 1, unix.EIO)), false, "input/output error", []string{"d/", "d/e/"}, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := newField(t, Overlay).lower(row.temp)
			f.make(f.dir+"/base", row.base...)
			if row.large {
				if err := os.Truncate(f.ws+"/temp", maxKept+1); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.MkdirAll(f.dir+"/base", 0o700); err != nil {
				t.Fatal(err)
			}
			var hook func(string, bool) error
			if row.hook != nil {
				hook = row.hook()
			}
			s := f.collect()
			a := f.applier(s, hook)
			var st unix.Statx_t
			if err := status(a.trees.tree, "temp", &st); err != nil {
				t.Fatal(err)
			}
			kept, err := a.moveToReview(a.trees.tree, "temp", "d/e/a", &st)
			if kept != row.kept || !says(err, row.err) {
				t.Errorf("kept: %t, %v", kept, err)
			}
			want(t, tree(t, f.dir+"/base"), row.after...)
			if _, err := os.Lstat(f.ws + "/temp"); (err == nil) != row.left {
				t.Errorf("under its private name: %v", err)
			}
		})
	}
}

// TestSwapAmongOthers: a swap happens only if what it replaces is what was expected and
// the directory is where it was; otherwise the other program's state stays.
func TestSwapAmongOthers(t *testing.T) {
	const moved, ours = `directory "d" was moved away in the meantime`, "ours"
	away := func(ws string) { os.Rename(ws+"/d", ws+"/away"); os.Mkdir(ws+"/d", 0o755) }
	write := func(ws string) { os.WriteFile(ws+"/d/a", []byte("theirs"), 0o644) }
	onRename := func(n int, does func(ws string)) func(ws string) func(string, bool) error {
		return func(ws string) func(string, bool) error {
			return func(op string, done bool) error {
				if op == "rename" && done {
					if n--; n == 0 {
						does(ws)
					}
				}
				return nil
			}
		}
	}
	fails := func(n int, err error) func(string) func(string, bool) error {
		return func(string) func(string, bool) error { return breaks("rename", n, err) }
	}
	for _, row := range []struct {
		name   string
		lower  []string
		before func(ws string)
		hook   func(ws string) func(string, bool) error
		err    string
		after  []string
	}{
		{"all is as expected", []string{"d/a=old"}, nil, nil, "", []string{"d/", "0644 d/a=ours"}},
		{"nothing is there, as expected", []string{"d/"}, nil, nil, "", []string{"d/", "0644 d/a=ours"}},
		{"the directory was moved", []string{"d/a=old"}, away, nil, moved, []string{"away/", "0644 away/a=old", "d/"}},
		{"the directory of a new name was moved", []string{"d/"}, away, nil, moved, []string{"away/", "d/"}},
		{"it was removed", []string{"d/a=old"}, func(ws string) { os.Remove(ws + "/d/a") }, nil, "it was removed in the meantime", []string{"d/"}},
		{"it was changed", []string{"d/a=old"}, write, nil, "it was changed in the meantime", []string{"d/", "0644 d/a=theirs"}},
		{"something appeared", []string{"d/"}, write, nil, "something appeared there in the meantime", []string{"d/", "0644 d/a=theirs"}},
		{"names cannot be exchanged", []string{"d/a=old"}, nil, fails(1, unix.EINVAL), "cannot exchange two names", []string{"d/", "0644 d/a=old"}},
		{"it cannot be exchanged", []string{"d/a=old"}, nil, fails(1, unix.EIO), "input/output error", []string{"d/", "0644 d/a=old"}},
		{"it cannot get its name", []string{"d/"}, nil, fails(1, unix.EIO), "input/output error", []string{"d/"}},
		{"the directory was moved with it", []string{"d/a=old"}, nil, onRename(1, away), moved, []string{"away/", "0644 away/a=old", "d/"}},
		{"the directory was moved with what is new", []string{"d/"}, nil, onRename(1, away), moved, []string{"away/", "d/"}},
		{"it was changed, and what took its place was removed", []string{"d/a=old"}, write, onRename(1, func(ws string) { os.Remove(ws + "/d/a") }), "it was changed in the meantime", []string{"d/", "0644 d/a=theirs"}},
		{"it was changed, and cannot be put back", []string{"d/a=old"}, write, fails(2, unix.EIO), "putting it back", []string{"d/", "0644 d/a=ours"}},
		{"it was changed, and changed again", []string{"d/a=old"}, write, onRename(1, func(ws string) { os.Remove(ws + "/d/a"); write(ws); os.WriteFile(ws+"/d/a", []byte("again"), 0o644) }),
			"replaced twice", []string{"d/", "0644 d/a=again"}},
		{"it holds something by now", []string{"d/a/"}, func(ws string) { os.WriteFile(ws+"/d/a/x", nil, 0o644) }, nil, "it holds something", []string{"d/", "d/a/", "0644 d/a/x="}},
		{"an empty directory goes", []string{"d/a/"}, nil, nil, "", []string{"d/", "0644 d/a=ours"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := newField(t, Overlay).lower(row.lower...).upper("d/a=" + ours)
			s := f.collect()
			a := f.applier(s, nil)
			dir, err := a.dir("d")
			if err != nil {
				t.Fatal(err)
			}
			w := a.work(&Change{Path: "d/a", Type: File, Mode: 0o644}, put, "d/a", dir)
			w.ours, w.whole = State{Type: File, Mode: 0o644}, true
			if w.in.Was, err = readExpected(dir, "a"); err != nil {
				t.Fatal(err)
			}
			if err := a.make(w); err != nil {
				t.Fatal(err)
			}
			defer w.temp.Close()
			if row.before != nil {
				row.before(f.ws)
			}
			if row.hook != nil {
				a.d.hook = row.hook(f.ws)
			}
			if err := a.swap(w); !says(err, row.err) {
				t.Errorf("%v", err)
			}
			want(t, tree(t, f.ws), row.after...)
		})
	}
}

// TestTakeAwayAmongOthers: a file goes only if it is the one that was expected.
func TestTakeAwayAmongOthers(t *testing.T) {
	away := func(ws string) { os.Rename(ws+"/d", ws+"/away"); os.Mkdir(ws+"/d", 0o755) }
	write := func(ws string) { os.WriteFile(ws+"/d/a", []byte("theirs"), 0o644) }
	for _, row := range []struct {
		name   string
		before func(ws string)
		hook   func(string, bool) error
		err    string
		after  []string
	}{
		{"all is as expected", nil, nil, "", []string{"d/"}},
		{"the directory was moved", away, nil, "was moved away in the meantime", []string{"away/", "0644 away/a=old", "d/"}},
		{"it was removed", func(ws string) { os.Remove(ws + "/d/a") }, nil, "", []string{"d/"}},
		{"it cannot be moved", nil, breaks("rename", 1, unix.EIO), "input/output error", []string{"d/", "0644 d/a=old"}},
		{"it was changed", write, nil, "it was changed in the meantime", []string{"d/", "0644 d/a=theirs"}},
		{"it was changed, and cannot be put back", write, breaks("rename", 2, unix.EIO), "putting it back", []string{"d/"}},
	} {
		f := newField(t, Overlay).lower("d/a=old")
		a := f.applier(f.collect(), nil)
		dir, err := a.dir("d")
		if err != nil {
			t.Fatal(err)
		}
		w := a.work(&Change{Path: "d/a"}, remove, "d/a", dir)
		if w.in.Was, err = readExpected(dir, "a"); err != nil {
			t.Fatal(err)
		}
		if row.before != nil {
			row.before(f.ws)
		}
		a.d.hook = row.hook
		if err := a.takeAway(w); !says(err, row.err) {
			t.Errorf("%s: %v", row.name, err)
		}
		t.Run(row.name, func(t *testing.T) { want(t, tree(t, f.ws), row.after...) })
	}
}

// TestDirectoryThatGoes: a directory goes when it is empty and where it was, and is known
// to have been there then.
func TestDirectoryThatGoes(t *testing.T) {
	for _, row := range []struct {
		name   string
		before func(ws string)
		hook   func(string, bool) error
		err    string
		after  []string
		kept   []string
	}{
		{"it is empty", nil, nil, "", []string{"d/"}, []string{"d/", "d/e/"}},
		{"it is not empty", func(ws string) { os.WriteFile(ws+"/d/e/x", nil, 0o644) }, nil, "it holds something", []string{"d/", "d/e/", "0644 d/e/x="}, nil},
		{"it is gone", func(ws string) { os.Remove(ws + "/d/e") }, nil, "", []string{"d/"}, nil},
		{"it was moved", func(ws string) { os.Rename(ws+"/d", ws+"/away"); os.Mkdir(ws+"/d", 0o755) }, nil, "moved away in the meantime", []string{"away/", "away/e/", "d/"}, nil},
		{"it cannot be removed", nil, breaks("rmdir", 1, unix.EIO), "input/output error", []string{"d/", "d/e/"}, nil},
		{"it cannot be noted", nil, breaks("mkdir", 1, unix.EIO), "input/output error", []string{"d/"}, nil},
	} {
		f := newField(t, Overlay).lower("d/e/")
		a := f.applier(f.collect(), nil)
		dir, err := a.dir("d")
		if err != nil {
			t.Fatal(err)
		}
		if row.before != nil {
			row.before(f.ws)
		}
		a.d.hook = row.hook
		if err := a.rmdirStep(a.work(&Change{Path: "d/e"}, rmdir, "d/e", dir)); !says(err, row.err) {
			t.Errorf("%s: %v", row.name, err)
		}
		t.Run(row.name, func(t *testing.T) {
			want(t, tree(t, f.ws), row.after...)
			want(t, tree(t, f.dir+"/base"), row.kept...)
		})
	}
}

// TestBitsOfWhatIsExpected: bits are set on the file that was looked at, under the one
// name that it had, and a directory stays open to its owner.
func TestBitsOfWhatIsExpected(t *testing.T) {
	for _, row := range []struct {
		name, path string
		ours       State
		before     func(ws string)
		uid        int
		id         bool
		err        string
		mode       uint32
	}{
		{"a file", "a", State{Type: File, Mode: 0o755}, nil, -1, true, "", 0o755},
		{"a file of which the content is known", "a", State{Type: File, Mode: 0o755}, nil, -1, false, "", 0o755},
		{"a directory", "d", State{Type: Dir, Mode: 0o055}, nil, -1, true, "", 0o755},
		{"a directory of the owner of the workspace", "d", State{Type: Dir, Mode: 0o700}, nil, os.Geteuid(), true, "", 0o700},
		{"a directory of another", "d", State{Type: Dir, Mode: 0o700}, nil, os.Geteuid() + 1, true, "it belongs to user", 0o755},
		{"a file of another", "a", State{Type: File, Mode: 0o600}, nil, os.Geteuid() + 1, true, "", 0o600},
		{"a directory, and the workspace is of root", "d", State{Type: Dir, Mode: 0o700}, nil, 0, true, "", 0o700},
		{"another type", "a", State{Type: Dir, Mode: 0o755}, nil, -1, true, "it was replaced in the meantime", 0o644},
		{"another file", "a", State{Type: File, Mode: 0o755}, func(ws string) { os.WriteFile(ws+"/b", []byte("old"), 0o644); os.Rename(ws+"/b", ws+"/a") }, -1, true, "it was replaced in the meantime", 0o644},
		{"another file that is the same", "a", State{Type: File, Mode: 0o755}, func(ws string) { os.WriteFile(ws+"/b", []byte("old"), 0o644); os.Rename(ws+"/b", ws+"/a") }, -1, false, "", 0o755},
		{"a file with two names", "a", State{Type: File, Mode: 0o755}, func(ws string) { os.Link(ws+"/a", ws+"/b") }, -1, true, "another name", 0o644},
		{"other content", "a", State{Type: File, Mode: 0o755}, func(ws string) { os.WriteFile(ws+"/a", []byte("new"), 0o644) }, -1, true, "it was changed in the meantime", 0o644},
		{"other bits", "a", State{Type: File, Mode: 0o755}, func(ws string) { os.Chmod(ws+"/a", 0o600) }, -1, true, "it was changed in the meantime", 0o600},
		{"nothing", "a", State{Type: File, Mode: 0o755}, func(ws string) { os.Remove(ws + "/a") }, -1, true, "no such file", 0},
	} {
		f := newField(t, Overlay).lower("a=old", "d/e/")
		a := f.applier(f.collect(), nil)
		a.d.uid = row.uid
		dir, err := a.dir("")
		if err != nil {
			t.Fatal(err)
		}
		w := a.work(&Change{Path: workspace.Name(row.path)}, chmod, row.path, dir)
		w.ours = row.ours
		if w.in.Was, err = readExpected(dir, row.path); err != nil {
			t.Fatal(err)
		}
		if !row.id {
			w.in.Was.ID = nil
		}
		if row.before != nil {
			row.before(f.ws)
		}
		if err := a.chmodStep(w); !says(err, row.err) {
			t.Errorf("%s: %v", row.name, err)
		}
		var st unix.Stat_t
		if unix.Stat(f.ws+"/"+row.path, &st); st.Mode&0o7777 != row.mode {
			t.Errorf("%s: mode %o", row.name, st.Mode)
		}
	}
}
