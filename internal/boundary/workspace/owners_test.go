//go:build linux

package workspace

import (
	"os"
	"path/filepath"
	"testing"

	"holdfast.dev/holdfast/internal/testenv"
)

// A layer over the workspace cannot change a file that the command may change by
// one of its groups only. Files that it may not change are no concern of it.
func TestRootOtherOwner(t *testing.T) {
	testenv.Need(t, testenv.Root, nil)
	ids := Owners{UID: 1000, GID: 1000, Groups: []uint32{2000}}
	for _, tt := range []struct {
		name     string
		path     string
		uid, gid int
		want     Name
	}{
		{"its own", "d/f", 1000, 1000, ""},
		{"its user and another group", "d/f", 1000, 3000, "d/f"},
		{"another user and its group", "d/f", 3000, 1000, "d/f"},
		{"another user and a further group", "d/f", 3000, 2000, "d/f"},
		{"its user and a further group", "d/f", 1000, 2000, "d/f"},
		{"of somebody else", "d/f", 3000, 3000, ""},
		{"the directory that holds it", "d", 3000, 1000, "d"},
		{"the root of the tree", ".", 3000, 1000, "."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := tempRoot(t)
			write(t, root, "d/f", "x")
			for _, name := range []string{".", "d", "d/f"} {
				must(t, os.Lchown(filepath.Join(root, name), 1000, 1000))
			}
			must(t, os.Lchown(filepath.Join(root, tt.path), tt.uid, tt.gid))
			if got, err := OtherOwner(t.Context(), root, ids); err != nil || got != tt.want {
				t.Errorf("%q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

// The answer "no such file" is never given for a tree that was not looked at.
func TestOtherOwnerFails(t *testing.T) {
	root := tempRoot(t)
	write(t, root, "f", "x")
	link(t, ".", root, "link")
	for _, name := range []string{"none", "f", "link"} {
		if got, err := OtherOwner(t.Context(), filepath.Join(root, name), Owners{}); err == nil {
			t.Errorf("%s: %q and no error", name, got)
		}
	}
}
