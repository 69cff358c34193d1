package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// fake is a suite of one test program that is a shell script.
func fake(t *testing.T, script string) *suite {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "a.test")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return &suite{out: io.Discard, root: dir, work: dir, limit: time.Minute, programs: []program{{name: "m/a", dir: ".", path: path}}}
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
		})
	}
}

func TestAProgramIsToldWhatToRun(t *testing.T) {
	s := fake(t, `printf '%s\n' "$@" "$HOLDFAST_TEST_BINARY" "$PWD"`)
	s.run = "TestB"
	out, err := s.execute(pass{root: s.root, env: []string{"PATH=/bin"}, skip: "^TestRoot"}, s.programs[0])
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
		if err := os.WriteFile(filepath.Join(from, dir, "f"), nil, 0o700); err != nil {
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
