package main

import (
	"math"
	"strings"
	"testing"
)

func TestWithPart(t *testing.T) {
	const heading = "\n# B\n"
	for _, tt := range []struct{ name, report, want string }{
		{"a report without the part gets it", "# A\n", "# A\n\n# B\nnew\n"},
		{"an older part goes", "# A\n\n# B\nold\n## More\n", "# A\n\n# B\nnew\n"},
		{"what comes after it stays", "# A\n\n# B\nold\n\n## More\n\n# C\nc\n", "# A\n\n# B\nnew\n\n# C\nc\n"},
	} {
		if got := withPart(tt.report, heading, heading+"new\n"); got != tt.want {
			t.Errorf("%s: got %q", tt.name, got)
		}
	}
}

func TestCostWithoutTheStart(t *testing.T) {
	c := &cost{name: "work", what: "some work", goal: recordGoal{standard: 1.1, full: 3},
		whole: map[string][]float64{unrecorded: {110, 120, 130}, standard: {135, 140, 145}, full: {420, 420, 420}},
		start: map[string][]float64{unrecorded: {20, 20, 30}, standard: {30, 30, 30}, full: {20, 20, 20}}}
	got := c.verdicts()
	if len(got) != 2 || got[0].found != "1.10" || got[0].status != met || got[1].found != "4.00" || got[1].status != missed {
		t.Errorf("got %+v", got)
	}
	if !math.IsNaN(c.ratioTo(traced, bare).median) {
		t.Error("what was not measured has a ratio")
	}
}

func TestParseSessions(t *testing.T) {
	out := "=== RUN   TestOrdinarySessionsRaiseNoAlert\n=== RUN   TestOrdinarySessionsRaiseNoAlert/go_build\n    a_test.go:1: alerts: info=1 low=2 medium=0 high=0 critical=3\n" +
		"=== RUN   TestOrdinarySessionsRaiseNoAlert/absent\n    a_test.go:1: skipped\n=== RUN   TestOrdinarySessionsRaiseNoAlert/last\n    a_test.go:1: alerts: info=0 low=0 medium=0 high=0 critical=0\n"
	got := parseSessions(out)
	if len(got) != 2 || got[0] != (finding{"go build", [5]int{1, 2, 0, 0, 3}}) || got[1].name != "last" {
		t.Errorf("got %+v", got)
	}
}

func TestSection(t *testing.T) {
	s := &section{title: "Log", only: "log", verdicts: []verdict{{"g", "≤ 1", "2", missed}}}
	s.fail("a\nfailure")
	for _, want := range []string{"\n# Log\n", "`-only log`", "- **g**: the reason has not been looked for yet.", "- FAILED: a failure\n"} {
		if got := s.markdown(); !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}
