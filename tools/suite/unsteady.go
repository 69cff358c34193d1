package main

import (
	"fmt"
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

// What may never happen, not even once: in what a failed test said, an escape,
// an act that nobody saw, something left behind; anywhere, a race or a crash.
var (
	escaped   = regexp.MustCompile(`(?i)\bescape[ds]?\b|\bunseen\b`)
	leaked    = regexp.MustCompile(`(?i)\bleft behind\b|\bleak`)
	finalHere = regexp.MustCompile(`DATA RACE|race detected|^panic:|^fatal error:|test timed out`)

	// uncontained are the tests that try rows where nothing, or one control too
	// few, is in their way. They fail when a row does not escape.
	uncontained = regexp.MustCompile(`^(TestBare|TestBareInANetwork|TestEveryTrickWorks|TestEveryPlantIsExecuted|TestAblation|TestAblationInANetwork|TestStandIns)(/|$)`)

	// whose begins what a test says (cmd/internal/test2json).
	whose = regexp.MustCompile(`^=== (?:RUN|NAME|CONT|PAUSE) +(\S*)`)
)

// passesAlone says whether a program failed for what is around it alone: the
// tests that it named as failed pass, one by one, several times, and nothing
// that they said is final.
func (s *suite) passesAlone(p pass, prog program, failed []string, out []byte) bool {
	names := leaves(failed)
	if len(names) == 0 || len(names) > mostUnsteady || isFinal(failed, out) {
		return false
	}
	for _, name := range names {
		if _, err := s.execute(p, prog, exactly(name), triesAlone); err != nil {
			return false
		}
	}
	return true
}

func isFinal(failed []string, out []byte) bool {
	for speaker, line := range speeches(out) {
		if finalHere.MatchString(line) || slices.Contains(failed, speaker) && isFinalOf(speaker, line) {
			return true
		}
	}
	return false
}

// isFinalOf says whether a line that a failed test said is final.
func isFinalOf(name, line string) bool {
	return leaked.MatchString(line) || escaped.MatchString(line) && !uncontained.MatchString(name)
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
func (s *suite) showUnsteady(prog program, failed []string, out []byte) {
	for _, name := range failed {
		fmt.Fprintf(s.out, "unsteady: %s: %s\n", prog.dir, name)
		for speaker, line := range speeches(out) {
			if speaker == name && line != "" {
				fmt.Fprintln(s.out, "unsteady: "+line)
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
