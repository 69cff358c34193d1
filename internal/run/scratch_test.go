//go:build linux

package run

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary/workspace"
	"holdfast.dev/holdfast/internal/policy"
)

// TestJobFromAReadOnlySource is a build as in profile ci: the source can only be
// read, results go to an output, what is needed on the way to the scratch
// directory.
func TestJobFromAReadOnlySource(t *testing.T) {
	task, _ := newBench(t, "sh", "-c", `set -e
cd "$HOLDFAST_SCRATCH"; test -z "$(ls -A)"; mkdir -p a/b; cp "$OLDPWD/src" a/b/obj; chmod 000 a/b
printf '#!/bin/sh\necho run\n' > tool; chmod 755 tool; test "$(./tool)" = run
! (echo x >> "$OLDPWD/src") 2>/dev/null
cp "$OLDPWD/src" "$HOLDFAST_OUTPUT/result"; mkdir -p "$HOLDFAST_OUTPUT/.git/hooks"; echo x > "$HOLDFAST_OUTPUT/.envrc"`)
	w := task.Plan.Workspace
	write(t, filepath.Join(w, "src"), "source\n")
	out := filepath.Join(w, "dist")
	task.Plan.Scratch, task.Plan.Outputs = true, []string{out}
	task.Plan.Paths = []policy.PathRule{{Path: w, Access: policy.Read}, {Path: out, Access: policy.Write, Origin: policy.Origin{File: "--output"}}}
	task.Plan.Env = append(task.Plan.Env, policy.Env{Name: "HOLDFAST_SCRATCH", Value: policy.ScratchDir}, policy.Env{Name: "HOLDFAST_OUTPUT", Value: out})
	for round := range 2 { // the second time the output is there already, with what was left in it
		task.Streams.In = strings.NewReader("") // a run does not wait for a reader
		r, err := task.Run(t.Context())
		if err != nil || r.Exit.Status() != 0 {
			t.Fatalf("round %d: got %+v, %v", round, r.Exit, err)
		}
		if !slices.ContainsFunc(r.Settled.Quarantined, func(q workspace.Quarantined) bool { return q.Path == workspace.Name(out+"/.envrc") }) {
			t.Errorf("not held back: %+v", r.Settled.Quarantined)
		}
		if got, err := os.ReadFile(filepath.Join(out, "result")); err != nil || string(got) != "source\n" {
			t.Errorf("the result is %q, %v", got, err)
		}
		if left := task.sessionsLeft(); len(left) != 0 || len(heldWithin(task, 0)) != round+1 {
			t.Errorf("left %q, and held back %q", left, heldWithin(task, 0))
		}
	}
	var st, ws unix.Stat_t
	if unix.Stat(out, &st) != nil || unix.Stat(w, &ws) != nil || st.Uid != ws.Uid {
		t.Errorf("the output belongs to %d, the workspace to %d", st.Uid, ws.Uid)
	}
}

// TestOutputIsNoWayOut has a link at the path where the output would be made.
func TestOutputIsNoWayOut(t *testing.T) {
	task, _ := newBench(t, "true")
	w := task.Plan.Workspace
	elsewhere := t.TempDir()
	if err := os.Symlink(elsewhere, filepath.Join(w, "dist")); err != nil {
		t.Fatal(err)
	}
	task.Plan.Outputs = []string{filepath.Join(w, "dist")}
	task.Plan.Paths = []policy.PathRule{{Path: filepath.Join(w, "dist"), Access: policy.Write}}
	if _, err := task.Run(t.Context()); err == nil {
		t.Error("it began, with an output that is a link")
	}
}

// TestOutputUnderAListedName has an output that is, or lies in, what the host
// executes or obeys. In review mode it would be looked at as a tree of its own, in
// which such a name does not show.
func TestOutputUnderAListedName(t *testing.T) {
	for _, name := range []string{".vscode", ".git/hooks", "a/.github/workflows/x", ".HUSKY"} {
		for _, review := range []bool{false, true} {
			task, _ := newBench(t, "true")
			out := filepath.Join(task.Plan.Workspace, name)
			if err := os.MkdirAll(out, 0o755); err != nil {
				t.Fatal(err)
			}
			task.Plan.Review, task.Plan.Outputs = review, []string{out}
			task.Plan.Paths = []policy.PathRule{{Path: out, Access: policy.Write}}
			_, err := task.Run(t.Context())
			var refused *workspace.ListedOutputError
			if !errors.As(err, &refused) || refused.Hint() == "" {
				t.Errorf("%s, review %v: %v", name, review, err)
			}
		}
	}
}
