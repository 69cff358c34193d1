//go:build linux

package review

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/programs"
	"holdfast.dev/holdfast/internal/testenv"
)

// A run that is alive in the workspace acts between the steps of an apply. What it
// put into a place is not reported as applied, and does not get there by Apply.
func TestApplyBesideALiveRun(t *testing.T) {
	replaceTemps := func(ws string) {
		temps, _ := filepath.Glob(ws + "/" + tempPrefix + "*")
		for _, name := range temps {
			programs.Write(ws+"/evil", []byte("evil\n"), 0o755)
			os.Rename(ws+"/evil", name)
		}
	}
	for _, row := range []struct {
		name   string
		apart  bool // the review is on another file system
		before func(ws string)
		after  func(ws string)
		once   bool // it acts once; else also on what Apply does then
		fails  bool
	}{
		{name: "nothing is prepared where it could be exchanged", before: replaceTemps},
		{name: "what was prepared beside its place is exchanged", apart: true, before: replaceTemps, once: true, fails: true},
		{name: "what was prepared and what was taken out are exchanged", apart: true, before: replaceTemps, fails: true},
		{name: "what is in place is replaced at once", fails: true, after: func(ws string) {
			for _, name := range []string{"a", "new"} {
				os.WriteFile(ws+"/mine", []byte("mine\n"), 0o644)
				os.Rename(ws+"/mine", ws+"/"+name)
			}
		}},
		{name: "what is in place is written to at once", fails: true, after: func(ws string) {
			os.WriteFile(ws+"/a", []byte("mine\n"), 0o644)
			os.WriteFile(ws+"/new", []byte("mine\n"), 0o644)
		}},
	} {
		for _, name := range []string{"a", "new"} {
			t.Run(row.name+"/"+name, func(t *testing.T) {
				f := newField(t, Overlay)
				if row.apart {
					testenv.Need(t, testenv.SecondFS, nil)
					f = newFieldIn(t, Overlay, inMemory(t))
					f.ws = t.TempDir()
				}
				before, after := row.before, row.after
				old := map[string]string{"a": "old\n", "new": ""}[name]
				f.lower("a=old\n").upper(name + "=ours\n")
				s := f.collect()
				f.acceptAll(s)
				r, err := s.Apply(t.Context(), Options{hook: func(op string, done bool) error {
					if op == "rename" && !done && before != nil {
						before(f.ws)
						if row.once {
							before = nil
						}
					}
					if op == "rename" && done && after != nil {
						after(f.ws)
						after = nil
					}
					return nil
				}})
				if err != nil {
					t.Fatal(err)
				}
				now, _ := os.ReadFile(f.ws + "/" + name)
				applied := slices.Contains(r.Applied, s.Changes[0].Path)
				switch {
				case applied == row.fails || applied && string(now) != "ours\n":
					t.Errorf("applied: %t, in place: %q, %+v", applied, now, r)
				case row.once && string(now) != old, string(now) == "evil\n":
					t.Errorf("in place is %q", now)
				}
				s.Close()
				if again := f.collect(); row.fails && again.Changes[0].Applied {
					t.Error("it counts as applied when it is looked at again")
				}
			})
		}
	}
}

// Where two directories are on one mount and nothing can be renamed between them,
// as with quotas by project, changes are prepared beside their places.
func TestApplyWhereNothingCanBeRenamed(t *testing.T) {
	for _, row := range []struct{ lower, upper, after string }{
		{"a=1\n", "a=2\n", "0644 a=2\n"}, {"", "new=1\n", "0644 new=1\n"}, {"l->a", "l->b", "l->b"}, {"gone=1\n", "gone!", ""}, {"x=1\n", "x->y", "x->y"},
	} {
		f := newField(t, Overlay)
		if row.lower != "" {
			f.lower(row.lower)
		}
		f.upper(row.upper)
		s := f.collect()
		f.acceptAll(s)
		refused := false
		r, err := s.Apply(t.Context(), Options{hook: func(op string, done bool) error {
			if op == "rename" && !done && !refused {
				refused = true
				return unix.EXDEV
			}
			return nil
		}})
		if err != nil || !r.Settled || !refused {
			t.Errorf("%q: %v, %+v", row.upper, err, r)
		}
		var after []string
		if row.after != "" {
			after = []string{row.after}
		}
		want(t, tree(t, f.ws), after...)
		if left, err := os.ReadDir(f.dir + "/ready"); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	}
}

