//go:build linux

package harness

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/testenv"
)

// TestAblation switches one control off after the other: the rows that depend
// on it escape then, and are held when nothing is switched off.
func TestAblation(t *testing.T) {
	testenv.Need(t, testenv.UserNS, nil)
	play := runner(t)
	play.Workers = 3
	ablate(t, Ablation{Runner: play})
}

func ablate(t *testing.T, o Ablation) {
	t.Helper()
	o.Program, o.Holdfast = ablatedProgram(t), testenv.Binary(t)
	kill, err := Ablate(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	held := map[string]bool{}
	for _, r := range kill.Rows {
		held[r.ID] = true
	}
	controls, err := o.controls()
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range controls {
		if !plays(c) {
			continue // the table says why, or something else holds them for this user
		}
		for _, id := range c.Rows {
			switch {
			case !held[id]:
				t.Errorf("%s is not held with everything on", id)
			case !slices.Contains(kill.Controls[i].Escaped, id):
				t.Errorf("%s does not escape without %s", id, c.Name)
			}
		}
	}
	for _, name := range kill.Needless() {
		t.Errorf("no row needs %s", name)
	}
}

// ablatedProgram builds Holdfast with controls that can be switched off.
func ablatedProgram(t *testing.T) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "holdfast-ablated")
	if err := BuildAblated(t.Context(), testenv.ModuleRoot(t), out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestControls checks the table itself.
func TestControls(t *testing.T) {
	names := map[string]bool{}
	for _, c := range Controls() {
		switch {
		case names[c.Name]:
			t.Errorf("%s stands twice", c.Name)
		case len(c.Rows) == 0 && c.Why == "":
			t.Errorf("%s has neither rows nor a reason", c.Name)
		case len(c.Rows) > 0 && len(c.Omit) == 0:
			t.Errorf("%s has rows and nothing to leave out", c.Name)
		case len(c.Rows) > 0 && !c.Root && !c.User:
			t.Errorf("%s is played for nobody", c.Name)
		case len(c.Omit) > 1 && c.Why == "":
			t.Errorf("%s leaves out several and does not say what overlaps", c.Name)
		}
		names[c.Name] = true
	}
}

// TestEveryGroupOfCalls has the table follow the list of system calls.
func TestEveryGroupOfCalls(t *testing.T) {
	list, err := os.ReadFile("../sandbox/native/syscalls.tsv")
	if err != nil {
		t.Fatal(err)
	}
	in := map[string]bool{}
	for _, c := range Controls() {
		in[c.Name] = true
	}
	for line := range strings.Lines(string(list)) {
		f := strings.Split(line, "\t")
		if strings.HasPrefix(line, "#") || len(f) < 2 {
			continue
		}
		if name := "seccomp: " + f[1]; !in[name] {
			t.Errorf("%s has no place in the table", name)
			in[name] = true
		}
	}
}
