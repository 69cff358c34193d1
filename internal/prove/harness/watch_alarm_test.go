//go:build linux

package harness

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/prove/report"
	"holdfast.dev/holdfast/internal/testenv"
)

// Alerts are in a log of their own, and go to the sinks.
func TestWatchAlarm(t *testing.T) {
	dir := t.TempDir()
	var said strings.Builder
	o := WatchAlarmOptions{Program: testenv.Binary(t), Dir: dir, Env: append(os.Environ(), testenv.HomeEnv(dir)...), Stderr: &said}
	a, err := NewWatchAlarm(o)
	must(t, err)
	e := WatchEvent{Kind: WatchWeaker, Name: "tool", Path: "/x/\x1b[2J\xfftool" + strings.Repeat("x", 5000), Changes: report.Changes{Weakened: []report.Change{{ID: "LNK-001", Was: "held", Is: "ESCAPED"}}}}
	must(t, a.Raise(e), a.Raise(WatchEvent{Kind: WatchSame, Name: "tool"}), a.Raise(WatchEvent{Kind: WatchUntested, Name: "tool", Err: errors.New("no such file")}), a.Close())
	if lines := strings.SplitAfter(said.String(), "\n"); len(lines) != 3 || !strings.HasPrefix(lines[0], "holdfast: alert: high: a target holds less than before (prove-weaker)") || strings.Contains(said.String(), "\x1b") {
		t.Errorf("said %q", said.String())
	}
	logs, err := filepath.Glob(filepath.Join(dir, ".local/state/holdfast/log/*-watch-*.jsonl"))
	must(t, err)
	if len(logs) != 1 {
		t.Fatalf("logs are %q", logs)
	}
	content, err := os.ReadFile(logs[0])
	must(t, err)
	if !strings.Contains(string(content), "LNK-001 (held, now ESCAPED)") || !strings.Contains(string(content), "no such file") || !strings.Contains(string(content), `"object":"prove watch"`) {
		t.Errorf("the log has\n%s", content)
	}
	if err := a.Raise(e); err == nil {
		t.Error("what has ended records")
	}
	o.Policy = filepath.Join(dir, "none.yaml")
	if _, err := NewWatchAlarm(o); err == nil || errors.Is(err, ErrNoHoldfast) {
		t.Errorf("without its policy: %v", err)
	}
}

// Without holdfast nothing is recorded, and the watch goes on.
func TestWatchAlarmWithoutHoldfast(t *testing.T) {
	a, err := NewWatchAlarm(WatchAlarmOptions{Program: filepath.Join(t.TempDir(), "holdfast")})
	if a != nil || !errors.Is(err, ErrNoHoldfast) {
		t.Errorf("%v, %v", a, err)
	}
	must(t, a.Raise(WatchEvent{Kind: WatchWeaker, Name: "tool"}), a.Close())
}
