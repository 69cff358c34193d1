package main

import (
	"fmt"
	"io"
	"iter"
	"regexp"
	"slices"
	"strings"
)

// Limits of what is tolerated: a tree with more unsteady tests in one pass is
// broken, even if they pass alone.
const (
	mostUnsteady = 3 // tests in a pass
	triesAlone   = 3 // times that a test must pass in a row
)

// timingBound names the tests that are tried again when they fail, and why each
// can fail in a correct tree: by the directory of the package and the name of the
// test. Any other failure counts. A test belongs here if it asserts an elapsed
// time, and no longer limit is possible.
var timingBound = map[string]string{
	"internal/supervise: TestRootTripwireCostsAllowedTreesNothing":      "compares the cost of two calls by the clock: load of the machine during one of them counts",
	"internal/supervise: TestTheEndWhileHeld":                           "Close must return before 9 s because the product gives up after 10 s",
	"internal/agents/reports: TestAnAgentThatDoesNotWaitIsToldNoBefore": "an answer must come in the 2 s between the product's limit and the agent's",
}

// mostTimingBound is the maximum number of rows in the table.
const mostTimingBound = 3

// What must never happen, not even once: in the output of a failed test, an
// escape, an unseen action, something left behind; anywhere, a race or a crash.
var (
	finalOfTest = regexp.MustCompile(`(?i)\bescape[ds]?\b|\bunseen\b|\bleft behind\b|\bleak`)
	finalHere   = regexp.MustCompile(`DATA RACE|race detected|^panic:|^fatal error:|test timed out`)

	// testMark matches the line that begins a test's output
	// (cmd/internal/test2json), also in the output of another test process that a
	// test started in a network.
	testMark = regexp.MustCompile(`^\s*=== (?:RUN|NAME|CONT|PAUSE) +(\S*)`)
)

// passesAlone reports whether a program failed only for lack of time: the failed
// tests are all timing-bound, nothing in their output is final, and they pass
// several times, one by one.
func (s *suite) passesAlone(p pass, prog program, failed []string, out []byte) bool {
	names := leaves(failed)
	if len(names) == 0 || isFinal(failed, out) {
		return false
	}
	for _, name := range names {
		if s.timingBound[prog.dir+": "+name] == "" {
			return false
		}
	}
	for _, name := range names {
		if _, _, err := s.execute(p, prog, exactly(name), triesAlone); err != nil {
			return false
		}
	}
	return true
}

func isFinal(failed []string, out []byte) bool {
	for speaker, line := range speeches(out) {
		if finalHere.MatchString(line) || slices.Contains(failed, speaker) && finalOfTest.MatchString(line) {
			return true
		}
	}
	return false
}

// speeches yields the output of tests, line by line, with the name of the test.
func speeches(out []byte) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		var speaker string
		for line := range lines(out) {
			if m := testMark.FindStringSubmatch(line); m != nil {
				speaker = m[1]
			} else if m := result.FindStringSubmatch(line); m != nil {
				speaker = m[2]
			} else if !yield(speaker, line) {
				return
			}
		}
	}
}

// showUnsteady prints the output of the failed tests of a program.
func showUnsteady(to io.Writer, prog program, failed []string, out []byte) {
	for _, name := range failed {
		fmt.Fprintf(to, "unsteady: %s: %s\n", prog.dir, name)
		for speaker, line := range speeches(out) {
			if speaker == name && line != "" {
				fmt.Fprintln(to, "unsteady: "+line)
			}
		}
	}
}

// leaves are the tests of a list that failed by themselves, without those that
// failed because of a subtest.
func leaves(failed []string) []string {
	var own []string
	for _, name := range failed {
		if !slices.ContainsFunc(failed, func(other string) bool { return strings.HasPrefix(other, name+"/") }) {
			own = append(own, name)
		}
	}
	return own
}

// exactly is the -test.run pattern for one test. Its levels are matched one by
// one.
func exactly(name string) string {
	levels := strings.Split(name, "/")
	for i, level := range levels {
		levels[i] = "^" + regexp.QuoteMeta(level) + "$"
	}
	return strings.Join(levels, "/")
}
