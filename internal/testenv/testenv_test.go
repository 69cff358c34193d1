package testenv

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/floor/programs"
)

var errAbsent = errors.New("not here")

func TestDecide(t *testing.T) {
	for _, tt := range []struct {
		name    string
		absent  error
		want    string
		fail    bool
		skipped bool
	}{
		{name: "a feature that is there lets the test go on"},
		{name: "an absent feature that nobody promised is a skip", absent: errAbsent, skipped: true},
		{name: "a promise by name makes absence a failure", absent: errAbsent, want: "tty,git", fail: true},
		{name: "all promises every name", absent: errAbsent, want: "all", fail: true},
		{name: "a name may be taken out of all", absent: errAbsent, want: "all, -git", skipped: true},
		{name: "taking out wins before all too", absent: errAbsent, want: "-git,all", skipped: true},
		{name: "the promise of a longer name is no promise", absent: errAbsent, want: "github", skipped: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fail, why := decide(Git, tt.absent, tt.want)
			if fail != tt.fail || (why != "" && !fail) != tt.skipped {
				t.Errorf("fail %v, why %q", fail, why)
			}
		})
	}
}

// spy replaces the test that calls a helper.
type spy struct {
	testing.TB
	name, ended string
}

func (s *spy) Helper()      {}
func (s *spy) Name() string { return s.name }
func (s *spy) Fatal(args ...any) {
	s.ended = "failed: " + fmt.Sprint(args...)
	runtime.Goexit()
}
func (s *spy) Errorf(format string, args ...any) { s.ended = "failed: " + fmt.Sprintf(format, args...) }
func (s *spy) Fatalf(format string, args ...any) { s.Fatal(fmt.Sprintf(format, args...)) }
func (s *spy) Skip(args ...any) {
	s.ended = "skipped: " + fmt.Sprint(args...)
	runtime.Goexit()
}

func need(name, want string, f Feature, check func() error, t *testing.T) string {
	t.Setenv(Want, want)
	s := &spy{TB: t, name: name}
	done := make(chan struct{})
	go func() {
		defer close(done)
		Need(s, f, check)
	}()
	<-done
	return s.ended
}

func TestNeed(t *testing.T) {
	absent := func() error { return errAbsent }
	there := func() error { return nil }
	for _, tt := range []struct {
		name, test, want string
		feature          Feature
		check            func() error
		ended            string
	}{
		{name: "there", test: "TestX", feature: "x", check: there},
		{name: "absent", test: "TestX", feature: "x", check: absent, ended: "skipped: needs x"},
		{name: "absent though promised", test: "TestX", want: "x", feature: "x", check: absent, ended: "failed: WANT_FEATURES=x promises x"},
		{name: "a name without a check is a mistake, not an absence", test: "TestX", feature: "xyzzy", ended: "failed: feature \"xyzzy\" is not known"},
		{name: "who needs root says so in the name", test: "TestX", feature: Root, check: there, ended: "failed: TestX needs root"},
		{name: "and then may have it", test: "TestRootX/a_row", feature: Root, check: there},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := need(tt.test, tt.want, tt.feature, tt.check, t)
			if tt.ended == "" && got != "" || !strings.HasPrefix(got, tt.ended) {
				t.Errorf("ended %q, want %q", got, tt.ended)
			}
		})
	}
}

