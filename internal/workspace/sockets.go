//go:build linux

package workspace

import (
	"context"
	"io/fs"
	"path/filepath"

	"holdfast.dev/holdfast/internal/policy"
)

// maxVisible is how many entries of a tree that may only be read are looked at.
const maxVisible = 200_000

// Sockets lists the sockets in a tree that may be read and not written: one can
// connect to them all the same. Links are not followed, and what cannot be read
// is not in view either. A tree that is too large to look through is an error.
func Sockets(ctx context.Context, root string) ([]policy.Protected, error) {
	var out []policy.Protected
	seen := 0
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if seen++; seen > maxVisible {
			return &LimitError{What: "entries in " + root, Have: seen, Max: maxVisible,
				hint: "name the directories in it that are needed, one by one"}
		}
		if e.Type()&fs.ModeSocket != 0 {
			rel, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			out = append(out, policy.Protected{Root: root, Path: rel, Rule: "socket", Reason: "a program of the host may listen on it"})
		}
		return ctx.Err()
	})
	return out, err
}
