//go:build linux

package harness

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/probe"
	"holdfast.dev/holdfast/internal/testenv"
)

// TestAblation switches one control off after the other: the rows that depend
// on it escape then, and are held when nothing is switched off.
func TestAblation(t *testing.T) {
	testenv.Need(t, testenv.UserNS, nil)
	controls := slices.DeleteFunc(Controls(), func(c Control) bool { return c.Network })
	ablate(t, runner(t), controls)
}

// ablatedProgram is the path by which this test binary is Holdfast with
// controls switched off.
func ablatedProgram(t *testing.T) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), ablatedName)
	if err := os.Symlink(exe, link); err != nil {
		t.Fatal(err)
	}
	return link
}

func ablate(t *testing.T, play probe.Runner, controls []Control) {
	link, held := ablatedProgram(t), map[string]bool{}
	for _, c := range controls {
		if !c.Root && !c.User {
			continue // the table says why
		}
		if root := os.Geteuid() == 0; root && !c.Root || !root && !c.User {
			continue // something else holds them for this user
		}
		t.Run(c.Name, func(t *testing.T) {
			rows, err := Select(probe.All(), c.Rows)
			if err != nil {
				t.Fatal(err)
			}
			whole := probe.Holdfast{Path: link}
			without := probe.Holdfast{Path: link, Extra: []string{"--omit=" + strings.Join(c.Omit, "+")}}
			for _, r := range rows {
				if res := play.Play(t.Context(), without, r); res.Verdict != probe.Escaped {
					t.Errorf("%s, %s: %v without %s: %s", r.ID, r.Title, res.Verdict, c.Name, res.Reason)
				}
				if held[r.ID] {
					continue
				}
				if res := play.Play(t.Context(), whole, r); res.Verdict != probe.Held {
					t.Errorf("%s, %s: %v with everything on: %s", r.ID, r.Title, res.Verdict, res.Reason)
				}
				held[r.ID] = true
			}
		})
	}
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
