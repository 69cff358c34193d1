package detect

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"holdfast.dev/holdfast/internal/floor/event"
)

// mostLow is how many low alerts honest work may raise: with more, people
// switch detection off.
const mostLow = 5

// honestSessions are recorded ones of real programs: agents that edit, test,
// install, commit and start a sub-agent under a scripted model, and a browser
// that shows a page. Names of hosts and people are replaced; events that repeat
// others, and what rules do not look at, are left out.
func honestSessions(t *testing.T) map[string][]event.Event {
	t.Helper()
	files, err := filepath.Glob("testdata/sessions/*.jsonl")
	if err != nil || len(files) < 9 {
		t.Fatalf("%d sessions: %v", len(files), err)
	}
	all := map[string][]event.Event{}
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var events []event.Event
		for line := range bytes.Lines(data) {
			e := event.Event{Session: "s", Seq: uint64(len(events) + 1)}
			if err := json.Unmarshal(line, &e); err != nil {
				t.Fatalf("%s:%d: %v", f, len(events)+1, err)
			}
			events = append(events, e)
		}
		all[filepath.Base(f)] = events
	}
	return all
}

// TestHonestSessions replays them, with all look-ups and as recorded where
// opening /dev/fuse is not permitted.
func TestHonestSessions(t *testing.T) {
	for name, events := range honestSessions(t) {
		unseen := slices.DeleteFunc(slices.Clone(events), func(e event.Event) bool { return e.Action == event.FileLookup })
		for way, session := range map[string][]event.Event{name: events, name + " without look-ups": unseen} {
			alerts, err := Replay(Config{}, session)
			if err != nil {
				t.Fatal(err)
			}
			low := 0
			for _, a := range alerts {
				switch {
				case a.Severity.Level() > Low.Level():
					t.Errorf("%s raises %s (%s): %s", way, a.Rule, a.Severity, a.Object)
				case a.Severity == Low:
					low++
				}
			}
			if low > mostLow {
				t.Errorf("%s raises %d alerts that are low: %s", way, low, short(alerts))
			}
		}
	}
}

// TestHonestSessionsWithOneThatIsNot adds to each session a command below its
// last program that asks for what the agent asks for itself.
func TestHonestSessionsWithOneThatIsNot(t *testing.T) {
	for name, events := range honestSessions(t) {
		last := events[len(events)-1]
		cat := started(9999, last.Process.Exec, last.Process.Exec, "/usr/bin/cat", "cat")
		read := event.Event{Action: event.FileLookup, Object: "/home/you/.claude/.credentials.json", Verdict: event.Denied, Layer: event.LayerView, Process: event.Process{PID: cat.Process.PID, Exec: 9999}}
		for _, e := range []*event.Event{&cat, &read} {
			e.Session, e.Time = "s", last.Time
		}
		alerts, err := Replay(Config{}, append(events, cat, read))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(alerts, func(a Alert) bool { return a.Rule == "credential-denied" && a.Severity == Medium }) {
			t.Errorf("%s with cat of a login raises %s", name, short(alerts))
		}
	}
}
