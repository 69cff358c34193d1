//go:build linux

// Package probetest plays probe rows in tests: against a target that must
// hold, or one of whose defences was taken away and that must therefore not.
package probetest

import (
	"os"
	"slices"
	"testing"

	"holdfast.dev/holdfast/internal/probe"
)

// Prober builds the binary that runs inside, or takes the one that
// PROBE_PROBER names, for a test that runs where there is no compiler.
func Prober(t testing.TB) string {
	t.Helper()
	if p := os.Getenv("PROBE_PROBER"); p != "" {
		return p
	}
	path, err := probe.BuildProber(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// Runner makes its worlds below the home, as a user's projects are: a
// sandbox with a private /tmp would hide them there without any merit.
func Runner(t testing.TB) probe.Runner {
	t.Helper()
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	return probe.Runner{Prober: Prober(t), Dir: home}
}

// Hold fails for each row that does not hold against target: an escape, and
// also a run that proves nothing, unless the host or the target lacks what
// the row needs and lacking names the row.
func Hold(t *testing.T, target probe.Target, rows []probe.Row, lacking ...string) {
	t.Helper()
	for _, res := range Runner(t).Run(t.Context(), target, rows) {
		t.Run(res.Row.ID, func(t *testing.T) {
			switch {
			case res.Verdict == probe.Held || res.Verdict == probe.Residual:
				t.Logf("%v: %s", res.Verdict, res.Reason)
			case res.Missing && slices.Contains(lacking, res.Row.ID):
				t.Logf("not played: %s", res.Reason)
			default:
				t.Errorf("%v: %s: %s\n%q", res.Verdict, res.Row.Title, res.Reason, res.Effects)
			}
		})
	}
}

// Escape fails for each of the rows that does not escape: the defence that was
// taken away is not what held it.
func Escape(t *testing.T, target probe.Target, rows []probe.Row) {
	t.Helper()
	for _, res := range Runner(t).Run(t.Context(), target, rows)[1:] {
		t.Run(res.Row.ID, func(t *testing.T) {
			if res.Verdict != probe.Escaped && res.Verdict != probe.Residual {
				t.Errorf("%v (%s): must escape without its defence", res.Verdict, res.Reason)
			}
		})
	}
}

// Rows picks rows by their IDs and fails for one that does not exist.
func Rows(t testing.TB, ids ...string) []probe.Row {
	t.Helper()
	var out []probe.Row
	all := probe.All()
	for _, id := range ids {
		i := slices.IndexFunc(all, func(r probe.Row) bool { return r.ID == id })
		if i < 0 {
			t.Fatalf("no row is called %s", id)
		}
		out = append(out, all[i])
	}
	return out
}
