package testenv

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// patience is how long something may outlive its test before it counts as left
// behind: a killed process and an unmount take a moment, and longer on a busy
// machine. A test that leaves nothing does not wait.
const patience = 20 * time.Second

// NoLeaks fails the test if, at its end, something new exists that bears one of
// marks: a process (descendant of this one, of this session, or with a mark in
// its arguments, environment, directory or mounts), a mount, a cgroup, or an
// entry of the temporary directory.
//
// A mark is text that only this test uses, preferably the path of its
// t.TempDir(). Without marks, anything with "holdfast" in its name counts;
// .ci/run also looks for that after all tests.
//
// It does not work in parallel tests. Call it first: cleanups that are registered
// later run before the check.
func NoLeaks(t testing.TB, marks ...string) {
	t.Helper()
	before := listWorld(marks)
	t.Cleanup(func() {
		if left := waitGone(func() []string { return listWorld(marks).addedSince(before) }); len(left) > 0 {
			t.Errorf("left behind:\n\t%s", strings.Join(left, "\n\t"))
		}
	})
}

// NoGoroutines fails the test if goroutines that were started after this call
// still run at its end. It does not work in parallel tests.
func NoGoroutines(t testing.TB) {
	t.Helper()
	before := goroutines()
	t.Cleanup(func() {
		if left := waitGone(func() []string { return newStacks(before, goroutines()) }); len(left) > 0 {
			t.Errorf("goroutines left behind:\n%s", strings.Join(left, "\n\n"))
		}
	})
}

// waitGone calls list until it returns nothing or patience is over.
func waitGone(list func() []string) []string {
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		left := list()
		if len(left) == 0 || time.Now().After(end) {
			return left
		}
	}
}

// world is the set of things that could be left behind, each by a name that is
// not reused while the test runs.
type world map[string]bool

func (w world) addedSince(before world) []string {
	var left []string
	for name := range w {
		if !before[name] {
			left = append(left, name)
		}
	}
	slices.Sort(left)
	return left
}

func listWorld(marks []string) world {
	w := world{}
	named := slices.Clone(marks)
	if len(named) == 0 {
		named = append(named, "holdfast")
	}
	for _, p := range processes("/proc") {
		if p.isOurs(marks) {
			w[p.String()] = true
		}
	}
	mounts, _ := os.ReadFile("/proc/self/mountinfo") // without /proc there is nothing to compare
	for line := range strings.Lines(string(mounts)) {
		if containsAny(line, named) {
			w["mount "+strings.TrimSpace(line)] = true
		}
	}
	maps.Copy(w, cgroups("/sys/fs/cgroup", named))
	entries, _ := os.ReadDir(os.TempDir())
	for _, e := range entries {
		if path := filepath.Join(os.TempDir(), e.Name()); temporary(path, named) {
			w["temporary "+path] = true
		}
	}
	return w
}

// temporary reports whether an entry of the temporary directory counts as left
// behind. A directory that contains a mark is the test's own: it is removed after
// the cleanup in which this runs.
func temporary(path string, named []string) bool {
	own := func(mark string) bool { return mark == path || strings.HasPrefix(mark, path+"/") }
	return containsAny(filepath.Base(path), named) && !slices.ContainsFunc(named, own)
}

func cgroups(root string, named []string) world {
	w := world{}
	// An unreadable entry is gone or not ours.
	_ = filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil || !e.IsDir():
			return nil
		case containsAny(path, named):
			w["cgroup "+path] = true
		}
		return nil
	})
	return w
}

// goroutines returns the stack of every goroutine, by its header line.
func goroutines() map[string]string {
	buf := make([]byte, 1<<20)
	buf = buf[:runtime.Stack(buf, true)]
	all := map[string]string{}
	for stack := range strings.SplitSeq(string(buf), "\n\n") {
		id, _, _ := strings.Cut(stack, " [")
		all[id] = stack
	}
	return all
}

// newStacks ignores the goroutines of the testing package itself, which come and
// go with other tests.
func newStacks(before, after map[string]string) []string {
	var left []string
	for id, stack := range after {
		if _, old := before[id]; !old && !strings.Contains(stack, "testing.tRunner") && !strings.Contains(stack, "testing.(*M)") {
			left = append(left, stack)
		}
	}
	slices.Sort(left)
	return left
}

func containsAny(s string, marks []string) bool {
	return slices.ContainsFunc(marks, func(m string) bool { return strings.Contains(s, m) })
}

func (p process) String() string {
	return fmt.Sprintf("process %d (parent %d, started %s): %s", p.pid, p.parent, p.start, p.args)
}
