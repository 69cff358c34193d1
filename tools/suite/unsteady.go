package main

import (
	"fmt"
	"io"
	"iter"
	"regexp"
	"slices"
	"strings"
)

// What is borne with, and no more: a tree in which more than this is unsteady
// in one pass is broken, whatever passes alone.
const (
	mostUnsteady = 3 // tests in a pass
	triesAlone   = 3 // that a test must pass one after the other
)

// timingBound names the tests that are tried again when they fail, and why each
// can fail in a tree that is right: by the directory of the package and the name
// of the test. Every other failure is one. A test belongs here if what it asserts
// is a time by the clock, and no longer limit is possible.
var timingBound = map[string]string{
	"internal/supervise: TestRootTripwireCostsAllowedTreesNothing":      "compares the cost of two calls by the clock: load of the machine during one of them counts",
	"internal/supervise: TestTheEndWhileHeld":                           "Close must return before 9 s because the product gives up after 10 s",
	"internal/agents/reports: TestAnAgentThatDoesNotWaitIsToldNoBefore": "an answer must come in the 2 s between the product's limit and the agent's",
}

// mostTimingBound is how many rows the table may have.
const mostTimingBound = 3

// What may never happen, not even once: in what a failed test said, an escape,
// an act that nobody saw, something left behind; anywhere, a race or a crash.
var (
	finalOfTest = regexp.MustCompile(`(?i)\bescape[ds]?\b|\bunseen\b|\bleft behind\b|\bleak`)
	finalHere   = regexp.MustCompile(`DATA RACE|race detected|^panic:|^fatal error:|test timed out`)

	// whose begins what a test says (cmd/internal/test2json), also where a test
	// shows what others said that it started in a network.
	whose = regexp.MustCompile(`^\s*=== (?:RUN|NAME|CONT|PAUSE) +(\S*)`)
)

// passesAlone says whether a program failed for want of time alone: the tests
// that it named as failed are all timing-bound, nothing that they said is final,
// and they pass, one by one, several times.
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

// speeches yields what tests said, line by line, after the name of the test.
func speeches(out []byte) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		var speaker string
		for line := range lines(out) {
			if m := whose.FindStringSubmatch(line); m != nil {
				speaker = m[1]
			} else if m := result.FindStringSubmatch(line); m != nil {
				speaker = m[2]
			} else if !yield(speaker, line) {
				return
			}
		}
	}
}

// showUnsteady prints what the failed tests of a program said.
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

// leaves is the tests of a list that failed by themselves, without those that
// failed because a test inside them did.
func leaves(failed []string) []string {
	var own []string
	for _, name := range failed {
		if !slices.ContainsFunc(failed, func(other string) bool { return strings.HasPrefix(other, name+"/") }) {
			own = append(own, name)
		}
	}
	return own
}

// exactly is the pattern of -test.run for one test. Its levels are matched one
// by one.
func exactly(name string) string {
	levels := strings.Split(name, "/")
	for i, level := range levels {
		levels[i] = "^" + regexp.QuoteMeta(level) + "$"
	}
	return strings.Join(levels, "/")
}