func TestWhatIsFoundMustRun(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	if err := runs("shim", "--version")(); !errors.Is(err, exec.ErrNotFound) {
		t.Errorf("absent program: %v", err)
	}
	if err := programs.Write(filepath.Join(dir, "shim"), []byte("#!/bin/sh\nexit 127\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := runs("shim", "--version")(); err == nil {
		t.Error("a program that fails counts as there")
	}
}

func TestProcessesAreFoundByDescentAndByMark(t *testing.T) {
	mark := "mark-" + strconv.Itoa(os.Getpid())
	cmd := exec.Command("sleep", "60")
	cmd.Env = []string{"X=" + mark, "PATH=" + os.Getenv("PATH")}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	before := listWorld([]string{mark})
	find := func(marks ...string) bool {
		return slices.ContainsFunc(processes("/proc"), func(p process) bool {
			return p.pid == cmd.Process.Pid && p.isOurs(marks)
		})
	}
	if !find() {
		t.Error("a child is not found by its descent")
	}
	if !slices.ContainsFunc(processes("/proc"), func(p process) bool {
		p.descends = false
		return p.pid == cmd.Process.Pid && p.isOurs([]string{mark})
	}) {
		t.Error("a child is not found by its environment")
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed: its status means nothing
	if find(mark) {
		t.Error("a process that was reaped is still found")
	}
	if left := listWorld([]string{mark}).addedSince(before); len(left) != 0 {
		t.Errorf("fewer processes look like a leak: %q", left)
	}
}

func TestAnOrphanIsALeak(t *testing.T) {
	mark := t.TempDir()
	before := listWorld([]string{mark})
	cmd := exec.Command("sh", "-c", "sleep 60 >/dev/null 2>&1 & echo $!")
	cmd.Env = []string{"X=" + mark, "PATH=" + os.Getenv("PATH")}
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		t.Fatal(err)
	}
	left := listWorld([]string{mark}).addedSince(before)
	if len(left) != 1 || !strings.Contains(left[0], "sleep 60") {
		t.Errorf("one process lost its parent, left behind is %q", left)
	}
	orphan, err := os.FindProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := orphan.Kill(); err != nil {
		t.Fatal(err)
	}
	if left := waitGone(func() []string { return listWorld([]string{mark}).addedSince(before) }); len(left) != 0 {
		t.Errorf("it was killed and still counts: %q", left)
	}
}

func TestTemporary(t *testing.T) {
	for _, tt := range []struct {
		name, path string
		named      []string
		want       bool
	}{
		{name: "what bears the name of the product counts", path: "/tmp/holdfast-1", named: []string{"/tmp/TestX1", "holdfast"}, want: true},
		{name: "the directory of the test does not", path: "/tmp/TestHoldfast1", named: []string{"/tmp/TestHoldfast1/001", "oldfast"}},
		{name: "another's does not", path: "/tmp/other", named: []string{"/tmp/TestX1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := temporary(tt.path, tt.named); got != tt.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestNothingLeftIsNoLeak(t *testing.T) {
	dir := t.TempDir()
	NoLeaks(t, dir)
	NoGoroutines(t)
	if err := exec.Command("true").Run(); err != nil {
		t.Fatal(err)
	}
}

func TestCgroupsAreFoundByName(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{"user.slice", "user.slice/holdfast-1", "other"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	want := "cgroup " + filepath.Join(root, "user.slice/holdfast-1")
	if got := cgroups(root, []string{"holdfast"}); !got[want] || len(got) != 1 {
		t.Errorf("got %v, want %s alone", got, want)
	}
}

func TestGoroutinesLeftBehindAreSeen(t *testing.T) {
	before := goroutines()
	stop := make(chan struct{})
	started := make(chan struct{})
	go func() { close(started); <-stop }()
	<-started
	if left := newStacks(before, goroutines()); len(left) != 1 {
		t.Errorf("one goroutine was started, %d are seen", len(left))
	}
	close(stop)
	if left := waitGone(func() []string { return newStacks(before, goroutines()) }); len(left) != 0 {
		t.Errorf("it ended and is still seen: %q", left)
	}
}

func TestSweepRemovesWhatDeadProcessesLeft(t *testing.T) {
	tmp := t.TempDir()
	dead := filepath.Join(tmp, binaryDir+"4194305-x") // above Linux's maximum PID
	alive := filepath.Join(tmp, fmt.Sprintf("%s%d-x", binaryDir, os.Getpid()))
	other := filepath.Join(tmp, binaryDir+"x")
	for _, dir := range []string{dead, alive, other} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	removeOldBinaries(tmp)
	for dir, want := range map[string]bool{dead: false, alive: true, other: true} {
		if _, err := os.Stat(dir); (err == nil) != want {
			t.Errorf("%s: there %v, want %v", dir, err == nil, want)
		}
	}
}
