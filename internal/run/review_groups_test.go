//go:build linux

package run

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"holdfast.dev/holdfast/internal/boundary/workspace"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/testenv"
)

// In a tree that a group shares, files have another group than the command has
// first: the workspace is copied then, because a layer cannot change them.
func TestRootReviewOfASharedTree(t *testing.T) {
	testenv.Need(t, testenv.Root, nil)
	task := newReview(t, policy.ViewAuto, "sh", "-c", "set -e; echo two >> file; echo n > dir/n; mv dir/deep dir/moved; rm prog")
	for _, name := range []string{"file", "dir", "dir/deep", "prog"} {
		if err := os.Chown(filepath.Join(task.Plan.Workspace, name), -1, 4242); err != nil {
			t.Fatal(err)
		}
	}
	if err := unix.Chmod(task.Plan.Workspace+"/dir", 0o2775); err != nil {
		t.Fatal(err)
	}
	r, err := task.Run(t.Context())
	if err != nil || r.Exit.Status() != 0 || r.Viewed == nil || r.Viewed.Mode != policy.ViewCopy {
		t.Fatalf("got %+v, %+v, %v", r.Exit, r.Viewed, err)
	}
}

func TestOwnersThatALayerCannotChange(t *testing.T) {
	dir := t.TempDir()
	if err := exec.Command("sh", "-c", "cd "+dir+"; mkdir -p a/b; echo x > a/b/f; ln -s x a/l").Run(); err != nil {
		t.Fatal(err)
	}
	me, mine := uint32(os.Getuid()), uint32(os.Getgid())
	for _, row := range []struct {
		name string
		ids  workspace.Owners
		is   workspace.Name
	}{
		{"all are of the command", workspace.Owners{UID: me, GID: mine}, ""},
		{"of another group of the command", workspace.Owners{UID: me + 1, GID: mine + 1, Groups: []uint32{mine}}, "."},
		{"its own, of a group that is not its first", workspace.Owners{UID: me, GID: mine + 1}, "."},
		{"of somebody else altogether: nothing could change them", workspace.Owners{UID: me + 1, GID: mine + 1}, ""},
	} {
		if got, err := workspace.OtherOwner(t.Context(), dir, row.ids); err != nil || got != row.is {
			t.Errorf("%s: %q, %v", row.name, got, err)
		}
	}
}
