package audit

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"holdfast.dev/holdfast/internal/floor/event"
)

// Several writers, in turn and all at once, make one chain.
func TestResumeGoesOnWithTheChain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	l, err := Create(dir, Options{Session: "claude-1"})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Emit(event.Event{Sensor: event.Agent, N: 1, Action: event.ToolCall, Object: "Bash"}); err != nil {
		t.Fatal(err)
	}
	if err := l.Leave(); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for range 12 {
		all.Go(func() {
			l, last, err := Resume(dir, Options{Session: "claude-1"})
			if err != nil {
				t.Error(err)
				return
			}
			if err := l.Emit(event.Event{Sensor: event.Agent, N: last(event.Agent) + 1, Action: event.ToolCall, Object: "Bash"}); err != nil {
				t.Error(err)
			}
			if err := l.Leave(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	l, last, err := Resume(dir, Options{Session: "claude-1"})
	if err != nil || last(event.Agent) != 13 {
		t.Fatal(last(event.Agent), err)
	}
	err = l.Emit(event.Event{Sensor: event.Task, N: 1, Action: event.SessionEnd, Detail: map[string]string{"count.agent": "13", "count.task": "1"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := Verify(context.Background(), filepath.Join(dir, "claude-1.jsonl"), VerifyOptions{})
	if err != nil || r.Verdict != Complete || r.Sensors["agent"].Standing != 13 {
		t.Errorf("%v %+v", err, r)
	}
	if _, _, err := Resume(dir, Options{Session: "claude-1"}); !errors.Is(err, ErrEnded) {
		t.Errorf("of a record that has ended: %v", err)
	}
}

// A writer that died in the middle of a line leaves a record that is not
// continued: what it was about to write is not known.
func TestResumeRefusesWhatIsBroken(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	l, err := Create(dir, Options{Session: "s"})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Leave(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "s.jsonl")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", strings.TrimSuffix(string(whole), "\n"), string(whole) + `{"seq":`, string(whole) + "x\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Resume(dir, Options{Session: "s"}); !errors.Is(err, ErrBroken) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", path); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Resume(dir, Options{Session: "s"}); err == nil {
		t.Error("a link was followed")
	}
	if _, _, err := Resume(dir, Options{Session: "../s"}); err == nil {
		t.Error("a path is an id")
	}
}
