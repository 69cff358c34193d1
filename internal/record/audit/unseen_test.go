package audit

import (
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/testenv"
)

// TestVerdictOnWhatWasNotSeen: a record is COMPLETE only if each sensor was there
// for the whole run and lost nothing, and the verifier that shares no code agrees.
func TestVerdictOnWhatWasNotSeen(t *testing.T) {
	testenv.Need(t, testenv.Python, nil)
	start := func(detail ...string) event.Event { return told(event.Task, event.SessionStart, "", detail...) }
	blind := func(what, reason string) event.Event {
		return told(event.Record, event.RecordBlind, what, "reason", reason)
	}
	all := start("sensors", "task,syscall,tripwire,egress", "level", "standard")
	exec := told(event.Syscall, event.ProcExec, "/bin/true")
	drop := told(event.Record, event.RecordDrop, "", "of", "syscall", "from", "1", "to", "1")
	for _, c := range []struct {
		name   string
		level  string // of the record
		events []event.Event
		want   Verdict
		unseen []string
	}{
		{"every sensor is named", "standard", []event.Event{all, exec}, Complete, nil},
		{"no level, so no run inside a boundary", "", []event.Event{start("sensors", "agent")}, Complete, nil},
		{"nothing was started", "standard", nil, Complete, nil},
		{"the record says what was not seen", "standard", []event.Event{all, blind("lookups", "no device")}, Partial, []string{"lookups"}},
		{"a sensor is not named, and nothing says why", "standard", []event.Event{start("sensors", "task,syscall,egress")}, Partial, []string{"lookups"}},
		{"no sensor is named", "full", []event.Event{start()}, Partial, []string{"calls", "network"}},
		{"the beginning alone says the level", "", []event.Event{start("level", "full", "sensors", "task,syscall,tripwire")}, Partial, []string{"network"}},
		{"one that is not named is accounted for", "standard", []event.Event{start("sensors", "task,syscall,egress"), blind("lookups", "no device")}, Partial, []string{"lookups"}},
		{"without calls no look-up is spoken of", "off", []event.Event{start("sensors", "task,egress"), blind("calls", "off")}, Partial, []string{"calls"}},
		{"something is lost besides", "standard", []event.Event{all, drop, blind("reads", "x")}, Gaps, []string{"reads"}},
	} {
		path := recorded(t, c.level, c.events)
		r := verified(t, path)
		var unseen []string
		for _, u := range r.Unseen {
			unseen = append(unseen, u.What)
			r.want(t, c.want, u.What+" not seen since "+u.Since.UTC().Format(time.RFC3339))
		}
		if r.Verdict != c.want || !slices.Equal(unseen, c.unseen) {
			t.Errorf("%s: %v, %q; %v", c.name, r.Verdict, unseen, r.Problems)
		}
		got, why := python(t, path)
		if got != c.want.String() || c.unseen != nil && !strings.Contains(why, c.unseen[0]+" not seen since 20") {
			t.Errorf("%s: python says %s\n%s", c.name, got, why)
		}
	}
}

// recorded writes the record of a run with these events, and its end.
func recorded(t *testing.T, level string, events []event.Event) string {
	t.Helper()
	l := create(t, Options{Detail: map[string]string{"level": level}})
	counts := map[event.Sensor]int{}
	for _, e := range events {
		if e.Sensor != event.Record { // the log numbers its own
			counts[e.Sensor]++
			e.N = uint64(counts[e.Sensor])
		}
		if err := l.Emit(e); err != nil {
			t.Fatal(err)
		}
		if e.Action == event.RecordDrop {
			counts[event.Syscall]++
		}
	}
	counts[event.Task]++
	ended(t, l, counts)
	return l.Path()
}

// told is an event with details, as key and value.
func told(s event.Sensor, action, object string, detail ...string) event.Event {
	e := event.Event{Sensor: s, Action: action, Object: object, Detail: map[string]string{}}
	for i := 0; i < len(detail); i += 2 {
		e.Detail[detail[i]] = detail[i+1]
	}
	return e
}
