//go:build linux

package session

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
	state, elsewhere := t.TempDir(), t.TempDir()
	if err := os.Symlink(elsewhere, filepath.Join(state, "sessions")); err != nil {
		t.Fatal(err)
	}
	_, err := Open(state)
	if want := new(policy.StateError); !errors.As(err, &want) {
		t.Errorf("opened with %v", err)
	}
	if left, err := os.ReadDir(elsewhere); err != nil || len(left) > 0 {
		t.Errorf("written through the link: %v %v", left, err)
	}
}
