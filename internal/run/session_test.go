//go:build linux

package run

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"holdfast.dev/holdfast/internal/policy"
)

// TestSessionsAreNoLink has a link that would put the control socket of a run
// into a workspace.
func TestSessionsAreNoLink(t *testing.T) {
	task, elsewhere := &Task{State: t.TempDir()}, t.TempDir()
	if err := os.Symlink(elsewhere, filepath.Join(task.State, "sessions")); err != nil {
		t.Fatal(err)
	}
	_, err := task.open()
	if want := new(policy.StateError); !errors.As(err, &want) {
		t.Errorf("opened with %v", err)
	}
	if left, err := os.ReadDir(elsewhere); err != nil || len(left) > 0 {
		t.Errorf("written through the link: %v %v", left, err)
	}
}
