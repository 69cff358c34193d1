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
	for _, r := range slices.Concat(shellReplays(), buildReplays(), editorReplays(), readReplays(), gitReplays()) {
		if !slices.ContainsFunc(strings.Split(want, ","), func(prefix string) bool { return strings.HasPrefix(r.id, prefix) }) {
			continue
		}
		t.Run(r.id, func(t *testing.T) {
			row := r.row(classDeferred)
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
			for _, p := range r.plants {
				ran := slices.ContainsFunc(res.Effects, func(e string) bool { return strings.HasPrefix(e, p.Name()+" was executed") })
				if p.never != "" && ran {
					t.Errorf("%s is executed, although %s", p.At, p.never)
				}
				if p.never == "" && !ran {
					t.Errorf("%s is not executed", p.At)
				}
			}
			if t.Failed() {
				t.Logf("%v: %s\n%s\n%s", res.Verdict, res.Reason, strings.Join(res.Effects, "\n"), strings.Join(steps, "\n"))
			}
		})
	}
}
