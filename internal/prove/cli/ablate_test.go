//go:build linux

package cli_test

import (
	"os/exec"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/testenv"
)

// TestAblateVerb switches one control off with the verb: in a build made from the
// sources, and in one without a switch, where nothing is known of the control,
// which is a finding.
func TestAblateVerb(t *testing.T) {
	t.Parallel()
	testenv.Need(t, testenv.UserNS, nil)
	ablate := func(want int, args ...string) string {
		t.Helper()
		cmd := exec.Command(testenv.Binary(t), append([]string{"prove", "ablate"}, args...)...)
		cmd.Dir = t.TempDir()
		out, _ := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != want {
			t.Errorf("%q: status %d, want %d\n%s", args, got, want, out)
		}
		return string(out)
	}
	for _, c := range []struct {
		status int
		args   []string
		want   string
	}{
		{0, []string{"seccomp: keyrings", "--sources", testenv.ModuleRoot(t)}, "1 control, 1 row: 0 controls that no row needs"},
		{1, []string{"seccomp: keyrings", "--ablated", testenv.Binary(t)}, "controls of which nothing is known: 1\n  seccomp: keyrings\n"},
		{2, []string{"seccomp: keyrings"}, "run it in the sources of Holdfast"},
	} {
		if out := ablate(c.status, c.args...); !strings.Contains(out, c.want) {
			t.Errorf("%q: no %q in\n%s", c.args, c.want, out)
		}
	}
}