// What is applied has the group that it would have had it been made in its place.
func TestRootGroupOfWhatIsApplied(t *testing.T) {
	testenv.Need(t, testenv.Root, nil)
	f := newField(t, Overlay).lower("shared/a=1\n", "b=1\n", "c=1\n").upper("shared/a=2\n", "shared/new=1\n", "shared/dir/deep=1\n", "b=2\n", "c=2\n")
	for name, mode := range map[string]uint32{"shared": 0o2775, "shared/a": 0o644, "b": 0o644} {
		if err := os.Chown(f.ws+"/"+name, -1, 4242); err != nil {
			t.Fatal(err)
		}
		if err := unix.Chmod(f.ws+"/"+name, mode); err != nil {
			t.Fatal(err)
		}
	}
	s := f.collect()
	f.acceptAll(s)
	f.apply(s, Options{})
	for name, gid := range map[string]uint32{"shared/a": 4242, "shared/new": 4242, "shared/dir": 4242, "shared/dir/deep": 4242, "b": 4242, "c": 0} {
		var st unix.Stat_t
		if err := unix.Stat(f.ws+"/"+name, &st); err != nil || st.Gid != gid || name == "shared/dir" && st.Mode&unix.S_ISGID == 0 {
			t.Errorf("%s: group %d, mode %o, %v", name, st.Gid, st.Mode, err)
		}
	}
}

// The directory of a place is gone when an apply that died is ended: what was taken
// out of it is kept in the review, and what was prepared for it is not.
func TestRecoverWhereThePlaceIsGone(t *testing.T) {
	for _, row := range []struct{ name, change, op, kept string }{
		{"taken out", "d/a!", "rename", "old\n"},
		{"prepared", "d/a=new\n", "", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			f := newField(t, Overlay)
			f.lower("d/a=old\n", "d/b=b\n").upper(row.change)
			s := f.collect()
			f.acceptAll(s)
			dead := false
			_, err := s.Apply(t.Context(), Options{hook: func(op string, done bool) error {
				if dead || op == "rename" && row.op == "" {
					dead = true
					return errKilled
				}
				dead = op == row.op && done
				return nil
			}})
			if !errors.Is(err, errKilled) || !dead {
				t.Fatalf("it did not die: %v", err)
			}
			s.Close()
			if left, _ := os.ReadDir(f.dir + "/ready"); len(left) != 1 {
				t.Fatalf("in the review's own directory: %v", left)
			}
			if err := os.RemoveAll(f.ws + "/d"); err != nil {
				t.Fatal(err)
			}
			f.collect().Close()
			if kept, _ := os.ReadFile(f.dir + "/base/d/a"); string(kept) != row.kept {
				t.Errorf("kept: %q, want %q", kept, row.kept)
			}
			if left, _ := os.ReadDir(f.dir + "/ready"); len(left) != 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// TestWorkspaceOfTheRun: what a run began with is known by its device and number.
func TestWorkspaceOfTheRun(t *testing.T) {
	f := newField(t, Overlay)
	s := f.collect()
	var st unix.Stat_t
	if err := unix.Stat(f.ws, &st); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name     string
		dev, ino uint64
		same     bool
	}{
		{"it is not known", 0, 0, true},
		{"it is that", st.Dev, st.Ino, true},
		{"another directory", st.Dev, st.Ino + 1, false},
		{"the same number on another file system", st.Dev + 1, st.Ino, false},
	} {
		s.dev, s.ino = row.dev, row.ino
		if err := s.checkWorkspace(); (err == nil) != row.same {
			t.Errorf("%s: %v", row.name, err)
		}
	}
}
