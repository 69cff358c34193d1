package realtest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Verdicts about an action.
const (
	works   = "works"
	toldWhy = "says why" // and what to type
	silent  = "does not say why"
	lost    = "lost" // it worked inside, and its result was dropped at the end
)

// outcome is what one action has come to.
type outcome struct {
	Action  string
	Verdict string
	Said    string `json:",omitempty"` // what was printed, where it did not work
}

// advice is what a person can type, or do next.
var advice = regexp.MustCompile(`(^|[ (])--[a-z]|hint: |holdfast [a-z]+`)

// judge compares what an action left, inside and after all was over, with what it
// printed and what the sandbox said until its end. names matches a line which
// says that it was the sandbox.
func (a action) judge(inside, after bool, printed, summary string, names *regexp.Regexp) outcome {
	if inside && after {
		return outcome{Action: a.name, Verdict: works}
	}
	o := outcome{Action: a.name, Verdict: silent, Said: printed}
	lines := strings.Split(printed+"\n"+summary, "\n")
	for i, line := range lines {
		about := func(word string) bool { return strings.Contains(line, word) }
		if !names.MatchString(line) || !slices.ContainsFunc(a.about, about) {
			continue
		}
		if inside && strings.Contains(line, " dropped: ") {
			o.Verdict = lost
			break
		}
		if advice.MatchString(line) || i+1 < len(lines) && names.MatchString(lines[i+1]) && strings.Contains(lines[i+1], "hint: ") {
			o.Verdict = toldWhy
		}
	}
	return o
}

// figuresVar is the variable that names a directory for figures: `go run ./bench
// -only path` makes a report of them.
const figuresVar = "HOLDFAST_TEST_FIGURES"

// writeFigures writes what was measured, if somebody wants it. What has no name
// was not measured.
func writeFigures[T interface{ measured() bool }](t *testing.T, name string, all []T) {
	t.Helper()
	dir := os.Getenv(figuresVar)
	if dir == "" {
		return
	}
	all = slices.DeleteFunc(all, func(v T) bool { return !v.measured() })
	data, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".json"), data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// maxQuestions is how many questions a new user answers: of Holdfast, and of the
// agent at its first start in a directory.
const maxQuestions = 2

func (h hour) measured() bool { return h.Name != "" }

// missed are the goals that an agent misses today.
func (h hour) missed() []string {
	var all []string
	for _, o := range h.Actions {
		// The path ends with a commit: there it is not enough to say why not.
		if o.Verdict == silent || o.Verdict == lost || o.Verdict != works && o.Action == actions[len(actions)-1].name {
			all = append(all, o.Action)
		}
	}
	if len(h.Typed) > 3 {
		all = append(all, noFlags)
	}
	if h.Asked[byHoldfast]+h.Asked[onboarding] > maxQuestions {
		all = append(all, fewQuestions)
	}
	if h.Status != "0" {
		all = append(all, endsWell)
	}
	if h.alerts != "" {
		all = append(all, noAlerts)
	}
	return all
}

// summary is the hour in some lines.
func (h hour) summary() string {
	text := fmt.Sprintf("%s %s: %.0f s, asked %v, status %s\n", h.Name, h.Version, h.Seconds, h.Asked, h.Status)
	for _, o := range h.Actions {
		text += fmt.Sprintf("%-32s %s\n", o.Action, o.Verdict)
	}
	return text
}

// compare fails the test where an agent misses a goal that is not listed, or
// reaches one that is.
func (h hour) compare(t *testing.T) {
	t.Helper()
	got := h.missed()
	for _, s := range shortfalls {
		if s.agent != "" && s.agent != h.Name {
			continue
		}
		if i := slices.Index(got, s.what); i >= 0 {
			got = slices.Delete(got, i, i+1)
		} else {
			t.Errorf("%q is reached now (it was missed: %s): remove it from the list of shortfalls", s.what, s.why)
		}
	}
	for _, what := range got {
		said := h.alerts
		for _, o := range h.Actions {
			if o.Action == what {
				said = o.Verdict + "\n" + o.Said
			}
		}
		t.Errorf("missed: %q %s", what, said)
	}
}
