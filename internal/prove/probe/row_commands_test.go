//go:build linux

package probe_test

import (
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/prove/probe"
)

// TestEveryTrickWorks is stricter than TestBare: not only the row, each of its
// tricks has to work where nothing is in its way. One that does not would be
// counted as held by every sandbox.
func TestEveryTrickWorks(t *testing.T) {
	var rows []probe.Row
	for _, r := range chosen() {
		if (r.Action == "tricks" || r.Action == "pushes") && !left(r) {
			rows = append(rows, r)
		}
	}
	r := runner(t)
	r.Workers = 3
	for _, res := range r.Run(t.Context(), probe.None{}, needing(false, rows)) {
		t.Run(res.Row.ID, func(t *testing.T) {
			if res.Missing {
				t.Logf("not played: %s", res.Reason)
				return
			}
			for _, a := range res.Said {
				// That a service was reached is not always shown inside.
				reached := strings.Contains(a.Text, "nothing refuses it") && strings.Contains(strings.Join(res.Effects, "\n"), "was reached")
				if !a.Done && a.Phase == "" && !reached {
					t.Errorf("%s: %s %s", a.Attempt, a.Errno, strings.ToValidUTF8(a.Text, "?"))
				}
			}
		})
	}
}
