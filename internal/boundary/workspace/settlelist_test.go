//go:build linux

package workspace

import (
	"os"
	"strings"
	"testing"
	"time"

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

// A row is unchanged if it is the same file; a changed time is reported if the command
// could not change the file.
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
	write(t, w, "node_modules/p", "x")
	write(t, w, "node_modules/q", "x")
	chmod(t, w+"/was", 0o755)
	chmod(t, w+"/node_modules/p", 0o755)
	time.Sleep(2 * clockSlack)
	s := scanned(t, w)
	time.Sleep(2 * clockSlack)
	if got := s.trees[0].Programs; len(got) != 1 || got[0] != "was" {
		t.Errorf("programs: %q", got)
	}
	chmod(t, w+"/became", 0o755)
	chmod(t, w+"/was", 0o700)
	chmod(t, w+"/node_modules/q", 0o755)
	write(t, w, "new", "x")
	chmod(t, w+"/new", 0o755)
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
	var st unix.Statx_t
	must(t, unix.Statx(unix.AT_FDCWD, w+"/became", 0, unix.STATX_BTIME, &st))
	if st.Mask&unix.STATX_BTIME == 0 {
		got = "became mode|" + got // the file system does not report when a file was made
	}
	if want := "became mode|bin/group setuid|leak hardlink|node_modules changed|"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// The report says why something was moved out: it is new, or it was replaced.
func TestSettleSaysWhy(t *testing.T) {
	w := tempRoot(t)
	write(t, w, ".npmrc", "a")
	write(t, w, "inc", "")
	s := scanned(t, w, GitConfig("/etc/gitconfig", "", []byte("[include]\n\tpath = "+w+"/inc\n\tpath = "+w+"/later\n")))
	write(t, w, ".envrc", "")
	write(t, w, "later", "")
	for _, name := range []string{".npmrc", "inc"} {
		must(t, os.RemoveAll(w+"/"+name))
		write(t, w, name+".new", "b") // kept apart from the number that is free now
		write(t, w, name, "b")
	}
	r := settled(t, s)
	got := map[string]string{}
	for _, q := range r.Quarantined {
		got[strings.TrimPrefix(string(q.Path), w+"/")] = q.Why
	}
	const fresh, replaced = "it was not there when the run began", "it was replaced during the run"
	for name, want := range map[string]string{".envrc": fresh, "later": fresh, ".npmrc": replaced, "inc": replaced} {
		if got[name] != want {
			t.Errorf("%s: %q, want %q", name, got[name], want)
		}
	}
}

// A large file of the flag tier is not read: it is listed by its times, its size and
// its number.
func TestSettleLargeFlaggedFiles(t *testing.T) {
	w := tempRoot(t)
	for _, name := range []string{"same/package.json", "longer/package.json", "older/package.json", "mode/package.json", "small/package.json"} {
		write(t, w, name, "{}")
		if !strings.HasPrefix(name, "small") {
			must(t, os.Truncate(w+"/"+name, maxSum+1))
		}
	}
	s := scanned(t, w)
	must(t, os.Truncate(w+"/longer/package.json", maxSum+2))
	must(t, os.Chtimes(w+"/older/package.json", time.Unix(1, 0), time.Unix(1, 0)))
	chmod(t, w+"/small/package.json", 0o600)
	must(t, os.Chtimes(w+"/small/package.json", time.Unix(1, 0), time.Unix(1, 0)))
	got := ""
	for _, f := range settled(t, s).Flagged {
		got += strings.TrimPrefix(string(f.Path), w+"/") + " " + string(f.Change) + "|"
		if (f.Before == "") == strings.HasPrefix(string(f.Path), w+"/small") || f.Before != f.After {
			t.Errorf("sums: %+v", f)
		}
	}
	if want := "longer/package.json changed|older/package.json changed|small/package.json mode|"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Patience is used up moment by moment.
func TestPatience(t *testing.T) {
	v := &settle{snap: &Snapshot{Patience: 60 * time.Millisecond}}
	began := time.Now()
	for i, want := range []bool{true, true, false, false} {
		if v.waitForOthers() != want {
			t.Errorf("after %d moments: %v", i, !want)
		}
	}
	if took := time.Since(began); took < 100*time.Millisecond {
		t.Errorf("two moments took %v", took)
	}
}

// A directory that was closed is opened again; one that is too deep is moved out.
func TestClosedDirectories(t *testing.T) {
	w := tempRoot(t)
	write(t, w, "shut/x", "")
	write(t, w, "deep/x", "")
	write(t, w, "file", "")
	chmod(t, w+"/shut", 0)
	rules := DefaultRules()
	v := &settle{snap: &Snapshot{}, t: &tree{Root: Name(w)}, quarantine: &quarantine{state: tempRoot(t)}}
	wk, d := &walker{walk: &walk{rules: &rules}}, &dir{fd: openDir(t, w)}
	for _, tt := range []struct {
		name   string
		why    error
		opened bool
		warned int
		taken  int
	}{{"shut", unix.EACCES, true, 1, 0}, {"file", unix.EACCES, false, 1, 0}, {"none", unix.EACCES, false, 1, 0}, {"deep", errTooDeep, false, 1, 1}} {
		fd, err := v.closed(wk, d, entry{nameZ: []byte(tt.name + "\x00")}, tt.why)
		if fd >= 0 {
			unix.Close(fd)
		}
		if err != nil || (fd >= 0) != tt.opened || len(v.report.Warnings) != tt.warned || len(v.report.Quarantined) != tt.taken {
			t.Errorf("%s: %d, %v, %+v", tt.name, fd, err, v.report)
		}
	}
	if st, err := os.Stat(w + "/shut"); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("it was opened to %v, %v", st.Mode(), err)
	}
	must(t, v.quarantine.close())
}
