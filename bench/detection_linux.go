package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

// detectionPart is the name for -only of the part about alerts.
const detectionPart = "detection"

// sessionsTest is the test of the ordinary sessions. It contains their list, so
// that the same sessions are counted here and tested there.
const sessionsTest = "TestOrdinarySessionsRaiseNoAlert"

// detection counts the alerts that legitimate work raises.
func (b *bench) detection() (*section, error) {
	s := b.newSection(detectionPart, "Detection", nil)
	s.user = "whoever started the bench"
	s.intro = []string{"The alerts of ordinary sessions, each a run of its own with the default record: the sessions are those of " + sessionsTest + " (internal/testenv/realtest)."}
	b.logf("detection: ordinary sessions")
	ctx, cancel := context.WithTimeout(b.ctx, 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-v", "-run", "^"+sessionsTest+"$", "./internal/testenv/realtest")
	cmd.Dir, cmd.Env = b.root, append(os.Environ(), "HOLDFAST_TEST_BINARY="+b.holdfast)
	out, err := cmd.CombinedOutput()
	all := parseSessions(string(out))
	if err != nil {
		s.fail("%v: %s", err, lastLines(out))
	}
	t := table{header: []string{"session", "info", "low", "medium", "high", "critical"}}
	loud := 0
	for _, f := range all {
		t.add(f.name, fmt.Sprint(f.alerts[0]), fmt.Sprint(f.alerts[1]), fmt.Sprint(f.alerts[2]), fmt.Sprint(f.alerts[3]), fmt.Sprint(f.alerts[4]))
		if f.alerts[2]+f.alerts[3]+f.alerts[4] > 0 {
			loud++
		}
	}
	found := math.NaN()
	if len(all) > 0 {
		found = float64(loud)
	}
	s.verdicts = []verdict{
		judge("detection: ordinary sessions with an alert above low", 0, found, "%.0f"),
		atLeast("detection: ordinary sessions", 20, float64(len(all)), "%.0f"),
	}
	s.tables = []captioned{{caption: "Alerts of ordinary sessions", table: t}}
	s.load[1] = load()
	return s, nil
}

// finding is the number of alerts of each severity in one session.
type finding struct {
	name   string
	alerts [5]int
}

var (
	sessionLine = regexp.MustCompile(`^=== (?:RUN|CONT) +` + sessionsTest + `/(.+)$`)
	alertsLine  = regexp.MustCompile(`alerts: info=(\d+) low=(\d+) medium=(\d+) high=(\d+) critical=(\d+)`)
)

// parseSessions reads the output of the test.
func parseSessions(out string) []finding {
	var all []finding
	name := ""
	for line := range strings.Lines(out) {
		if m := sessionLine.FindStringSubmatch(strings.TrimRight(line, "\n")); m != nil {
			name = strings.ReplaceAll(m[1], "_", " ")
		}
		if m := alertsLine.FindStringSubmatch(line); m != nil {
			f := finding{name: name}
			for i := range f.alerts {
				if _, err := fmt.Sscan(m[i+1], &f.alerts[i]); err != nil {
					f.alerts[i] = -1 // visible in the report
				}
			}
			all = append(all, f)
		}
	}
	return all
}
