//go:build linux

package workspace

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/policy"
)

// Unreadable lists what the backend must make unreadable in a tree that may be read and
// not written: secrets under the names of r, and sockets, because a process can still
// connect to them. Links are not followed, and what cannot be read is not in view
// either.
func Unreadable(ctx context.Context, root string, r Rules) ([]policy.Protected, error) {
	s := &scan{rules: &r}
	if err := s.open(root); errors.Is(err, unix.EACCES) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer unix.Close(s.root)
	if err := run(ctx, s.root, &r, maxPath, false, s, walkMemory{}); err != nil {
		return nil, fmt.Errorf("looking for secrets in %s: %w", root, err)
	}
	s.hideSecrets()
	if n := len(s.found.Hidden); n > MaxProtected {
		return nil, &LimitError{What: "secrets and sockets in " + root, Have: n, Max: MaxProtected,
			hint: "name the directories in it that are needed, one by one, or files that the command may read under workspace.show in the policy"}
	}
	snap := Snapshot{trees: []*tree{s.found}}
	hidden := snap.Hidden()
	for i := range hidden {
		hidden[i].Root = root
	}
	return hidden, nil
}
