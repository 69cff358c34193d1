package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

// pass is one run of all test programs as one user.
type pass struct {
	title   string
	root    string // of the tree that the tests run in
	env     []string
	skip    string            // pattern of tests that cannot run as this user; "" for none
	without *regexp.Regexp    // packages that need not run as this user; nil for none
	unraced map[string]string // tests to leave out, and why, as in the table of this name
	as      func(*exec.Cmd)   // makes a command run as the user; nil for this process's own
}

// skipped is the pattern of the tests of a program that the pass leaves out.
func (p pass) skipped(prog program) string {
	var patterns []string
	if p.skip != "" {
		patterns = append(patterns, p.skip)
	}
	for _, name := range slices.Sorted(maps.Keys(p.unraced)) {
		if dir, test, _ := strings.Cut(name, ": "); dir == prog.dir {
			patterns = append(patterns, "^"+test+"$")
		}
	}
	return strings.Join(patterns, "|")
}

// result is a closing line of a test, as `go test -v` prints it.
var result = regexp.MustCompile(`^\s*--- (PASS|FAIL|SKIP): (\S+)`)

// tally is what a pass has found so far.
type tally struct {
	passed, failed    int      // tests, subtests included
	skipped, unsteady []string // by package and name; a skip with its reason
	problems          []string
}

// pass runs every program and returns what went wrong. A skip is wrong where
// WANT_FEATURES promises all features and takes none out by name.
func (s *suite) pass(p pass) []string {
	fmt.Fprintf(s.out, "== %s\n", p.title)
	start := time.Now()
	var t tally
	programs := slices.DeleteFunc(slices.Clone(s.programs), func(prog program) bool {
		return p.without != nil && p.without.MatchString(prog.name)
	})
	for _, prog := range programs {
		s.one(p, prog, &t)
	}
	fmt.Fprintf(s.out, "== %s: %d passed, %d failed, %d unsteady, %d skipped in %s\n", p.title, t.passed, t.failed, len(t.unsteady), len(t.skipped), round(time.Since(start)))
	for _, name := range t.skipped {
		s.skipped = append(s.skipped, p.title+": "+name)
	}
	for _, name := range t.unsteady {
		fmt.Fprintln(s.out, "unsteady", name)
	}
	if len(t.unsteady) > mostUnsteady {
		t.problems = append(t.problems, fmt.Sprintf("%s: %d tests are unsteady, and %d are borne with: %s", p.title, len(t.unsteady), mostUnsteady, strings.Join(t.unsteady, ", ")))
	}
	if want := os.Getenv("WANT_FEATURES"); strings.Contains(want, "all") && !strings.Contains(want, "-") {
		for _, name := range t.skipped {
			t.problems = append(t.problems, p.title+": skipped although all features are promised: "+name)
		}
	}
	if t.passed == 0 && len(programs) > 0 {
		t.problems = append(t.problems, p.title+": no test ran")
	}
	return t.problems
}

// one runs the tests of one program.
func (s *suite) one(p pass, prog program, t *tally) {
	began := time.Now()
	var failed []string
	before := spent()
	out, err := s.execute(p, prog, s.run, 1)
	for line := range lines(out) {
		m := result.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		switch m[1] {
		case "PASS":
			t.passed++
		case "FAIL":
			failed = append(failed, m[2])
		case "SKIP":
			t.skipped = append(t.skipped, prog.dir+": "+m[2]+": "+reason(m[2], out))
		}
		if s.verbose && err == nil {
			fmt.Fprintln(s.out, line)
		}
	}
	verdict := "ok  "
	switch {
	case err == nil:
	case s.passesAlone(p, prog, failed, out):
		verdict = "unsteady"
		for _, name := range leaves(failed) {
			t.unsteady = append(t.unsteady, prog.dir+": "+name)
		}
		s.showUnsteady(prog, failed, out)
	default:
		verdict = "FAIL"
		t.failed += len(failed)
		t.problems = append(t.problems, fmt.Sprintf("%s: %s: %v%s", p.title, prog.name, err, named(failed, out)))
		s.show(out)
	}
	fmt.Fprintf(s.out, "%s\t%s\t%.3fs\t(%.1fs of processor time)\n", verdict, prog.name, time.Since(began).Seconds(), (spent() - before).Seconds())
}

// lacked is what a test logs through testenv, the only place that skips.
var lacked = regexp.MustCompile(`\.go:\d+: (needs .*)`)

// reason is why a test was skipped.
func reason(name string, out []byte) string {
	why := "it does not say why"
	for speaker, line := range speeches(out) {
		if m := lacked.FindStringSubmatch(line); m != nil && speaker == name {
			why = m[1]
		}
	}
	return why
}

// spent is the processor time of every child that has ended, and of what those
// waited for (getrusage(2)).
func spent() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// named is which tests failed and the beginning of what each of them said, and
// nothing of what others said: whoever reads a long log may have its end alone.
func named(failed []string, out []byte) string {
	const most, mostOfOne = 15, 4 // lines
	names := leaves(failed)
	var said []string
	of := map[string]int{}
	for speaker, line := range speeches(out) {
		mine := slices.Contains(names, speaker) && (strings.Contains(line, "_test.go:") || finalOfTest.MatchString(line))
		if !mine && !finalHere.MatchString(line) || of[speaker] == mostOfOne {
			continue
		}
		of[speaker]++
		said = append(said, "\n\t\t"+strings.TrimSpace(line))
	}
	if len(said) > most {
		said = append(said[:most], "\n\t\t…")
	}
	return ": " + strings.Join(names, " ") + strings.Join(said, "")
}

// execute runs the tests of a program that match a pattern ("" for all), each
// as many times as times says.
func (s *suite) execute(p pass, prog program, pattern string, times int) ([]byte, error) {
	args := []string{"-test.v=test2json", fmt.Sprintf("-test.count=%d", times), "-test.timeout=" + s.limit.String()}
	if skip := p.skipped(prog); skip != "" {
		args = append(args, "-test.skip="+skip)
	}
	if pattern != "" {
		args = append(args, "-test.run="+pattern)
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

// output runs the go command and returns what it printed.
func output(dir string, env []string, args ...string) (string, error) {
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("running go %s: %w\n%s%s", strings.Join(args, " "), err, out.Bytes(), complaint.Bytes())
	}
	return out.String(), nil
}
