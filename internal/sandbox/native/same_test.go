//go:build linux

package native

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/sandbox"
)

// TestAnotherFileIsNotShown exchanges each path of a plan after it was judged: what
// took its name is not mounted in its place.
func TestAnotherFileIsNotShown(t *testing.T) {
	for _, path := range []string{"work", "work/ro", "rw", "rw/ro"} {
		t.Run(path, func(t *testing.T) {
			spec, _ := viewed(t, policy.ViewOverlay)
			spec.Review, spec.Plan.Review = nil, false
			dir := filepath.Dir(spec.Plan.Workspace)
			id := func(path string) policy.FileID {
				var st unix.Stat_t
				if err := unix.Lstat(filepath.Join(dir, path), &st); err != nil {
					t.Fatal(err)
				}
				return policy.FileID{Dev: st.Dev, Ino: st.Ino}
			}
			for _, d := range []string{"work/ro", "work/ro2", "rw/ro", "rw/ro2"} {
				if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			spec.Plan.File = id("work")
			for p, access := range map[string]policy.Access{"work/ro": policy.Read, "rw": policy.Write, "rw/ro": policy.Read} {
				spec.Plan.Paths = append(spec.Plan.Paths, policy.PathRule{Path: filepath.Join(dir, p), Access: access, File: id(p)})
			}
			p, err := (&Backend{}).Start(t.Context(), spec)
			if err == nil {
				_, err = p.Wait()
			}
			if err != nil {
				t.Fatalf("before anything was exchanged: %v", err)
			}
			at := filepath.Join(dir, path)
			if err := os.Rename(at, at+".judged"); err != nil {
				t.Fatal(err)
			}
			for _, d := range []string{"work/ro", "rw/ro"} {
				if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			os.Remove(spec.Plan.Workspace + "/ran")
			_, err = (&Backend{}).Start(t.Context(), spec)
			var posture *sandbox.PostureError
			if !errors.As(err, &posture) || !strings.Contains(err.Error(), at+" is not what it was") {
				t.Errorf("started: %v", err)
			}
			if _, err := os.Lstat(spec.Plan.Workspace + "/ran"); err == nil {
				t.Error("the command ran")
			}
		})
	}
}
