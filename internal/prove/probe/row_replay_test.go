//go:build linux

package probe

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/testenv"
)

// TestEveryPlantIsExecuted is what makes the rows of the replay worth something:
// without a sandbox each payload is executed by the program that it is for, and
// not only one of them.
func TestEveryPlantIsExecuted(t *testing.T) {
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	n := Runner{Prober: testenv.Prober(t), Dir: home}
	want := os.Getenv("PROBE_ROWS")
	all, err := entries(true)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		replayed := len(r.Plants) > 0 && len(r.Drive) > 0 && r.Drive[0].Name == "go:human-starts" && !strings.HasPrefix(r.ID, "GIT-14")
		if !replayed || !slices.ContainsFunc(strings.Split(want, ","), func(prefix string) bool { return strings.HasPrefix(r.ID, prefix) }) {
			continue
		}
		t.Run(r.ID, func(t *testing.T) {
			row, err := r.row()
			if err != nil {
				t.Fatal(err)
			}
			var steps []string
			drive := row.Drive
			row.Drive = func(s *Session) {
				drive(s)
				for _, p := range s.World.armed.result.Steps {
					steps = append(steps, p.Name+": "+p.Took.String()+": "+p.Output)
				}
			}
			res := n.Play(t.Context(), None{}, row)
			if res.Missing {
				testenv.Need(t, "the programs of a replay", func() error { return errors.New(res.Reason) })
			}
			for _, p := range r.Plants {
				ran := slices.ContainsFunc(res.Effects, func(e string) bool { return strings.HasPrefix(e, p.Name()+" was executed") })
				if p.Never != "" && ran {
					t.Errorf("%s is executed, although %s", p.At, p.Never)
				}
				if p.Never == "" && !ran {
					t.Errorf("%s is not executed", p.At)
				}
			}
			if t.Failed() {
				t.Logf("%v: %s\n%s\n%s", res.Verdict, res.Reason, strings.Join(res.Effects, "\n"), strings.Join(steps, "\n"))
			}
		})
	}
}
