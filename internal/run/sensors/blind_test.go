//go:build linux

package sensors

import (
	"path/filepath"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/record/audit"
	"holdfast.dev/holdfast/internal/record/bus"
	"holdfast.dev/holdfast/internal/supervise"
)

// watched records a run whose sensors emit events, and returns why its record is not
// complete, by the recorder and by the verification.
func watched(t *testing.T, level policy.RecordLevel, s *Set, emit func(*bus.Bus)) (bus.Lack, audit.Report) {
	t.Helper()
	log, plan := filepath.Join(t.TempDir(), "log"), policy.Plan{Record: policy.Record{Level: level}}
	record, err := bus.Open(bus.Config{Session: "s", Log: log, State: t.TempDir(), Plan: plan})
	if err != nil {
		t.Fatal(err)
	}
	s.config = Config{Plan: plan, Bus: record}
	start := event.Event{Action: event.SessionStart, Detail: map[string]string{"sensors": s.Names()}}
	if err := record.Sensor(event.Task).Emit(start); err != nil {
		t.Fatal(err)
	}
	if err := s.blindFromStart(); err != nil {
		t.Fatal(err)
	}
	emit(record)
	if err := record.End(map[string]string{}); err != nil {
		t.Fatal(err)
	}
	if err := record.Close(); err != nil {
		t.Fatal(err)
	}
	report, err := audit.Verify(t.Context(), filepath.Join(log, "s.jsonl"), audit.VerifyOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return record.Lack(), report
}

// TestWhatIsNotSeenIsDeclared: at the start by the sensors that there are, in the
// middle by what they say themselves; once each. The end of the run says the same as
// the verification.
func TestWhatIsNotSeenIsDeclared(t *testing.T) {
	all := func() *Set { return &Set{calls: new(supervise.Supervisor), root: new(supervise.Tripwire)} }
	nothing := func(*bus.Bus) {}
	for _, c := range []struct {
		name    string
		level   policy.RecordLevel
		set     *Set
		emit    func(*Set, *bus.Bus)
		verdict string
		reasons []string // of the verification
		ending  string   // at the end of the run
	}{
		{"every sensor is there", policy.RecordStandard, all(), nil, "COMPLETE", nil, ""},
		{"no file system at the root", policy.RecordStandard, &Set{calls: new(supervise.Supervisor)}, nil, "PARTIAL",
			[]string{"lookups not seen since"}, "lookups not seen: /dev/fuse cannot be opened"},
		{"nothing is to be recorded", policy.RecordOff, &Set{}, nil, "PARTIAL", []string{"calls not seen since"}, "calls not seen: no system call"},
		{"a flood of names", policy.RecordStandard, all(), func(s *Set, r *bus.Bus) {
			for range 2 {
				blinding{r.Sensor(event.Tripwire), s}.Observe(event.Event{Action: event.FileLookup, Object: "/", Detail: map[string]string{"names": "different", "count": "9"}})
			}
		}, "PARTIAL", []string{"lookups not seen since"}, "lookups not seen: so many different names"},
		{"reports of honeytokens are lost", policy.RecordStandard, all(), func(s *Set, r *bus.Bus) {
			blinding{r.Sensor(event.Honey), s}.Emit(event.Event{Action: event.HoneyRead, Detail: map[string]string{"lost": "1"}})
		}, "PARTIAL", []string{"honeytokens not seen since"}, "honeytokens not seen: "},
		{"what a call did is not known", policy.RecordStandard, all(), func(s *Set, r *bus.Bus) {
			for range 2 {
				blinding{r.Sensor(event.Syscall), s}.Observe(event.Event{Action: event.FileWrite, Object: "/x", Verdict: event.Allowed, Detail: map[string]string{"compared": "no", "reason": "its thread cannot be traced: EPERM"}})
			}
		}, "PARTIAL", []string{"changes not seen since"}, "changes not seen: what a call did"},
		{"an event is lost besides", policy.RecordStandard, &Set{calls: new(supervise.Supervisor)}, func(_ *Set, r *bus.Bus) {
			r.Sensor(event.Syscall).Observe(event.Event{Action: event.FileOpen, Detail: map[string]string{"no key": "x"}})
		}, "GAPS", []string{"lookups not seen since", "were dropped"}, "events of syscall are lost: "},
	} {
		emit := nothing
		if c.emit != nil {
			emit = func(r *bus.Bus) { c.emit(c.set, r) }
		}
		lack, report := watched(t, c.level, c.set, emit)
		if report.Verdict.String() != c.verdict || len(report.Problems) != len(c.reasons) {
			t.Errorf("%s: %v, %v", c.name, report.Verdict, report.Problems)
		}
		for i, p := range report.Problems {
			if i < len(c.reasons) && !strings.Contains(p.String(), c.reasons[i]) {
				t.Errorf("%s: %s, want %q", c.name, p, c.reasons[i])
			}
		}
		if lack != (bus.Lack{}) != (c.verdict != "COMPLETE") || lack != (bus.Lack{}) && lack.Verdict != c.verdict || !strings.HasPrefix(lack.Reason, c.ending) {
			t.Errorf("%s: the run says %+v", c.name, lack)
		}
	}
}
