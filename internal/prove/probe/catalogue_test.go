//go:build linux

package probe

import (
	_ "embed"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/prove/inside"
)

//go:embed catalogue.tsv
var catalogueTSV string

// catalogued is an entry of the escape catalogue, which has more than the rows.
type catalogued struct {
	ID, Class, Title string
	Kind             Kind // also proxy, which is played from inside, and kinds not played here: policy, agent
	Core             bool
}

// catalogue returns all entries.
func catalogue() []catalogued {
	var out []catalogued
	for line := range strings.Lines(catalogueTSV) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		out = append(out, catalogued{ID: f[0], Class: f[1], Kind: Kind(f[2]), Core: f[3] == "core", Title: f[4]})
	}
	return out
}

// unplayed returns the entries without a row.
func unplayed(rows []Row) []catalogued {
	played := map[string]bool{}
	for _, r := range rows {
		played[r.ID] = true
	}
	return slices.DeleteFunc(catalogue(), func(c catalogued) bool { return played[c.ID] })
}

func TestEveryCaseHasARow(t *testing.T) {
	for _, c := range unplayed(All()) {
		t.Errorf("no row plays %s (%s, %s): %s", c.ID, c.Class, c.Kind, c.Title)
	}
}

// TestNearlyEveryRowEscapesBare counts the rows that declare that they cannot
// escape without a sandbox; TestBare shows that all others do.
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
	cases := map[string]catalogued{}
	for _, c := range catalogue() {
		cases[c.ID] = c
	}
	seen := map[string]bool{}
	name := regexp.MustCompile(`^[A-Z]{3}-[0-9]{3}[a-z]?$`)
	promise := regexp.MustCompile(`^P([1-9]|10)$`)
	for _, r := range All() {
		t.Run(r.ID, func(t *testing.T) {
			_, has := inside.Find(r.Action)
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
			case !has && r.Action != "":
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

// TestKnowsNoDefence checks that the examiner does not import what it examines.
func TestKnowsNoDefence(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "../inside/prober", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for dep := range strings.Lines(string(out)) {
		dep = strings.TrimSpace(dep)
		if strings.Contains(dep, "holdfast.dev/") && !strings.Contains(dep, "/internal/prove/") && !strings.Contains(dep, "/internal/floor/") {
			t.Errorf("package probe depends on %s", dep)
		}
	}
}
