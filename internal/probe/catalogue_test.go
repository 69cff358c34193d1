//go:build linux

package probe

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/probe/inside"
)

func TestEveryCaseHasARow(t *testing.T) {
	for _, c := range Missing(All()) {
		t.Errorf("no row plays %s (%s, %s): %s", c.ID, c.Class, c.Kind, c.Title)
	}
}

// TestNearlyEveryRowEscapesBare counts those that say that they cannot without a
// sandbox; TestBare shows that all others do.
func TestNearlyEveryRowEscapesBare(t *testing.T) {
	cannot, all := 0, 0
	for _, r := range All() {
		if r.Kind != Sandbox {
			continue
		}
		all++
		if r.Bare != "" {
			cannot++
		}
	}
	if cannot*20 > all {
		t.Errorf("%d of %d rows cannot escape without a sandbox, more than one in twenty", cannot, all)
	}
}

func TestRowsAreWhole(t *testing.T) {
	cases := map[string]Case{}
	for _, c := range Catalogue() {
		cases[c.ID] = c
	}
	seen := map[string]bool{}
	name := regexp.MustCompile(`^[A-Z]{3}-[0-9]{3}[a-z]?$`)
	promise := regexp.MustCompile(`^P([1-9]|10)$`)
	for _, r := range All() {
		t.Run(r.ID, func(t *testing.T) {
			c, known := cases[strings.TrimRight(r.ID, "abcdefghijklmnopqrstuvwxyz")]
			switch {
			case seen[r.ID]:
				t.Error("there are two rows of this name")
			case !name.MatchString(r.ID):
				t.Error("the name is not three letters, three digits and perhaps a letter")
			case known && c.Class != r.Class:
				t.Errorf("the class is %s, and %s in the catalogue", r.Class, c.Class)
			case !promise.MatchString(string(r.Promise)):
				t.Errorf("no promise is called %q", r.Promise)
			case r.Title == "" || len(r.Refs) == 0:
				t.Error("title or references are missing")
			case r.Kind != Sandbox && r.Kind != Host && r.Kind != Control:
				t.Errorf("no kind is called %q", r.Kind)
			case r.Action != "" && !inside.Known(r.Action):
				t.Errorf("no action is called %q", r.Action)
			case r.Action == "" && r.Drive == nil:
				t.Error("neither action nor drive")
			}
			for _, need := range r.Needs {
				_, has := hostHas[need]
				if !has && need != "network" && !strings.HasPrefix(need, "runs ") && !strings.HasPrefix(need, "program ") {
					t.Errorf("nobody knows what it is to need %q: the row would never be played", need)
				}
			}
			seen[r.ID] = true
		})
	}
}

// TestKnowsNoDefence keeps the examiner from reading the student's notes.
func TestKnowsNoDefence(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "./inside/prober", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for dep := range strings.Lines(string(out)) {
		dep = strings.TrimSpace(dep)
		if strings.Contains(dep, "holdfast.dev/") && !strings.Contains(dep, "/internal/probe") {
			t.Errorf("package probe depends on %s", dep)
		}
	}
}
