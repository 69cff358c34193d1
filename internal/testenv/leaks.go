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
// behind: a killed process needs a moment to go, an unmount with it, and both
// more of one on a busy machine. What leaves nothing waits for none of it.
const patience = 20 * time.Second

// NoLeaks fails the test if, at its end, something is there that was not there
// at this call and that bears one of marks: a process (descendant of this one,
// of this session, or with a mark in its arguments, environment, directory or
// mounts), a mount, a cgroup, or an entry of the temporary directory.
//
// A mark is text that only this test uses, best the path of its t.TempDir().
// Without marks, what has "holdfast" in its name counts: .ci/run looks for that,
// too, when all tests have ended.
//
// It is not for parallel tests. Call it first: clean-ups that are registered
// later run before it looks.
func NoLeaks(t testing.TB, marks ...string) {
	t.Helper()
	before := look(marks)
	t.Cleanup(func() {
		if left := waitGone(func() []string { return look(marks).since(before) }); len(left) > 0 {
			t.Errorf("left behind:\n\t%s", strings.Join(left, "\n\t"))
		}
	})
}

// NoGoroutines fails the test if goroutines that were started after this call
// still run at its end. It is not for parallel tests.
func NoGoroutines(t testing.TB) {
	t.Helper()
	before := goroutines()
	t.Cleanup(func() {
		if left := waitGone(func() []string { return newStacks(before, goroutines()) }); len(left) > 0 {
			t.Errorf("goroutines left behind:\n%s", strings.Join(left, "\n\n"))
		}
	})
}

// waitGone calls list until it is empty or patience ends.
func waitGone(list func() []string) []string {
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		left := list()
		if len(left) == 0 || time.Now().After(end) {
			return left
		}
	}
}

// world is what could be left behind, each thing by a name that is not used
// again while the test runs.
type world map[string]bool

func (w world) since(before world) []string {
	var left []string
	for name := range w {
		if !before[name] {
			left = append(left, name)
		}
	}
	slices.Sort(left)
	return left
}

func look(marks []string) world {
	w := world{}
	named := slices.Clone(marks)
	if len(named) == 0 {
		named = append(named, "holdfast")
	}
	for _, p := range processes("/proc") {
		if p.ours(marks) {
			w[p.String()] = true
		}
	}
	mounts, _ := os.ReadFile("/proc/self/mountinfo") // absent where there is no /proc; nothing to compare then
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

// temporary reports whether an entry of the temporary directory is one that
// could be left behind. The directory that a mark lies in is the test's own: it
// goes after the clean-up in which this runs.
func temporary(path string, named []string) bool {
	own := func(mark string) bool { return mark == path || strings.HasPrefix(mark, path+"/") }
	return containsAny(filepath.Base(path), named) && !slices.ContainsFunc(named, own)
}

func cgroups(root string, named []string) world {
	w := world{}
	// An entry that cannot be read is gone or not ours.
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

// goroutines returns the stack of every goroutine, by the line that names it.
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

// newStacks leaves out the goroutines of the testing package itself, which
// come and go with other tests.
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
