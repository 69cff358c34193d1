package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// pass is one run of all test programs as one user.
type pass struct {
	title string
	root  string // of the tree that the tests run in
	env   []string
	skip  string          // pattern of tests that cannot run as this user; "" for none
	as    func(*exec.Cmd) // makes a command run as the user; nil for this process's own
}

// count is what happened to the tests of a pass, subtests included.
type count struct{ passed, failed int }

// result is a closing line of a test, as `go test -v` prints it.
var result = regexp.MustCompile(`^\s*--- (PASS|FAIL|SKIP): (\S+)`)

// pass runs every program and returns what went wrong. A skip is wrong where
// WANT_FEATURES promises all features and takes none out by name.
func (s *suite) pass(p pass) (problems []string) {
	fmt.Fprintf(s.out, "== %s\n", p.title)
	start := time.Now()
	var total count
	var skipped []string
	for _, prog := range s.programs {
		began := time.Now()
		out, err := s.execute(p, prog)
		for line := range lines(out) {
			m := result.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			switch m[1] {
			case "PASS":
				total.passed++
			case "FAIL":
				total.failed++
			case "SKIP":
				skipped = append(skipped, prog.dir+": "+m[2])
			}
			if s.verbose && err == nil {
				fmt.Fprintln(s.out, line)
			}
		}
		took := time.Since(began).Seconds()
		if err != nil {
			problems = append(problems, fmt.Sprintf("%s: %s: %v", p.title, prog.name, err))
			s.show(out)
			fmt.Fprintf(s.out, "FAIL\t%s\t%.3fs\n", prog.name, took)
			continue
		}
		fmt.Fprintf(s.out, "ok  \t%s\t%.3fs\n", prog.name, took)
	}
	fmt.Fprintf(s.out, "== %s: %d passed, %d failed, %d skipped in %s\n", p.title, total.passed, total.failed, len(skipped), round(time.Since(start)))
	for _, name := range skipped {
		fmt.Fprintln(s.out, "skipped", name)
	}
	if want := os.Getenv("WANT_FEATURES"); strings.Contains(want, "all") && !strings.Contains(want, "-") {
		for _, name := range skipped {
			problems = append(problems, p.title+": skipped although all features are promised: "+name)
		}
	}
	if total.passed == 0 {
		problems = append(problems, p.title+": no test ran")
	}
	return problems
}

func (s *suite) execute(p pass, prog program) ([]byte, error) {
	args := []string{"-test.v=test2json", "-test.count=1", "-test.timeout=" + s.limit.String()}
	if p.skip != "" {
		args = append(args, "-test.skip="+p.skip)
	}
	if s.run != "" {
		args = append(args, "-test.run="+s.run)
	}
	cmd := exec.Command(prog.path, args...)
	cmd.Dir = filepath.Join(p.root, prog.dir)
	cmd.Env = append(p.env[:len(p.env):len(p.env)], "HOLDFAST_TEST_BINARY="+s.binary(), "HOLDFAST_TEST_ALONE=1", "PWD="+cmd.Dir)
	if p.as != nil {
		p.as(cmd)
	}
	// A process that outlives its test and holds the pipe must not hold us.
	cmd.WaitDelay = 10 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.Bytes(), err
}

// lines yields the lines of a test's output. The test program marks its own
// lines with a control byte, so that a test that printed half a line before
// cannot hide them.
func lines(out []byte) func(func(string) bool) {
	const marker = "\x16" // cmd/internal/test2json
	return strings.SplitSeq(strings.ReplaceAll(string(out), marker, "\n"), "\n")
}

// show prints the output of a program that failed, without the lines that say
// that a test began.
func (s *suite) show(out []byte) {
	for line := range lines(out) {
		if line != "" && !strings.HasPrefix(line, "=== ") {
			fmt.Fprintln(s.out, line)
		}
	}
}

// output runs a command of the build and returns what it printed.
func output(dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("running %s %s: %w\n%s%s", name, strings.Join(args, " "), err, out.Bytes(), complaint.Bytes())
	}
	return out.String(), nil
}
