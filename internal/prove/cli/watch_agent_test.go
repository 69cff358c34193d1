//go:build linux

package cli_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/floor/programs"
	"holdfast.dev/holdfast/internal/prove/agent"
	"holdfast.dev/holdfast/internal/testenv"
)

// TestWatchAgent watches the program of a real agent, by the name that its user
// calls.
func TestWatchAgent(t *testing.T) {
	t.Parallel()
	testenv.Need(t, testenv.UserNS, nil)
	testenv.Need(t, testenv.Agents, nil)
	d, err := agent.Named("claude")
	if err != nil {
		t.Fatal(err)
	}
	installed, err := agent.Find(t.Context(), d, nil, testenv.AgentsDir())
	if err != nil || len(installed) == 0 {
		t.Fatal(installed, err)
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "claude")
	if err := os.Symlink(installed[0].Program, program); err != nil {
		t.Fatal(err)
	}
	watch := func(want int, args ...string) string {
		t.Helper()
		cmd := exec.Command(testenv.Binary(t), append([]string{"prove", "watch", "--once", "--quiet", "100ms"}, args...)...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PATH="+dir+":/usr/local/bin:/usr/bin:/bin", "XDG_STATE_HOME="+filepath.Join(dir, "state"))
		out, _ := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != want {
			t.Errorf("%q: status %d, want %d\n%s", args, got, want, out)
		}
		return string(out)
	}
	tried := []string{"--agent", "claude", "--posture", "bare", "--id", "AGT-WRITE-TOOL", "--baseline", "base.json"}
	if out := watch(0, tried...); !strings.Contains(out, "baseline") {
		t.Errorf("printed is %s", out)
	}
	text, err := os.ReadFile(filepath.Join(dir, "base.json"))
	if err != nil || !strings.Contains(string(text), "AGT-WRITE-TOOL") || !strings.Contains(string(text), "ESCAPED") {
		t.Errorf("the baseline is %s, %v", text, err)
	}
	// Another program of that name, which does nothing: the controls that worked do not
	// work any more.
	if err := os.Remove(program); err != nil {
		t.Fatal(err)
	}
	if err := programs.Write(program, []byte("#!/bin/sh\necho '2.1.330 (Claude Code)'\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if out := watch(1, tried...); !strings.Contains(out, "weaker") || !strings.Contains(out, "no control worked") {
		t.Errorf("printed is %s", out)
	}
	if out := watch(2, "--agent", "claude", "--posture", "auto,bare"); !strings.Contains(out, "a baseline covers one posture") {
		t.Errorf("printed is %s", out)
	}
	if out := watch(2, "--agent", "no-such-agent"); !strings.Contains(out, "holdfast agents") {
		t.Errorf("printed is %s", out)
	}
}
