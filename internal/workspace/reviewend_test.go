//go:build linux

package workspace

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// running lays out a review whose run goes on, and returns its directory. The
// workspace has the files a and d/b and the link l to a.
func running(t *testing.T) (dir, space string) {
	t.Helper()
	dir, space = filepath.Join(tempRoot(t), "s"), tempRoot(t)
	for _, name := range []string{UpperDir, WorkDir} {
		mkdir(t, filepath.Join(dir, name))
	}
	write(t, space, "a", "one")
	write(t, space, "d/b", "two")
	link(t, "a", space, "l")
	start, err := os.Create(filepath.Join(dir, StartFile))
	must(t, err)
	defer start.Close()
	must(t, WriteFacts(t.Context(), space, 0, start))
	var st unix.Stat_t
	must(t, unix.Stat(space, &st))
	r := Review{Session: "s", Workspace: Name(space), Dev: st.Dev, Ino: st.Ino, Mode: ReviewOverlay, State: ReviewRunning}
	must(t, r.Begin(dir))
	return dir, space
}

// A review is kept if the run left another file, link or directory than the
// workspace has. A file that was only opened for writing is no change.
func TestEndReview(t *testing.T) {
	for _, tt := range []struct {
		name string
		run  func(t *testing.T, upper string)
		kept bool
		base string // the original that is kept
	}{
		{name: "nothing", run: func(*testing.T, string) {}},
		{name: "the same file", run: func(t *testing.T, u string) { write(t, u, "a", "one") }},
		{name: "the same link", run: func(t *testing.T, u string) { link(t, "a", u, "l") }},
		{name: "the same file below", run: func(t *testing.T, u string) { write(t, u, "d/b", "two") }},
		{name: "another content of that size", run: func(t *testing.T, u string) { write(t, u, "a", "eno") }, kept: true, base: "a"},
		{name: "another size", run: func(t *testing.T, u string) { write(t, u, "a", "once") }, kept: true, base: "a"},
		{name: "another mode", run: func(t *testing.T, u string) { write(t, u, "a", "one"); chmod(t, u+"/a", 0o755) }, kept: true, base: "a"},
		{name: "another target", run: func(t *testing.T, u string) { link(t, "b", u, "l") }, kept: true, base: "l"},
		{name: "a new file", run: func(t *testing.T, u string) { write(t, u, "new", "") }, kept: true},
		{name: "a new directory", run: func(t *testing.T, u string) { mkdir(t, u+"/new") }, kept: true},
		{name: "a file below", run: func(t *testing.T, u string) { write(t, u, "d/b", "owt") }, kept: true, base: "d/b"},
		{name: "a directory in place of a file", run: func(t *testing.T, u string) { mkdir(t, u+"/a") }, kept: true, base: "a"},
		{name: "another mode of a directory", run: func(t *testing.T, u string) { mkdir(t, u+"/d"); chmod(t, u+"/d", 0o700) }, kept: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir, _ := running(t)
			tt.run(t, filepath.Join(dir, UpperDir))
			kept, err := EndReview(t.Context(), dir, true)
			if err != nil || kept != tt.kept {
				t.Fatalf("kept %v, %v, want %v", kept, err, tt.kept)
			}
			if r, err := ReadReview(dir); kept && (err != nil || r.State != ReviewWaiting || !r.Died) || !kept && err == nil {
				t.Errorf("the review afterwards: %+v, %v", r, err)
			}
			for _, name := range []string{"a", "d/b", "l"} {
				if _, err := os.Lstat(filepath.Join(dir, BaseDir, name)); (err == nil) != (name == tt.base) {
					t.Errorf("the original of %s: %v, want %q kept and no other", name, err, tt.base)
				}
			}
		})
	}
}

// Another directory in the place of the workspace vouches for nothing: all that
// the run wrote counts as changed.
func TestEndReviewOfAnotherWorkspace(t *testing.T) {
	dir, space := running(t)
	write(t, filepath.Join(dir, UpperDir), "a", "one")
	must(t, os.Rename(space, space+"-moved"))
	write(t, space, "a", "one")
	if kept, err := EndReview(t.Context(), dir, false); err != nil || !kept {
		t.Errorf("kept %v, %v", kept, err)
	}
	if _, err := os.Lstat(filepath.Join(dir, BaseDir, "a")); err == nil {
		t.Error("a file of another directory was kept as the original")
	}
}
