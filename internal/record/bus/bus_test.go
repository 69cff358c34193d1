//go:build linux

package bus

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/record/audit"
)

// TestLossIsAnAlert has a sensor lose an event that cannot be written, and a
// rule about the end of the session. Both alerts are in the record before its
// end. No sink takes them: the record says which ones.
func TestLossIsAnAlert(t *testing.T) {
	dir := t.TempDir()
	rule := filepath.Join(dir, "rule.yaml")
	err := os.WriteFile(rule, []byte(`- id: acme-ended
  title: It ended
  severity: low
  technique: [T1083]
  explanation: It did.
  false_positives: None.
  actions: [session.end]
  condition: detail.status == "7"
  tests:
    raises: [{action: session.end, sensor: task, detail: {status: "7"}}]
    honest: [{action: session.end, sensor: task, detail: {status: "0"}}]
`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Session: "s", Log: filepath.Join(dir, "log"), State: t.TempDir()}
	c.Plan.Alerts.Rules = []policy.RuleSource{{Path: rule}}
	c.Plan.Alerts.Sinks = []policy.AlertSink{{Kind: "syslog", Address: "unix://" + filepath.Join(dir, "nobody"), Severity: "low"}}
	b, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Sensor(event.Syscall).Observe(event.Event{Action: event.FileOpen, Detail: map[string]string{"no key": "x"}}); err != nil {
		t.Fatal(err)
	}
	detail := map[string]string{"status": "7"}
	if err := b.End(detail); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err == nil || !b.Unsent() || detail["undelivered.1"] != "syslog unix://"+filepath.Join(dir, "nobody")+" 1-2" {
		t.Errorf("%v, %v, %q", err, b.Unsent(), detail)
	}
	alerts, ended := map[string]bool{}, false
	err = audit.Scan(t.Context(), filepath.Join(c.Log, "s.jsonl"), 1, func(*audit.Record) (bool, error) { return true, nil }, func(r *audit.Record) error {
		e, err := r.Event()
		ended = ended || e.Action == event.SessionEnd
		if !ended && e.Action == event.AlertRaise {
			alerts[e.Object] = true
		}
		return err
	})
	if err != nil || !ended || !alerts["record-drop"] || !alerts["acme-ended"] {
		t.Errorf("alerts %v, ended %t: %v", alerts, ended, err)
	}
}

// TestRecordNamesTheBuild reads the first line of a record.
func TestRecordNamesTheBuild(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b, err := Open(Config{Session: "s", Log: dir, State: t.TempDir(), Build: "1.2.3 (commit abc)"})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	found, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range found {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), `"build":"1.2.3 (commit abc)"`) {
			return
		}
	}
	t.Errorf("the build is in none of %q", found)
}
