//go:build linux

package run

import (
	"context"
	"path/filepath"
	"slices"
	"testing"

	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/record/audit"
)

// differs is a backend that finds the boundary other than planned.
type differs struct{ boundary.Backend }

func (differs) Start(context.Context, boundary.Spec) (boundary.Process, error) {
	return nil, &boundary.PostureError{Diff: []string{"no_new_privs is not set"}}
}

// beforeTheEnd are the events of the one log of a task up to session.end.
func beforeTheEnd(t *testing.T, task *Task) (out []event.Event) {
	t.Helper()
	info, err := audit.Find(task.Log, "")
	if err != nil {
		t.Fatal(err)
	}
	ended := false
	err = audit.Scan(t.Context(), info.Path, 1, func(*audit.Record) (bool, error) { return true, nil }, func(r *audit.Record) error {
		e, err := r.Event()
		if ended = ended || e.Action == event.SessionEnd; !ended {
			out = append(out, e)
		}
		return err
	})
	if err != nil || !ended {
		t.Errorf("the session has ended: %v, %v", ended, err)
	}
	return out
}

func hasAlert(all []event.Event, rule string) bool {
	return slices.ContainsFunc(all, func(e event.Event) bool { return e.Action == event.AlertRaise && e.Object == rule })
}

// TestBoundaryThatDiffersIsAnAlert: nothing is executed, and an alert is raised.
func TestBoundaryThatDiffersIsAnAlert(t *testing.T) {
	task, _ := newBench(t, "true")
	task.Log = filepath.Join(t.TempDir(), "log")
	task.Plan.Record.Level = policy.RecordStandard
	task.Backend = differs{task.Backend}
	if _, err := task.Run(t.Context()); err == nil {
		t.Fatal("no error")
	}
	all := beforeTheEnd(t, task)
	if !hasAlert(all, "attestation") {
		t.Errorf("no alert in %+v", all)
	}
	if !slices.ContainsFunc(all, func(e event.Event) bool {
		return e.Action == event.SessionAttest && e.Verdict == event.Denied && e.Detail["differs"] == "no_new_privs is not set"
	}) {
		t.Errorf("what differs is not said in %+v", all)
	}
}
