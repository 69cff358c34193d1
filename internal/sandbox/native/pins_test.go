//go:build linux

package native

import (
	"slices"
	"testing"

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
		{path: "/out/deep/linked", how: readOnly}, // a hard link's ancestors may move
		{path: "/out/s.sock", how: unreadable},
		{path: "/out/sub"},
		{path: "/out/sub/.envrc", how: readOnly},
		{path: "/w/.env", how: unreadable},
		{path: "/w/a"},
		{path: "/w/a/.git"},
		{path: "/w/a/.git/hooks", how: readOnly, dir: true},
		{path: "/w/a/.git/hooks/key.pem", how: unreadable},
		{path: "/w/b/linked", how: readOnly},
	}
	if got := pins(plan); !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}
