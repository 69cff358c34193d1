package audit

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// old makes files that look like logs of earlier runs, of a size, with heads.
func old(t *testing.T, dir string, n int, size int64) {
	t.Helper()
	heads := filepath.Join(filepath.Dir(dir), "heads")
	for _, d := range []string{dir, heads} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		name := fmt.Sprintf("2020%04d-x", i)
		path := filepath.Join(dir, name+suffix)
		if err := errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, size), // holes take no space
			os.WriteFile(filepath.Join(heads, name+headSuffix), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		at := time.Date(2020, 1, 1, 0, i, 0, 0, time.UTC)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
}

func sessions(infos []Info) []string {
	var ids []string
	for _, i := range infos {
		ids = append(ids, i.Session)
	}
	return ids
}

func left(t *testing.T, dir string) []string {
	t.Helper()
	infos, err := List(dir)
	if err != nil {
		t.Fatal(err)
	}
	return sessions(infos)
}

func TestOldLogsGo(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	old(t, dir, MaxRuns+20, 0)
	l, err := Create(dir, Options{Session: "new"})
	if err != nil {
		t.Fatal(err)
	}
	if got := len(left(t, dir)); got != MaxRuns+21 {
		t.Errorf("the start of a run waits for pruning: %d are left", got)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if got := left(t, dir); len(got) != MaxRuns || got[0] != "new" || got[MaxRuns-1] != "20200021-x" {
		t.Errorf("%d records are left: %q", len(got), got)
	}
	if lost, err := Lost(dir, ""); err != nil || len(lost) != 0 {
		t.Errorf("what was pruned is missed: %q, %v", lost, err)
	}
}

// TestLargeLogsGoToo: sizes are added up after a large log, and now and then.
func TestLargeLogsGoToo(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	old(t, dir, addUpEvery-2, MaxTotal/3)
	end := func(name string, size int64) []string {
		l, err := Create(dir, Options{Session: name})
		if err != nil {
			t.Fatal(err)
		}
		if size > 0 {
			if err := os.Truncate(l.Path(), size); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		return left(t, dir)
	}
	if got := end("small", 0); len(got) != addUpEvery-1 {
		t.Errorf("after a small log %q are left", got)
	}
	if got := end("small2", 0); !slices.Equal(got, []string{"small2", "small", "20200013-x", "20200012-x"}) {
		t.Errorf("after %d logs %q are left", addUpEvery, got)
	}
	old(t, dir, 5, MaxTotal/3)
	if got := end("large", smallLog+1); len(got) != 5 || got[0] != "large" {
		t.Errorf("after a large log %q are left", got)
	}
}

func TestPrune(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	old(t, dir, 6, 100)
	l, err := Create(dir, Options{Session: "running"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, c := range []struct {
		name  string
		try   bool
		stays func(i Info, n int, bytes int64) bool
		want  []string
	}{
		{"all stay", false, func(Info, int, int64) bool { return true }, nil},
		{"a try", true, func(_ Info, n int, _ int64) bool { return n <= 6 }, []string{"20200000-x"}},
		{"by number", false, func(_ Info, n int, _ int64) bool { return n <= 6 }, []string{"20200000-x"}},
		{"by size", false, func(_ Info, _ int, bytes int64) bool { return bytes <= l.size+400 }, []string{"20200001-x"}},
		{"by time", false, func(i Info, _ int, _ int64) bool { return !i.Start.Before(time.Date(2020, 1, 1, 0, 3, 0, 0, time.UTC)) }, []string{"20200002-x"}},
		{"not what runs", false, func(Info, int, int64) bool { return false }, []string{"20200005-x", "20200004-x", "20200003-x"}},
	} {
		removed, err := Prune(dir, "", c.try, c.stays)
		if err != nil || !slices.Equal(sessions(removed), c.want) {
			t.Errorf("%s: removed %q, %v; want %q", c.name, sessions(removed), err, c.want)
		}
	}
	if got := left(t, dir); !slices.Equal(got, []string{"running"}) {
		t.Errorf("left are %q", got)
	}
	if lost, err := Lost(dir, ""); err != nil || len(lost) != 0 {
		t.Errorf("lost are %q, %v", lost, err)
	}
	old(t, dir, 1, 0)
	if err := os.Remove(filepath.Join(dir, "20200000-x"+suffix)); err != nil {
		t.Fatal(err)
	}
	if lost, err := Lost(dir, ""); err != nil || !slices.Equal(lost, []string{"20200000-x"}) {
		t.Errorf("lost are %q, %v", lost, err)
	}
}

func TestFind(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	if _, err := Find(dir, ""); err == nil || err.Error() != "there is no record yet" {
		t.Error(err)
	}
	for _, s := range []string{"aa1", "aa2", "aa", "b"} {
		l, err := Create(dir, Options{Session: s})
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
	}
	for _, c := range []struct{ ask, want, problem string }{
		{"", "b", ""}, {"aa1", "aa1", ""}, {"aa", "aa", ""}, {"b", "b", ""},
		{"a", "", `3 sessions begin with "a"`}, {"c", "", `there is no record of a session "c"`}, {"../b", "", "no record"},
	} {
		i, err := Find(dir, c.ask)
		if i.Session != c.want || (err == nil) != (c.problem == "") || err != nil && !strings.Contains(err.Error(), c.problem) {
			t.Errorf("%q: %+v, %v", c.ask, i, err)
		}
		var find *FindError
		if err != nil && (!errors.As(err, &find) || c.ask == "a" && len(find.Several) != 3) {
			t.Errorf("%q: %#v", c.ask, err)
		}
	}
}

// A link or directory in place of a log is not listed: the log counts as lost.
func TestLinkIsNoLog(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	old(t, dir, 2, 0)
	first, second := filepath.Join(dir, "20200000-x"+suffix), filepath.Join(dir, "20200001-x"+suffix)
	if err := errors.Join(os.Remove(first), os.Symlink(second, first), os.Remove(second), os.Mkdir(second, 0o700)); err != nil {
		t.Fatal(err)
	}
	if lost, err := Lost(dir, ""); err != nil || !slices.Equal(lost, []string{"20200000-x", "20200001-x"}) {
		t.Errorf("lost are %q, %v", lost, err)
	}
}

// TestRemove: the log goes, and its head is set aside with those of the last others.
func TestRemove(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	old(t, dir, 1, 0)
	_, heads := defaultDirs(dir, "", "")
	aside := filepath.Join(heads, prunedDir)
	if err := os.Mkdir(aside, 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range maxPruned + 2 {
		if err := os.WriteFile(filepath.Join(aside, fmt.Sprintf("2019%04d-x", i)+headSuffix), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	infos, err := List(dir)
	if err != nil || len(infos) != 1 {
		t.Fatalf("%+v, %v", infos, err)
	}
	if gone, err := Prune(dir, "", false, func(Info, int, int64) bool { return false }); err != nil || len(gone) != 1 {
		t.Fatal(gone, err)
	}
	if _, err := os.Lstat(infos[0].Path); err == nil {
		t.Error("the log is still there")
	}
	there, err := filesWithSuffix(aside, headSuffix)
	if err != nil || len(there) != maxPruned || !strings.HasSuffix(there[len(there)-1], "20200000-x"+headSuffix) {
		t.Errorf("%d heads are set aside, %v", len(there), err)
	}
	if lost, err := Lost(dir, ""); err != nil || len(lost) != 0 {
		t.Errorf("lost: %q, %v", lost, err)
	}
	old(t, dir, 1, 0) // again, and this one has no head
	if err := errors.Join(os.Remove(filepath.Join(heads, "20200000-x"+headSuffix)), remove(infos[0], heads)); err != nil {
		t.Error(err)
	}
	infos[0].Path = aside
	if err := remove(infos[0], heads); err == nil {
		t.Error("what cannot be removed is no error")
	}
}
