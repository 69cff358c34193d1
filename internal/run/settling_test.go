//go:build linux

package run

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"holdfast.dev/holdfast/internal/boundary/workspace"
)

// TestInterruptedSettling: the first interrupt says what would stay unexamined, the
// second one ends settling, and what was not looked at is listed.
func TestInterruptedSettling(t *testing.T) {
	signals := make(chan os.Signal)
	task, _ := newBench(t, "sh", "-c", "echo x > .envrc")
	var said []string
	task.Signals, task.Progress = signals, func(line string) { said = append(said, line) }
	b := workspace.NewBudget()
	b.Expect("/one", "/two")
	done := task.watchSettling(b)
	signals <- syscall.SIGINT
	signals <- syscall.SIGUSR1
	signals <- syscall.SIGINT
	done()
	if len(said) != 2 || !strings.Contains(said[0], "/one, /two would stay unexamined") || !strings.Contains(said[1], "is listed") {
		t.Errorf("said %q", said)
	}
	s, err := task.open()
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	plan := task.Plan
	if err := s.scan(t.Context(), &plan); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(plan.Workspace, ".envrc"), "")
	s.budget = b
	r, err := s.settle(t.Context())
	if err != nil || len(r.Quarantined) > 0 || len(r.Flagged) != 1 || r.Flagged[0].Change != workspace.Unexamined {
		t.Errorf("got %+v, %v", r, err)
	}
}
