//go:build linux

package workspace

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// running lays out a review of an active run, and returns its directory. The workspace
// has the files a and d/b and the link l to a.
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

// If another directory is in the place of the workspace, nothing can be compared with
// it: all that the run wrote counts as changed.
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

// copied lays out a review of a run that worked in a copy of the workspace.
func copied(t *testing.T) (dir string) {
	t.Helper()
	dir, space := running(t)
	upper := filepath.Join(dir, UpperDir)
	_, err := CopyTree(t.Context(), space, upper, 0)
	must(t, err)
	list, err := os.Create(filepath.Join(dir, CopyFile))
	must(t, err)
	defer list.Close()
	must(t, WriteFacts(t.Context(), upper, 0, list))
	r, err := ReadReview(dir)
	must(t, err)
	r.Mode = ReviewCopy
	must(t, r.Begin(dir))
	time.Sleep(2 * clockSlack) // what is written now has another time of change
	return dir
}

// Of a copy the same is kept as of a layer, and what was removed from it.
func TestEndReviewOfACopy(t *testing.T) {
	for _, tt := range []struct {
		name string
		run  func(t *testing.T, copy string)
		base []string // the originals that are kept; nil where nothing changed
	}{
		{"nothing", func(*testing.T, string) {}, nil},
		{"the same content once more", func(t *testing.T, c string) { write(t, c, "a", "one") }, nil},
		{"another time of a directory", func(t *testing.T, c string) { write(t, c, "d/x", ""); must(t, os.Remove(c+"/d/x")) }, nil},
		{"another content", func(t *testing.T, c string) { write(t, c, "a", "eno") }, []string{"a"}},
		{"another mode", func(t *testing.T, c string) { chmod(t, c+"/a", 0o600) }, []string{"a"}},
		{"a file removed", func(t *testing.T, c string) { must(t, os.Remove(c+"/d/b")) }, []string{"d/b"}},
		{"a directory removed", func(t *testing.T, c string) { must(t, os.RemoveAll(c+"/d")) }, []string{"d/b"}},
		{"a new file", func(t *testing.T, c string) { write(t, c, "d/new", "") }, []string{}},
		{"another target", func(t *testing.T, c string) { must(t, os.Remove(c+"/l")); link(t, "b", c, "l") }, []string{"l"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := copied(t)
			tt.run(t, filepath.Join(dir, UpperDir))
			kept, err := EndReview(t.Context(), dir, false)
			if err != nil || kept != (tt.base != nil) {
				t.Fatalf("kept %v, %v", kept, err)
			}
			if r, err := ReadReview(dir); kept && (err != nil || r.State != ReviewWaiting || r.Died) {
				t.Errorf("the review afterwards: %+v, %v", r, err)
			}
			for name, text := range map[string]string{"a": "one", "d/b": "two", "l": "one"} {
				original := filepath.Join(dir, BaseDir, name)
				if _, err := os.Lstat(original); (err == nil) != slices.Contains(tt.base, name) {
					t.Errorf("the original of %s: %v", name, err)
				}
				if got, err := os.ReadFile(original); err == nil && string(got) != text {
					t.Errorf("the original of %s: %q", name, got)
				}
			}
		})
	}
}

// A review that has ended is left as it is.
func TestEndReviewTwice(t *testing.T) {
	for state, want := range map[ReviewState]bool{ReviewWaiting: true, ReviewPartly: true, ReviewApplied: true, ReviewDropped: false} {
		dir, _ := running(t)
		r, err := ReadReview(dir)
		must(t, err)
		r.State = state
		must(t, r.Write(dir))
		write(t, dir, UpperDir+"/a", "changed")
		if kept, err := EndReview(t.Context(), dir, true); err != nil || kept != want {
			t.Errorf("%s: kept %v, %v", state, kept, err)
		}
		if now, err := ReadReview(dir); err != nil || now.State != state || now.Died {
			t.Errorf("%s became %+v, %v", state, now, err)
		}
	}
	if kept, err := EndReview(t.Context(), tempRoot(t), true); err == nil || kept {
		t.Errorf("without a review: kept %v, %v", kept, err)
	}
	dir, _ := running(t)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if kept, err := EndReview(ctx, dir, true); err == nil || !kept {
		t.Errorf("when it is cancelled: kept %v, %v", kept, err)
	}
	must(t, os.RemoveAll(filepath.Join(dir, UpperDir)))
	if kept, err := EndReview(t.Context(), dir, true); err == nil || !kept {
		t.Errorf("without its storage: kept %v, %v", kept, err)
	}
}

// A directory that takes the place of another hides what was in that.
func TestEndReviewOfAnOpaqueDirectory(t *testing.T) {
	for value, want := range map[string]bool{"y": true, "x": false, "": false} {
		dir, _ := running(t)
		upper := filepath.Join(dir, UpperDir, "d")
		mkdir(t, upper)
		if unix.Setxattr(upper, "user.overlay.opaque", []byte(value), 0) != nil {
			return // the file system has no such attributes
		}
		if kept, err := EndReview(t.Context(), dir, true); err != nil || kept != want {
			t.Errorf("%q: kept %v, %v", value, kept, err)
		}
		if _, err := os.Lstat(filepath.Join(dir, BaseDir, "d/b")); (err == nil) != want {
			t.Errorf("%q: the original of what was in it: %v", value, err)
		}
	}
}

// What was changed concerns all that is below it.
func TestConcerns(t *testing.T) {
	e := &reviewEnd{changed: map[string]bool{"a/b": true, "c/.": true, "f": true}}
	for path, want := range map[string]bool{"a/b": true, "a/b/c/d": true, "a": false, "a/bc": false, "c/x": false, "f": true, "f/x": true, "": false} {
		if e.wasChanged(path) != want {
			t.Errorf("%q: %v", path, !want)
		}
	}
}

// Two files are the same if they can be read and as many bytes as are asked for are equal.
func TestSameContents(t *testing.T) {
	w := tempRoot(t)
	long := strings.Repeat("x", 64<<10)
	for name, text := range map[string]string{"empty": "", "a": "text", "b": "text", "other": "texx", "short": "tex", "long": long + "end", "long2": long + "end", "long3": long + "enx", "long4": long} {
		write(t, w, name, text)
	}
	open := func(name string) int {
		f, err := os.Open(filepath.Join(w, name))
		must(t, err)
		t.Cleanup(func() { f.Close() })
		return int(f.Fd())
	}
	for pair, want := range map[[2]string]bool{
		{"a", "b"}: true, {"a", "other"}: false, {"a", "short"}: false, {"a", "empty"}: false, {"empty", "empty"}: true,
		{"long", "long2"}: true, {"long", "long3"}: false, {"long", "long4"}: false, {"long4", "long"}: true,
		{"a", "."}: false, {".", "a"}: false,
	} {
		st, err := os.Stat(filepath.Join(w, pair[0]))
		must(t, err)
		if got := SameContent(open(pair[0]), open(pair[1]), st.Size()); got != want {
			t.Errorf("%q: %v", pair, got)
		}
	}
}
