package main

import (
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/floor/programs"
	"holdfast.dev/holdfast/internal/testenv"
)

// fake is a suite of one test program that is a shell script.
func fake(t *testing.T, script string) *suite {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "a.test")
	if err := programs.Write(path, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	bound := map[string]string{}
	for _, name := range []string{"A", "A/x", "1", "2", "3", "4"} {
		bound[".: Test"+name] = "is slow"
	}
	return &suite{timingBound: bound, out: io.Discard, root: dir, work: t.TempDir(), fresh: true, limit: time.Minute, programs: []program{{name: "m/a", dir: ".", path: path}}}
}

func TestPass(t *testing.T) {
	for _, tt := range []struct {
		name, script, want string
		problem            string
	}{
		{name: "a test that passed is enough", script: `echo "--- PASS: TestA (0.00s)"`},
		{name: "a line after half a line counts", script: `printf 'no newline\026--- PASS: TestA (0.00s)\n'`},
		{name: "a program without tests proves nothing", script: `echo PASS`, problem: "no test ran"},
		{name: "the status decides, not the lines", script: `echo "--- PASS: TestA (0.00s)"; exit 1`, problem: "exit status 1"},
		{name: "what failed is said at the end", script: `echo '=== RUN   TestA'; echo 'a_test.go:7: 1, want 2'; echo '=== RUN   TestB'; echo 'a_test.go:9: fine'; echo '--- PASS: TestB (0.00s)'; echo '--- FAIL: TestA (0.00s)'; exit 1`, problem: "exit status 1: TestA\n\t\ta_test.go:7: 1, want 2"},
		{name: "a skip is allowed where nothing is promised", script: `echo "--- PASS: TestA (0.00s)"; echo "    --- SKIP: TestB/x (0.00s)"`},
		{name: "and is not where everything is", want: "all", script: `echo "--- PASS: TestA (0.00s)"; echo "    --- SKIP: TestB/x (0.00s)"`, problem: "skipped although all features are promised: .: TestB/x"},
		{name: "unless a feature was taken out by name", want: "all,-ia32", script: `echo "--- PASS: TestA (0.00s)"; echo "--- SKIP: TestB (0.00s)"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("WANT_FEATURES", tt.want)
			s := fake(t, tt.script)
			got := s.pass(pass{title: "as somebody", root: s.root, env: os.Environ()})
			if tt.problem == "" && len(got) > 0 || tt.problem != "" && (len(got) != 1 || !strings.Contains(got[0], tt.problem)) {
				t.Errorf("problems %q, want %q", got, tt.problem)
			}
			if strings.Contains(strings.Join(got, ""), "fine") {
				t.Errorf("problems %q repeat what a test said that passed", got)
			}
		})
	}
}

func TestTheEndNamesWhatFailed(t *testing.T) {
	var problems []string
	for range 9 {
		problems = append(problems, "as somebody: m/a: exit status 1: TestA\n\t\ta_test.go:7: "+strings.Repeat("much\n\t\t", 30))
	}
	problems = append(problems, "as somebody: m/b: exit status 1: TestB "+strings.Repeat("TestLong ", 100)+"\n\t\tb_test.go:7: 1")
	said := strings.Split(problemsError(problems).Error(), "\n")
	end := said[len(said)-len(problems):]
	for _, line := range end {
		if !strings.HasPrefix(line, "\tas somebody: m/") || len(line) > 300 {
			t.Errorf("the end has the line %q", line)
		}
	}
	if !strings.Contains(end[9], "TestB") {
		t.Errorf("the last line is %q", end[9])
	}
}

func TestAProgramIsToldWhatToRun(t *testing.T) {
	s := fake(t, `printf '%s\n' "$@" "$HOLDFAST_TEST_BINARY" "$PWD"`)
	out, _, err := s.execute(pass{root: s.root, env: []string{"PATH=/bin"}, skip: "^TestRoot"}, s.programs[0], "TestB", 1)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Fields(string(out))
	for _, want := range []string{"-test.skip=^TestRoot", "-test.run=TestB", "-test.timeout=1m0s", s.binary(), s.root} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
}

func TestTheCopyHasNoRepository(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "tree")
	for _, dir := range []string{".git", "bin", "a/bin"} {
		if err := os.MkdirAll(filepath.Join(from, dir), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := programs.Write(filepath.Join(from, dir, "f"), nil, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("nowhere", filepath.Join(from, "link")); err != nil {
		t.Fatal(err)
	}
	if err := copyTree(from, to, os.Getuid(), os.Getgid()); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{".git": false, "bin": false, "a/bin/f": true, "link": true} {
		if _, err := os.Lstat(filepath.Join(to, path)); (err == nil) != want {
			t.Errorf("%s: there %v, want %v", path, err == nil, want)
		}
	}
	if name, err := os.Readlink(filepath.Join(to, "link")); err != nil || name != "nowhere" {
		t.Errorf("link leads to %q (%v)", name, err)
	}
	info, err := os.Stat(filepath.Join(to, "a/bin/f"))
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); mode != 0o744 {
		t.Errorf("mode %o, want it readable and still executable", mode)
	}
}

// TestUnsteady runs programs that fail when all of their tests run, and checks
// the verdict.
func TestUnsteady(t *testing.T) {
	const all = `case "$*" in *-test.run=*) false;; esac && `
	for _, tt := range []struct{ name, script, problem string }{
		{"a test that passes alone is borne with", all + `{ echo "--- FAIL: TestA (0.00s)"; exit 1; }; echo "--- PASS: TestA (0.00s)"`, ""},
		{"and so is a part of it", all + `{ echo "    --- FAIL: TestA/x (0.00s)"; echo "--- FAIL: TestA (0.00s)"; exit 1; }
			case "$*" in *-test.run=^TestA\$/^x\$*) echo "--- PASS: TestA (0.00s)";; *) exit 1;; esac`, ""},
		{"one that fails again is not", `echo "--- FAIL: TestA (0.00s)"; exit 1`, "exit status 1: TestA"},
		{"an escape is not, though it may not happen again", all + `{ echo "=== RUN   TestA"; echo "    a_test.go:7: LNK-001 ESCAPED"; echo "--- FAIL: TestA (0.00s)"; exit 1; }; exit 0`, "ESCAPED"},
		{"another test may speak of escapes", all + `{ echo "=== RUN   TestB"; echo "    LNK-001 ESCAPED"; echo "=== RUN   TestA"; echo "--- FAIL: TestA (0.00s)"; exit 1; }; echo "--- PASS: TestA (0.00s)"`, ""},
		{"a race is not", all + `{ echo "WARNING: DATA RACE"; echo "--- FAIL: TestA (0.00s)"; exit 1; }; exit 0`, "exit status 1"},
		{"a crash is not", all + `{ echo "--- FAIL: TestA (0.00s)"; echo "panic: x"; exit 2; }; exit 0`, "panic: x"},
		{"what names no test is not", all + `exit 1; exit 0`, "exit status 1"},
		{"many are not", all + `{ for i in 1 2 3 4; do echo "--- FAIL: Test$i (0.00s)"; done; exit 1; }; exit 0`, "4 tests are unsteady, and 3 are tolerated"},
		{"what is not in the table is not", all + `{ echo "--- FAIL: TestC (0.00s)"; exit 1; }; echo "--- PASS: TestC (0.00s)"`, "exit status 1: TestC"},
		{"nor what failed together with it", all + `{ echo "--- FAIL: TestA (0.00s)"; echo "--- FAIL: TestC (0.00s)"; exit 1; }; exit 0`, "exit status 1: TestA TestC"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("WANT_FEATURES", "")
			s := fake(t, `echo "--- PASS: TestSteady (0.00s)"; `+tt.script)
			got := s.pass(pass{title: "as somebody", root: s.root, env: os.Environ()})
			if tt.problem == "" && len(got) > 0 || tt.problem != "" && (len(got) != 1 || !strings.Contains(got[0], tt.problem)) {
				t.Errorf("problems %q, want %q", got, tt.problem)
			}
		})
	}
}

func TestUnsteadyAddUp(t *testing.T) {
	t.Setenv("WANT_FEATURES", "")
	s := fake(t, `case "$*" in *-test.run=*) exit 0;; esac
		echo "=== RUN   TestB"; echo said by B; echo "--- PASS: TestB (0.00s)"; echo "=== RUN   TestA"; echo said by A; echo "--- FAIL: TestA (0.00s)"; exit 1`)
	for range mostUnsteady {
		s.programs = append(s.programs, s.programs[0])
	}
	var out strings.Builder
	s.out = &out
	got := s.pass(pass{title: "as somebody", root: s.root, env: os.Environ()})
	if len(got) != 1 || !strings.Contains(got[0], "4 tests are unsteady") {
		t.Errorf("problems %q", got)
	}
	if said := out.String(); strings.Count(said, "unsteady: said by A") != 4 || strings.Contains(said, "said by B") || !strings.Contains(said, "\nunsteady .: TestA\n") {
		t.Errorf("it printed %q", said)
	}
}

func TestAPatternOfPackagesThatMatchesNothing(t *testing.T) {
	s := &suite{out: io.Discard, root: testenv.ModuleRoot(t), work: t.TempDir(), packages: regexp.MustCompile("no-such-package$")}
	if err := s.build(); err == nil || !strings.Contains(err.Error(), "no-such-package$") {
		t.Errorf("built: %v", err)
	}
}

// TestTables checks that the tests in the tables exist.
func TestTables(t *testing.T) {
	if n := len(timingBound); n > mostTimingBound {
		t.Errorf("%d tests are tried again, and %d may be: mend one for each that is added", n, mostTimingBound)
	}
	for _, table := range []map[string]string{timingBound, unraced} {
		for name, why := range table {
			dir, test, _ := strings.Cut(name, ": ")
			test, _, _ = strings.Cut(test, "/")
			paths, err := filepath.Glob(filepath.Join("../..", dir, "*_test.go"))
			if err != nil {
				t.Fatal(err)
			}
			there := slices.ContainsFunc(paths, func(path string) bool {
				text, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				return strings.Contains(string(text), "\nfunc "+test+"(")
			})
			if !there || why == "" {
				t.Errorf("%s: there %v, reason %q", name, there, why)
			}
		}
	}
}

func TestWhatStartsAGoroutine(t *testing.T) {
	for dir, want := range map[string]bool{
		"internal/supervise": true, "internal/record/audit": true, "internal/agents/gateway": true, "internal/boundary/native": true,
		"internal/boundary/workspace": true, "internal/policy": true, "internal/arch": false, "internal/floor/event": false, "internal/testenv/realtest": false,
	} {
		if got, err := startsGoroutine(filepath.Join("../..", dir)); err != nil || got != want {
			t.Errorf("%s starts a goroutine: %v (%v), want %v", dir, got, err, want)
		}
	}
}

func TestASkipHasItsReasonAtTheEnd(t *testing.T) {
	t.Setenv("WANT_FEATURES", "")
	for _, tt := range []struct{ name, test, said string }{
		{name: "by itself", test: "TestA", said: "=== RUN   TestA\n    a_test.go:7: needs fuse: permission denied\n--- SKIP: TestA (0.00s)"},
		{name: "with more to say afterwards", test: "TestA/x", said: "=== RUN   TestA\n=== RUN   TestA/x\n    a_test.go:7: needs fuse: permission denied\n    script.go:9: WORK=/tmp\n    --- SKIP: TestA/x (0.00s)"},
		{name: "in a network", test: "TestA/x", said: "=== RUN   TestA\n    again.go:50: in a private network:\n        === RUN   TestA\n        === RUN   TestA/x\n            a_test.go:7: needs fuse: permission denied\n            --- SKIP: TestA/x (0.00s)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := fake(t, "echo '--- PASS: TestB (0.00s)'; echo '"+tt.said+"'")
			if got := s.pass(pass{title: "as somebody", root: s.root, env: os.Environ()}); len(got) > 0 {
				t.Errorf("problems %q", got)
			}
			if want := []string{"as somebody: .: " + tt.test + ": needs fuse: permission denied"}; !slices.Equal(s.skipped, want) {
				t.Errorf("skipped %q, want %q", s.skipped, want)
			}
		})
	}
}

// TestRootPrivateFUSE: an ordinary user can open the device that commands of this
// thread see, and the host's device is unchanged.
func TestRootPrivateFUSE(t *testing.T) {
	testenv.Need(t, testenv.Root, nil)
	testenv.Need(t, "fuse-device", func() error { _, err := os.Stat("/dev/fuse"); return err })
	before, err := os.Stat("/dev/fuse")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	done := make(chan error)
	go func() { // its thread ends with it
		err := privateFUSE(filepath.Join(dir, "dev"))
		if err == nil {
			err = exec.Command("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-c", "exec 3<>/dev/fuse").Run()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if after, err := os.Stat("/dev/fuse"); err != nil || !os.SameFile(before, after) || before.Mode() != after.Mode() {
		t.Errorf("the host's device is %v, and was %v (%v)", after, before, err)
	}
}

// TestOnceIsOfNoUser inspects the tests of the packages that run as only one
// user.
func TestOnceIsOfNoUser(t *testing.T) {
	asks := regexp.MustCompile(`testenv\.(Binary|UserNS)|Gete?uid\(`)
	seen := 0
	err := filepath.WalkDir("../../internal", func(path string, e fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") || !userIndependent.MatchString(filepath.Dir(path)) {
			return err
		}
		seen++
		text, err := os.ReadFile(path)
		if what := asks.Find(text); what != nil {
			t.Errorf("%s has %s, and runs as one user alone", path, what)
		}
		return err
	})
	if err != nil || seen < 50 {
		t.Errorf("%d files were read: %v", seen, err)
	}
}
