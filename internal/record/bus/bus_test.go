//go:build linux

package bus

import (
	"path/filepath"
	"testing"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/record/audit"
)

// TestLossIsAnAlert has a sensor lose an event, as one does that cannot be written.
// The alert is in the record before its end.
func TestLossIsAnAlert(t *testing.T) {
	c := Config{Session: "s", Log: filepath.Join(t.TempDir(), "log"), State: t.TempDir()}
	b, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Sensor(event.Syscall).Observe(event.Event{Action: event.FileOpen, Detail: map[string]string{"no key": "x"}}); err != nil {
		t.Fatal(err)
	}
	if err := b.End(map[string]string{}); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	alert, ended := false, false
	err = audit.Scan(t.Context(), filepath.Join(c.Log, "s.jsonl"), 1, func(*audit.Record) (bool, error) { return true, nil }, func(r *audit.Record) error {
		e, err := r.Event()
		ended = ended || e.Action == event.SessionEnd
		alert = alert || !ended && e.Action == event.AlertRaise && e.Object == "record-drop"
		return err
	})
	if err != nil || !ended || !alert {
		t.Errorf("alert %t, ended %t: %v", alert, ended, err)
	}
}
