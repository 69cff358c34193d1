package main

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// pass is one run of all test programs as one user.
type pass struct {
	title   string
	root    string // of the tree that the tests run in
	env     []string
	skip    string            // pattern of tests that cannot run as this user; "" for none
	once    bool              // also without the packages that need not run as this user
	enter   func(int) error   // prepares the thread that starts a lane's commands; may be nil
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

// result matches the closing line of a test, as `go test -v` prints it.
var result = regexp.MustCompile(`^\s*--- (PASS|FAIL|SKIP): (\S+)`)

// tally is what a pass has found so far.
type tally struct {
	passed, failed    int      // tests, including subtests
	cached            int      // programs with an earlier result that still counts
	skipped, unsteady []string // by package and name; a skip with its reason
	problems          []string
}

// longest are packages that take minutes, the longest first, so that short ones
// are last.
var longest = []string{"internal/prove/harness", "internal/prove/probe", "internal/cli", "internal/testenv/realtest", "internal/prove/trial",
	"internal/network", "internal/boundary/native", "internal/supervise", "internal/boundary/workspace", "internal/run"}

// order is what a pass runs, in the order of the starts.
func (s *suite) order(p pass) []program {
	programs := slices.DeleteFunc(slices.Clone(s.programs), func(prog program) bool { return p.once && prog.userIndependent() })
	rank := func(prog program) int {
		if i := slices.Index(longest, prog.dir); i >= 0 {
			return i
		}
		return len(longest)
	}
	slices.SortStableFunc(programs, func(a, b program) int { return rank(a) - rank(b) })
	return programs
}

// pass runs every program, some at the same time, and returns what went wrong. A
// skip is wrong if WANT_FEATURES promises all features and excludes none by name.
func (s *suite) pass(p pass) []string {
	fmt.Fprintf(s.out, "== %s\n", p.title)
	start := time.Now()
	var t tally
	programs := s.order(p)
	queue := make(chan program, len(programs))
	for _, prog := range programs {
		queue <- prog
	}
	close(queue)
	var lanes sync.WaitGroup
	for lane := range max(1, s.lanes) {
		lanes.Go(func() {
			if p.enter != nil {
				if err := p.enter(lane); err != nil && lane == 0 {
					s.printText(fmt.Sprintf("== the ordinary user gets no /dev/fuse of its own: %v\n", err))
				}
			}
			for prog := range queue {
				s.runProgram(p, prog, &t)
			}
		})
	}
	lanes.Wait()
	return s.conclude(p, t, len(programs), time.Since(start))
}

// printText prints a text without interruption by others.
func (s *suite) printText(text string) {
	s.printing.Lock()
	defer s.printing.Unlock()
	fmt.Fprint(s.out, text)
}

// conclude reports what a pass found, and returns what is wrong.
func (s *suite) conclude(p pass, t tally, programs int, took time.Duration) []string {
	fmt.Fprintf(s.out, "== %s: %d passed, %d failed, %d unsteady, %d skipped in %s\n", p.title, t.passed, t.failed, len(t.unsteady), len(t.skipped), round(took))
	if t.cached > 0 {
		fmt.Fprintf(s.out, "== %s: %d of %d packages passed before and did not change: -fresh runs them\n", p.title, t.cached, programs)
	}
	for _, name := range t.skipped {
		s.skipped = append(s.skipped, p.title+": "+name)
	}
	for _, name := range t.unsteady {
		fmt.Fprintln(s.out, "unsteady", name)
	}
	if len(t.unsteady) > mostUnsteady {
		t.problems = append(t.problems, fmt.Sprintf("%s: %d tests are unsteady, and %d are tolerated: %s", p.title, len(t.unsteady), mostUnsteady, strings.Join(t.unsteady, ", ")))
	}
	if want := os.Getenv("WANT_FEATURES"); strings.Contains(want, "all") && !strings.Contains(want, "-") {
		for _, name := range t.skipped {
			t.problems = append(t.problems, p.title+": skipped although all features are promised: "+name)
		}
	}
	if t.passed == 0 && programs > 0 {
		t.problems = append(t.problems, p.title+": no test ran")
	}
	return t.problems
}

// runProgram runs the tests of one program, or uses their earlier result.
func (s *suite) runProgram(p pass, prog program, all *tally) {
	where := ""
	if !s.fresh && s.run == "" {
		where = s.results.path(p, prog)
	}
	var t tally
	text := ""
	if k, ok := s.results.load(where); ok {
		t = tally{passed: k.Passed, skipped: k.Skipped, cached: 1}
		text = fmt.Sprintf("ok  \t%s\t(cached)\n", prog.name)
	} else {
		text = s.play(p, prog, &t)
		if where != "" && len(t.problems)+len(t.unsteady) == 0 {
			s.results.store(where, passedProgram{Passed: t.passed, Skipped: t.skipped})
		}
	}
	s.printing.Lock()
	defer s.printing.Unlock()
	fmt.Fprint(s.out, text)
	all.passed, all.failed, all.cached = all.passed+t.passed, all.failed+t.failed, all.cached+t.cached
	all.skipped, all.unsteady, all.problems = append(all.skipped, t.skipped...), append(all.unsteady, t.unsteady...), append(all.problems, t.problems...)
}

// play runs the tests of one program, and returns the text to print about it.
func (s *suite) play(p pass, prog program, t *tally) string {
	var text strings.Builder
	began := time.Now()
	var failed []string
	out, cost, err := s.execute(p, prog, s.run, 1)
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
			fmt.Fprintln(&text, line)
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
		showUnsteady(&text, prog, failed, out)
	default:
		verdict = "FAIL"
		t.failed += len(failed)
		t.problems = append(t.problems, fmt.Sprintf("%s: %s: %v%s", p.title, prog.name, err, failedOutput(failed, out)))
		show(&text, out)
	}
	fmt.Fprintf(&text, "%s\t%s\t%.3fs\t(%.1fs of processor time)\n", verdict, prog.name, time.Since(began).Seconds(), cost.Seconds())
	return text.String()
}

