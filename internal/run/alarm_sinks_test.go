//go:build linux

package run

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/record/audit"
)

// TestSinksAndAnchorsOfARun has a run do what alerts, with a token in its
// arguments: the sinks of the policy get the alert and not the token, and its
// anchor knows how long the record was.
func TestSinksAndAnchorsOfARun(t *testing.T) {
	const token = "ghp_0123456789abcdefghijABCDEFGHIJ456789"
	task, _ := newBench(t, "sh", "-c", ": holdfast; : kill "+token)
	posted := make(chan string, 64)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		posted <- string(body)
	}))
	defer server.Close()
	outside := t.TempDir()
	alerts, anchor := filepath.Join(outside, "alerts.jsonl"), filepath.Join(outside, "anchor")
	task.Log = filepath.Join(outside, "log")
	task.Plan.Record = policy.Record{Level: policy.RecordStandard, Anchor: []policy.Anchor{{Kind: "file", Address: anchor}}}
	task.Plan.Alerts.Sinks = []policy.AlertSink{
		{Kind: "file", Address: alerts, Severity: "low"},
		{Kind: "webhook", Address: server.URL, Severity: "low", Timeout: 5 * time.Second},
	}
	result, err := task.Run(t.Context())
	if err != nil || len(result.Warnings) > 0 {
		t.Fatal(err, result.Warnings)
	}
	inFile, err := os.ReadFile(alerts)
	if err != nil {
		t.Fatal(err)
	}
	inRecord, err := os.ReadFile(filepath.Join(task.Log, result.Session+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for where, text := range map[string]string{"file": string(inFile), "webhook": received(t, posted), "record": string(inRecord)} {
		if !strings.Contains(text, "supervisor-signal") || !strings.Contains(text, "kill [redacted:github-token:") || strings.Contains(text, token) || strings.Contains(text, token[4:]) {
			t.Errorf("%s: %s", where, text)
		}
	}
	anchored(t, task, result.Session, anchor)
}

// received waits for what is posted; what the run's end did not wait for is kept
// for the next.
func received(t *testing.T, posted <-chan string) string {
	t.Helper()
	select {
	case text := <-posted:
		return text
	case <-time.After(20 * time.Second):
		t.Fatal("nothing was posted")
	}
	return ""
}

// anchored cuts off the end of a record: if its head is gone too, only the anchor shows
// it.
func anchored(t *testing.T, task *Task, session, anchor string) {
	t.Helper()
	path := filepath.Join(task.Log, session+".jsonl")
	notes, err := audit.AnchoredNotes(anchor, session)
	if err != nil || len(notes) == 0 {
		t.Fatalf("%d checkpoints were anchored: %v", len(notes), err)
	}
	options := audit.VerifyOptions{Notes: notes, Anchored: true}
	if r, err := audit.Verify(t.Context(), path, options); err != nil || r.Verdict != audit.Complete {
		t.Errorf("%v: %v, %v", r.Verdict, r.Problems, err)
	}
	lines, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	whole := strings.SplitAfter(string(lines), "\n")
	if err := os.WriteFile(path, []byte(strings.Join(whole[:len(whole)-3], "")), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(filepath.Dir(task.Log), "heads", session+".note")); err != nil {
		t.Fatal(err)
	}
	if r, err := audit.Verify(t.Context(), path, options); err != nil || r.Verdict != audit.Tampered {
		t.Errorf("cut off: %v: %v, %v", r.Verdict, r.Problems, err)
	}
}
