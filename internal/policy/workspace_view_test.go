package policy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReviewModeInPlans(t *testing.T) {
	for _, row := range []struct {
		name, file string
		flags      []string
		review     bool
		wrong      string
	}{
		{name: "a flag asks for it", flags: []string{"workspace.mode", "review"}, review: true},
		{name: "a file asks for it", file: "version: 1\nworkspace: {mode: review, view: copy}\n", review: true},
		{name: "production asks for it", file: "version: 1\nextends: production\n", review: true},
		{name: "of a workspace that is read-only there is nothing to review", file: "version: 1\nworkspace: {mode: review, readonly: [.]}\n"},
		{name: "nothing may pass by it", flags: []string{"workspace.mode", "review", "filesystem.write", "."}, wrong: "would bypass workspace.mode review"},
		{name: "a word that is none", file: "version: 1\nworkspace: {view: magic}\n", wrong: "workspace.view"},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t)
			if row.file != "" {
				w.write(userFile, row.file, 0o644)
			}
			plan, err := w.compile(w.options(row.flags...))
			if row.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), row.wrong) {
					t.Fatalf("got %v, want %q", err, row.wrong)
				}
				return
			}
			if err != nil || plan.Review != row.review {
				t.Fatalf("review %v, %v; want %v", plan.Review, err, row.review)
			}
		})
	}
}

func TestProjectMayAskForReviewAndNotForDirect(t *testing.T) {
	w := newWorld(t)
	w.write("home/u/ws/holdfast.yaml", "version: 1\nworkspace: {mode: review}\n", 0o644)
	if plan, err := w.compile(w.options()); err != nil || !plan.Review {
		t.Fatalf("review %v, %v", plan.Review, err)
	}
	w.write("home/u/ws/holdfast.yaml", "version: 1\nworkspace: {mode: direct}\n", 0o644)
	if _, err := w.compile(w.options("workspace.mode", "review")); err == nil {
		t.Fatal("a project's file made it direct again")
	}
}

func TestOutputsArePlacesThatMayBeMissing(t *testing.T) {
	w := newWorld(t)
	ws := filepath.Join(w.root, "home/u/ws")
	if err := os.Symlink("/etc", filepath.Join(ws, "etc")); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct{ given, want, wrong string }{
		{given: "dist", want: "dist"},
		{given: "deep/dist", wrong: "no such file"},
		{given: "etc/dist", wrong: "goes through the link"},
		{given: ".", wrong: "contains the workspace"},
		{given: "../x", wrong: ".."},
	} {
		plan, err := w.compile(w.options("workspace.mode", "review", "workspace.outputs", row.given))
		if row.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), row.wrong) {
				t.Errorf("%s: got %v, want %q", row.given, err, row.wrong)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if want := filepath.Join(ws, row.want); len(plan.Outputs) != 1 || plan.Outputs[0] != want {
			t.Errorf("%s: outputs %q, want %q", row.given, plan.Outputs, want)
		}
		for _, e := range plan.Env {
			if e.Name == "HOLDFAST_OUTPUT" && e.Value != plan.Outputs[0] {
				t.Errorf("HOLDFAST_OUTPUT=%s", e.Value)
			}
		}
	}
}

// The fate of a change depends on its place: a review holds it back only in the
// workspace itself.
func TestFateOfAChange(t *testing.T) {
	for _, row := range []struct {
		name, path, rule string
		review           bool
		want             string
	}{
		{"in the workspace", "/ws/a", "/ws", true, "to a view of the workspace"},
		{"in the workspace without review", "/ws/a", "/ws", false, "changes are made on the host"},
		{"under a rule of its own", "/data/a", "/data", true, "changes are made on the host"},
		{"in a directory for results", "/ws/dist/a", "/ws/dist", true, "a directory for results"},
	} {
		p := Plan{Workspace: "/ws", Review: row.review, Outputs: []string{"/ws/dist"}}
		if got := p.outcomeOf(row.path, PathRule{Path: row.rule, Access: Write}); !strings.HasPrefix(got, row.want) {
			t.Errorf("%s: %q, want %q", row.name, got, row.want)
		}
	}
}
