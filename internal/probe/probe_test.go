//go:build linux

package probe

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// prober builds the binary that runs inside, or takes the one that
// PROBE_PROBER names, for a test that runs where there is no compiler.
func prober(t *testing.T) string {
	t.Helper()
	if p := os.Getenv("PROBE_PROBER"); p != "" {
		return p
	}
	out := filepath.Join(t.TempDir(), "prober")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", out, "./inside/prober")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if b, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building the prober: %v\n%s", err, b)
	}
	return out
}

// runner makes its worlds below the home, as a user's projects are.
func runner(t *testing.T) Runner {
	t.Helper()
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	return Runner{Prober: prober(t), Dir: home}
}

// chosen are the rows that PROBE_ROWS names, by prefixes of their IDs and
// separated by commas; all of them when it is empty.
func chosen() []Row {
	want := os.Getenv("PROBE_ROWS")
	var out []Row
	for _, r := range All() {
		for prefix := range strings.SplitSeq(want, ",") {
			if strings.HasPrefix(r.ID, prefix) {
				out = append(out, r)
				break
			}
		}
	}
	return out
}

// TestBare is the proof that each row proves something: without a sandbox it
// escapes.
func TestBare(t *testing.T) {
	for _, res := range runner(t).Run(t.Context(), None{}, chosen()) {
		t.Run(res.Row.ID, func(t *testing.T) {
			t.Logf("%v: %s", res.Verdict, res.Reason)
			switch {
			case res.Row.Kind == Control:
				if res.Verdict != Held {
					t.Errorf("a control must succeed without a sandbox")
				}
			case strings.HasPrefix(res.Reason, "precondition missing"):
			case res.Row.BareUser != "" && os.Geteuid() != 0:
				t.Logf("need not escape for a user: %s", res.Row.BareUser)
			case res.Row.Bare != "":
				t.Logf("cannot escape without a sandbox: %s", res.Row.Bare)
				if res.Verdict == Escaped {
					t.Errorf("escaped, although the row says that it cannot: %s", res.Row.Bare)
				}
			case res.Verdict != Escaped && res.Verdict != Residual:
				t.Errorf("must escape without a sandbox")
			}
		})
	}
}

// TestTarget prints the verdicts of the target that PROBE_TARGET names, a
// word or the path of a holdfast binary. It judges nothing.
func TestTarget(t *testing.T) {
	name := os.Getenv("PROBE_TARGET")
	if name == "" {
		return
	}
	var target Target = Holdfast{Path: name}
	switch name {
	case "none":
		target = None{}
	case "bwrap":
		target = Bwrap{}
	}
	var b strings.Builder
	if err := Table(&b, runner(t).Run(t.Context(), target, chosen())); err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", b.String())
}
