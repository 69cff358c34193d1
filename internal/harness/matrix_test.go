//go:build linux

package harness

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/probe"
	"holdfast.dev/holdfast/internal/testenv"
)

// runner makes its worlds below the home, as a user's projects are.
func runner(t *testing.T) probe.Runner {
	t.Helper()
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	return probe.Runner{Prober: prober(t), Dir: home}
}

// prober builds the binary that runs inside, or takes the one that
// PROBE_PROBER names, for a test that runs where there is no compiler.
func prober(t *testing.T) string {
	t.Helper()
	if p := os.Getenv("PROBE_PROBER"); p != "" {
		return p
	}
	out := filepath.Join(t.TempDir(), "prober")
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", out, "./internal/probe/inside/prober")
	cmd.Dir = testenv.ModuleRoot(t)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building the prober: %v\n%s", err, b)
	}
	return out
}

// TestMatrix plays every row against the program as it is shipped, as whoever
// runs the test. Each is held, or gets through for a reason that it documents.
func TestMatrix(t *testing.T) {
	testenv.Need(t, testenv.UserNS, nil)
	matrix(t, runner(t), probe.Holdfast{Path: testenv.Binary(t)}, needing(false, probe.All()))
}

func matrix(t *testing.T, play probe.Runner, target probe.Target, rows []probe.Row) {
	t.Helper()
	results := play.Run(t.Context(), target, rows)
	unheld := Unheld(results)
	var b strings.Builder
	if err := probe.Table(&b, unheld); err != nil {
		t.Fatal(err)
	}
	if len(unheld) > 0 {
		t.Errorf("%d of %d rows are not held:\n%s", len(unheld), len(results), b.String())
	}
}
