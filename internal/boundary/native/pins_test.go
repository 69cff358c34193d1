//go:build linux

package native

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/policy"
)

func TestPins(t *testing.T) {
	plan := policy.Plan{
		Workspace: "/w",
		Protect: []policy.Protected{
			{Path: "a/.git/hooks", IsDir: true},
			{Path: "a/.git/hooks/pre-commit"}, // covered by the directory
			{Root: "/out", Path: "sub/.envrc"},
		},
		Hidden: []policy.Protected{{Path: ".env"}, {Path: "a/.git/hooks/key.pem"}, {Root: "/out", Path: "s.sock"}},
		HardLinks: []policy.Protected{
			{Path: "b/linked"},
			{Root: "/out", Path: "deep/linked"}, // in its own tree, not in the workspace
		},
	}
	want := []pin{
		{path: "/out/deep"},
		{path: "/out/deep/linked", how: readOnly},
		{path: "/out/s.sock", how: unreadable},
		{path: "/out/sub"},
		{path: "/out/sub/.envrc", how: readOnly},
		{path: "/w/.env", how: unreadable},
		{path: "/w/a"},
		{path: "/w/a/.git"},
		{path: "/w/a/.git/hooks", how: readOnly, dir: true},
		{path: "/w/a/.git/hooks/key.pem", how: unreadable},
		{path: "/w/b"},
		{path: "/w/b/linked", how: readOnly},
	}
	if got := pins(plan); !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// TestWhatIsMountedCannotBeMovedAway: above everything that is mounted over a part
// of a writable tree, each directory up to the root of that tree is mounted over
// too, so that the kernel refuses to rename it.
func TestWhatIsMountedCannotBeMovedAway(t *testing.T) {
	spec, _ := viewed(t, policy.ViewOverlay)
	dir := filepath.Dir(spec.Plan.Workspace)
	for _, d := range []string{"work/p/q/r", "work/o/u/t", "rw/a/b/c", "copy/x/y", "rw/d/ws/e", "work/s/t", "work/h/i"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	rule := func(path string, access policy.Access) policy.PathRule {
		return policy.PathRule{Path: filepath.Join(dir, path), Access: access}
	}
	spec.Plan.Paths = []policy.PathRule{
		rule("copy", policy.Copy), rule("copy/x/y", policy.Hidden), rule("rw", policy.Write), rule("rw/a/b/c", policy.Read),
		rule("work/o/u/t", policy.Write), rule("work/p/q/r", policy.Read),
	}
	spec.Plan.Hidden = []policy.Protected{{Path: "s/t/.env"}, {Root: dir + "/rw", Path: "d/ws/.env"}}
	spec.Plan.HardLinks = []policy.Protected{{Path: "h/i/linked"}}
	spec.Files = []boundary.File{{Path: dir + "/rw/d/ws/e/own"}}
	for _, viewed := range []bool{false, true} {
		b := &builder{spec: spec}
		if b.spec.Review.Mode = policy.ViewOverlay; !viewed {
			b.spec.Review = nil
		}
		b.build()
		mounted := map[string]bool{}
		for _, m := range b.expect {
			mounted[m.Point] = true
		}
		seen := 0
		for _, m := range b.expect {
			tree := b.hostTree(m.Point)
			if tree == nil || tree.access == policy.Read {
				continue
			}
			for above := filepath.Dir(m.Point); above != tree.at; above = filepath.Dir(above) {
				if seen++; !mounted[above] {
					t.Errorf("%s is mounted, and %s can be renamed (a view: %t)", m.Point, above, viewed)
				}
			}
		}
		if seen < 10 {
			t.Errorf("only %d directories above mounts were looked at", seen)
		}
	}
}
