//go:build linux

package native

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/policy"
)

// TestAnotherFileIsNotShown exchanges each path of a plan after it was judged:
// nothing is mounted from what took its name, and nothing over it.
func TestAnotherFileIsNotShown(t *testing.T) {
	for _, row := range []struct {
		path   string
		review bool
	}{
		{path: "work"}, {path: "work/ro"}, {path: "rw"}, {path: "rw/ro"}, {path: "copy"}, {path: "copy/rw"},
		{path: "work/hooks"}, {path: "work/secret"}, {path: "rw/secret"}, {path: "work/linked"}, {path: "work/up/linked"},
		{path: "work", review: true}, {path: "work/ro", review: true}, {path: "copy", review: true},
	} {
		name := row.path
		if row.review {
			name += " under a layer"
		}
		t.Run(name, func(t *testing.T) {
			spec, dir := exchangeable(t, row.review)
			p, err := (&Backend{}).Start(t.Context(), spec)
			if err == nil {
				_, err = p.Wait()
			}
			if err != nil {
				t.Fatalf("before anything was exchanged: %v", err)
			}
			if spec.Review != nil { // a layer is used once
				empty(t, spec.Review.Dir)
			}
			at := filepath.Join(dir, row.path)
			if err := os.Rename(at, at+".judged"); err != nil {
				t.Fatal(err)
			}
			fill(t, dir)
			os.Remove(spec.Plan.Workspace + "/ran")
			_, err = (&Backend{}).Start(t.Context(), spec)
			var posture *boundary.PostureError
			if !errors.As(err, &posture) || !strings.Contains(err.Error(), at) || !strings.Contains(err.Error(), replacedReason) {
				t.Errorf("started: %v", err)
			}
			if _, err := os.Lstat(spec.Plan.Workspace + "/ran"); err == nil {
				t.Error("the command ran")
			}
		})
	}
}

// exchangeable is a launch with something of each kind that is mounted from a path
// of the host, or over one.
func exchangeable(t *testing.T, review bool) (boundary.Spec, string) {
	spec, _ := viewed(t, policy.ViewOverlay)
	if !review {
		spec.Review, spec.Plan.Review = nil, false
	}
	dir := filepath.Dir(spec.Plan.Workspace)
	fill(t, dir)
	id := func(path string) policy.FileID {
		var st unix.Stat_t
		if err := unix.Lstat(filepath.Join(dir, path), &st); err != nil {
			t.Fatal(err)
		}
		return policy.FileID{Dev: st.Dev, Ino: st.Ino}
	}
	plan := &spec.Plan
	plan.File = id("work")
	for p, access := range map[string]policy.Access{
		"work/ro": policy.Read, "rw": policy.Write, "rw/ro": policy.Read, "copy": policy.Copy, "copy/rw": policy.Write,
	} {
		plan.Paths = append(plan.Paths, policy.PathRule{Path: filepath.Join(dir, p), Access: access, File: id(p)})
	}
	in := func(root, path string) policy.Protected {
		r := policy.Protected{Path: path, File: id(root + "/" + path)}
		if root != "work" {
			r.Root = filepath.Join(dir, root)
		}
		return r
	}
	if !review { // in a review nothing in the workspace is protected
		plan.Protect = []policy.Protected{in("work", "hooks")}
		plan.HardLinks = []policy.Protected{in("work", "linked"), in("work", "up/linked")}
	}
	plan.Hidden = []policy.Protected{in("work", "secret"), in("rw", "secret")}
	return spec, dir
}

// fill makes what is missing.
func fill(t *testing.T, dir string) {
	for _, d := range []string{"work/ro", "work/hooks", "work/up", "rw/ro", "copy/rw"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{"work/secret", "rw/secret", "work/linked", "work/up/linked"} {
		if _, err := os.Lstat(filepath.Join(dir, f)); err == nil {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, f), []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// empty gives a review new storage.
func empty(t *testing.T, dir string) {
	os.Chmod(filepath.Join(dir, "work", "work"), 0o700)
	for _, name := range []string{"upper", "work"} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}
