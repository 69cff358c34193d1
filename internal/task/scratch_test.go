//go:build linux

package task

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/workspace"
)

// TestJobFromAReadOnlySource is a build as in profile ci: the source can only be
// read, results go to an output, what is needed on the way to the scratch
// directory.
func TestJobFromAReadOnlySource(t *testing.T) {
	task, _ := newBench(t, "sh", "-c", `set -e
cd "$HOLDFAST_SCRATCH"; test -z "$(ls -A)"; mkdir -p a/b; cp "$OLDPWD/src" a/b/obj; chmod 000 a/b
printf '#!/bin/sh\necho run\n' > tool; chmod 755 tool; test "$(./tool)" = run
! (echo x >> "$OLDPWD/src") 2>/dev/null
cp "$OLDPWD/src" "$HOLDFAST_OUTPUT/result"; mkdir -p "$HOLDFAST_OUTPUT/.git/hooks"; echo x > "$HOLDFAST_OUTPUT/.envrc"; echo new > "$HOLDFAST_OUTPUT/.env"`)
	w := task.Plan.Workspace
	write(t, filepath.Join(w, "src"), "source\n")
	out := filepath.Join(w, "dist")
	task.Plan.Scratch, task.Plan.Outputs = true, []string{out}
	task.Plan.Paths = []policy.PathRule{{Path: w, Access: policy.Read}, {Path: out, Access: policy.Write, Origin: policy.Origin{File: "--output"}}}
	task.Plan.Env = append(task.Plan.Env, policy.Env{Name: "HOLDFAST_SCRATCH", Value: policy.ScratchDir}, policy.Env{Name: "HOLDFAST_OUTPUT", Value: out})
	for round := range 2 { // the second time the output is there already, with what was left in it
		task.Streams.In = strings.NewReader("") // a run does not wait for who reads it
		r, err := task.Run(t.Context())
		if err != nil || r.Exit.Status() != 0 {
			t.Fatalf("round %d: got %+v, %v", round, r.Exit, err)
		}
		if len(r.Settled.Quarantined) > 0 {
			t.Errorf("taken out of an output: %+v", r.Settled.Quarantined)
		}
		if !slices.ContainsFunc(r.Settled.Flagged, func(f workspace.Flagged) bool { return f.Path == workspace.Name(out+"/.envrc") }) {
			t.Errorf("not flagged: %+v", r.Settled.Flagged)
		}
		for name, want := range map[string]string{"result": "source\n", ".env": "new\n"} {
			if got, err := os.ReadFile(filepath.Join(out, name)); err != nil || string(got) != want {
				t.Errorf("%s is %q, %v", name, got, err)
			}
		}
		if left := task.sessionsLeft(); len(left) > 0 {
			t.Errorf("left %q", left)
		}
	}
	var st, ws unix.Stat_t
	if unix.Stat(out, &st) != nil || unix.Stat(w, &ws) != nil || st.Uid != ws.Uid {
		t.Errorf("the output belongs to %d, the workspace to %d", st.Uid, ws.Uid)
	}
}

// TestOutputIsNoWayOut has a link where the output is to be made.
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
