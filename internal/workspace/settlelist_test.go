//go:build linux

package workspace

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A workspace that the host moved is looked through where it is now if it was held;
// another directory in its place is left alone.
func TestSettleFindsItsTree(t *testing.T) {
	for name, tt := range map[string]struct {
		held   bool
		during func(t *testing.T, w string)
		warns  string
		taken  string // what is moved out, by its end
	}{
		"untouched and held":        {true, func(*testing.T, string) {}, "", "w/.envrc"},
		"untouched":                 {false, func(*testing.T, string) {}, "", "w/.envrc"},
		"moved and held":            {true, func(t *testing.T, w string) { must(t, os.Rename(w, w+"-moved")) }, "was moved during the run", "w-moved/.envrc"},
		"moved":                     {false, func(t *testing.T, w string) { must(t, os.Rename(w, w+"-moved")) }, "is gone", ""},
		"removed and held":          {true, func(t *testing.T, w string) { must(t, os.RemoveAll(w)) }, "is gone", ""},
		"removed":                   {false, func(t *testing.T, w string) { must(t, os.RemoveAll(w)) }, "is gone", ""},
		"replaced":                  {false, func(t *testing.T, w string) { must(t, os.Rename(w, w+"-moved")); write(t, w, ".envrc", "") }, "was moved or replaced", ""},
		"replaced by a link and so": {false, func(t *testing.T, w string) { must(t, os.Rename(w, w+"-moved")); must(t, os.Symlink(w+"-moved", w)) }, "", "error"},
	} {
		w := tempRoot(t) + "/w"
		mkdir(t, w)
		s := scanned(t, w)
		if tt.held {
			must(t, s.Hold())
		}
		write(t, w, ".envrc", "")
		tt.during(t, w)
		r, err := s.Settle(t.Context(), tempRoot(t))
		s.Release()
		if (err != nil) != (tt.taken == "error") {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err != nil {
			continue
		}
		if warned := strings.Join(r.Warnings, "|"); !strings.Contains(warned, tt.warns) || (warned == "") != (tt.warns == "") {
			t.Errorf("%s: warnings %q", name, r.Warnings)
		}
		if n := len(r.Quarantined); n > 1 || (n == 1) != (tt.taken != "") || n == 1 && !strings.HasSuffix(string(r.Quarantined[0].Path), "/"+tt.taken) {
			t.Errorf("%s: moved out: %+v", name, r.Quarantined)
		}
	}
	s := &Snapshot{Root: "/none/such"}
	if err := s.Hold(); err == nil {
		t.Error("a tree that is not there is held")
	}
	s.Release()
}

// A row is unchanged if it is the same file; its time of change is told where the
// command could not change it.
func TestUnchangedRows(t *testing.T) {
	st := unix.Statx_t{Ino: 7, Dev_major: 1, Dev_minor: 2, Mode: unix.S_IFREG | 0o644, Ctime: unix.StatxTimestamp{Sec: 3}}
	for name, c := range map[string]struct {
		change          func(*row)
		unchanged, told bool
	}{
		"the same":                      {func(*row) {}, true, false},
		"another mode":                  {func(r *row) { r.Mode = unix.S_IFREG }, true, false},
		"changed":                       {func(r *row) { r.Ctime = 4 }, true, true},
		"a changed hard link":           {func(r *row) { r.Ctime, r.Linked = 4, true }, true, false},
		"a changed closed directory":    {func(r *row) { r.Ctime, r.Closed = 4, true }, true, false},
		"another number":                {func(r *row) { r.Ino = 8 }, false, false},
		"another device":                {func(r *row) { r.Dev = 9 }, false, false},
		"another type":                  {func(r *row) { r.Mode = unix.S_IFDIR | 0o644 }, false, false},
		"it was not there at the start": {func(r *row) { r.Ino = 0 }, false, false},
	} {
		v := &settle{t: &tree{Root: "/w"}}
		r := newRow("a", "rule", "why", &st)
		c.change(&r)
		if got := v.unchanged(&r, &st); got != c.unchanged || (len(v.report.Flagged) == 1) != c.told {
			t.Errorf("%s: unchanged %v, listed %+v", name, got, v.report.Flagged)
		}
	}
	v := &settle{t: &tree{Root: "/w"}}
	r, none := row{}, unix.Statx_t{}
	if v.unchanged(&r, &none) {
		t.Error("what was missing has no number")
	}
}

// A program that was there is listed when it became one, and so is what runs with the
// rights of its owner.
func TestSettlePrograms(t *testing.T) {
	w := tempRoot(t)
	for _, name := range []string{"became", "was", "stays", "bin/group"} {
		write(t, w, name, "x")
	}
	chmod(t, w+"/was", 0o755)
	s := scanned(t, w)
	for i := range s.trees[0].Programs {
		if s.trees[0].Programs[i] != "was" {
			t.Errorf("a program: %s", s.trees[0].Programs[i])
		}
	}
	chmod(t, w+"/became", 0o755)
	chmod(t, w+"/was", 0o700)
	chmod(t, w+"/stays", 0o600)
	must(t, unix.Chmod(w+"/bin/group", 0o2755))
	must(t, os.Link(w+"/stays", w+"/bin/second"))
	outside := tempRoot(t)
	write(t, w, "leak", "x")
	must(t, os.Link(w+"/leak", outside+"/leak"))
	got := ""
	for _, f := range settled(t, s).Flagged {
		got += strings.TrimPrefix(string(f.Path), w+"/") + " " + string(f.Change) + "|"
	}
	if want := "became mode|bin/group setuid|leak hardlink|"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