// lacked matches what a test logs through testenv, the only package that skips.
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

// failedOutput lists the failed tests and the beginning of each one's output, without
// the output of others: readers of a long log may have only its end.
func failedOutput(failed []string, out []byte) string {
	const most, mostOfOne = 15, 4 // lines
	names := leaves(failed)
	var excerpts []string
	linesOf := map[string]int{}
	for speaker, line := range speeches(out) {
		mine := slices.Contains(names, speaker) && (strings.Contains(line, "_test.go:") || finalOfTest.MatchString(line))
		if !mine && !finalHere.MatchString(line) || linesOf[speaker] == mostOfOne {
			continue
		}
		linesOf[speaker]++
		excerpts = append(excerpts, "\n\t\t"+strings.TrimSpace(line))
	}
	if len(excerpts) > most {
		excerpts = append(excerpts[:most], "\n\t\t…")
	}
	return ": " + strings.Join(names, " ") + strings.Join(excerpts, "")
}

// execute runs the tests of a program that match a pattern ("" for all), each as
// often as times says. It returns their output and the processor time of the
// program and of all processes that it waited for (getrusage(2)).
func (s *suite) execute(p pass, prog program, pattern string, times int) ([]byte, time.Duration, error) {
	prog, err := s.copyTestProgram(prog)
	if err != nil {
		return nil, 0, err
	}
	args := []string{"-test.v=test2json", fmt.Sprintf("-test.count=%d", times), "-test.timeout=" + s.limit.String()}
	if skip := p.skipped(prog); skip != "" {
		args = append(args, "-test.skip="+skip)
	}
	if pattern != "" {
		args = append(args, "-test.run="+pattern)
	}
	cmd := exec.Command(prog.path, args...)
	cmd.Dir = filepath.Join(p.root, prog.dir)
	cmd.Env = append(p.env[:len(p.env):len(p.env)], "HOLDFAST_TEST_BINARY="+s.binary(), "PWD="+cmd.Dir)
	if p.as != nil {
		p.as(cmd)
	}
	// A process that outlives its test and holds the pipe must not block us.
	cmd.WaitDelay = 10 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	var cost time.Duration
	if cmd.ProcessState != nil {
		cost = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	return out.Bytes(), cost, err
}

// lines yields the lines of a test's output. The test program marks its own lines
// with a control byte, so that a test that printed an incomplete line cannot hide
// them.
func lines(out []byte) func(func(string) bool) {
	const marker = "\x16" // cmd/internal/test2json
	return strings.SplitSeq(strings.ReplaceAll(string(out), marker, "\n"), "\n")
}

// show prints the output of a program that failed, without the lines that say
// that a test began.
func show(to io.Writer, out []byte) {
	for line := range lines(out) {
		if line != "" && !strings.HasPrefix(line, "=== ") {
			fmt.Fprintln(to, line)
		}
	}
}

// output runs the go command and returns its output.
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
