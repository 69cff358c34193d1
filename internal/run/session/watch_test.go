//go:build linux

package session

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"holdfast.dev/holdfast/internal/boundary/workspace"
	"holdfast.dev/holdfast/internal/policy"
)

// TestInterruptedSettling: the first interrupt shows what would stay unexamined, the
// second one ends settling, and what was not looked at is listed.
func TestInterruptedSettling(t *testing.T) {
	signals := make(chan os.Signal)
	var lines []string
	u := User{signals, func(line string) { lines = append(lines, line) }}
	b := workspace.NewBudget()
	b.Expect("/one", "/two")
	done := u.watch(b)
	signals <- syscall.SIGINT
	signals <- syscall.SIGUSR1
	signals <- syscall.SIGINT
	done()
	if len(lines) != 2 || !strings.Contains(lines[0], "/one, /two would stay unexamined") || !strings.Contains(lines[1], "is listed") {
		t.Errorf("printed %q", lines)
	}
	s, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	plan := policy.Plan{Workspace: dir, Dir: dir, Identity: policy.Identity{Home: t.TempDir()}}
	if err := s.scan(t.Context(), &plan); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".envrc"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := s.settle(t.Context(), b)
	if err != nil || len(r.Quarantined) > 0 || len(r.Flagged) != 1 || r.Flagged[0].Change != workspace.Unexamined {
		t.Errorf("got %+v, %v", r, err)
	}
}
