package detect

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/floor/event"
)

// TestLearntSessionsSayNothingNew: what a session of any rule taught is not new in
// the same session, and what another did is.
func TestLearntSessionsSayNothingNew(t *testing.T) {
	of := func(rule string) func(Alert) bool { return func(a Alert) bool { return a.Rule == rule } }
	told := 0
	for _, r := range readRules(t) {
		session := r.Tests.Raises
		alerts, err := Replay(Config{Baseline: Tests{Normal: session}.baseline()}, session)
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(alerts, of(FirstSeen)) || slices.ContainsFunc(alerts, of("first-seen-together")) {
			t.Errorf("%s: its session is new to itself: %s", r.ID, short(alerts))
		}
		normal := r.Tests.Honest[:1] // its start alone
		if alerts, err = Replay(Config{Baseline: Tests{Normal: normal}.baseline()}, session); err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(alerts, of(FirstSeen)) {
			told++
		}
		if alerts, err = Replay(Config{}, session); err != nil || slices.ContainsFunc(alerts, of(FirstSeen)) {
			t.Errorf("%s: something is new without a baseline: %s %v", r.ID, short(alerts), err)
		}
	}
	if told < 20 {
		t.Errorf("only %d sessions have something that a bare start has not", told)
	}
}

// TestFirstSeenTogether: a thousand other new things hide none of the three
// that come together, in whatever order they come.
func TestFirstSeenTogether(t *testing.T) {
	begin := event.Event{Sensor: event.Task, Action: event.SessionStart, Verdict: event.Allowed, Object: "/home/you/project", Detail: map[string]string{"home": "/home/you"}}
	normal := []event.Event{begin, {Action: event.NetConnect, Verdict: event.Allowed, Object: "a.example:443"}}
	program := func(n int) event.Event {
		path := "/opt/" + strings.Repeat("x", n/100) + strings.Repeat("y", n%100)
		return event.Event{Action: event.ProcExec, Verdict: event.Allowed, Object: path, Process: event.Process{Executable: path}}
	}
	host := func(n int) event.Event {
		return event.Event{Sensor: event.Egress, Action: event.NetQuery, Verdict: event.Denied, Object: fmt.Sprintf("h%d.example", n)}
	}
	secret := event.Event{Action: event.FileLookup, Verdict: event.Denied, Object: "/home/you/.ssh/id_ed25519"}
	many := func(one func(int) event.Event) (all []event.Event) {
		for i := range 2000 {
			all = append(all, one(i))
		}
		return all
	}
	both := []event.Event{secret}
	for i := range 2000 {
		both = append(both, secret, host(i))
	}
	for _, row := range []struct {
		name   string
		events []event.Event
		want   bool
	}{
		{"a secret, then hosts, then a program", slices.Concat([]event.Event{secret}, many(host), []event.Event{program(0)}), true},
		{"programs, then a host, then a secret", slices.Concat(many(program), []event.Event{host(0), secret}), true},
		{"a secret again and again between hosts, then a program", slices.Concat(both, []event.Event{program(0)}), true},
		{"no secret", slices.Concat(many(program), many(host)), false},
		{"no host that is new", []event.Event{secret, normal[1], program(0)}, false},
		{"no program", slices.Concat([]event.Event{secret}, many(host)), false},
	} {
		t.Run(row.name, func(t *testing.T) {
			alerts, err := Replay(Config{Baseline: Tests{Normal: normal}.baseline()}, script(append([]event.Event{begin}, row.events...)...))
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(alerts, func(a Alert) bool { return a.Rule == "first-seen-together" })
			if (i >= 0) != row.want {
				t.Errorf("it is raised: %v", i >= 0)
			}
			if i >= 0 && alerts[i].Severity != Medium {
				t.Errorf("its severity is %s", alerts[i].Severity)
			}
			n := 0
			for _, a := range alerts {
				if a.Rule == FirstSeen {
					n++
				}
			}
			if n > keptAlerts+4 { // and those under the key of what follows
				t.Errorf("%d alerts say what is new", n)
			}
		})
	}
}

// TestRuleOfNew: a user's own rule asks for what is new, and for no kind that
// does not exist.
func TestRuleOfNew(t *testing.T) {
	const text = `
- id: acme-host
  title: A new host
  severity: high
  technique: [T1071]
  explanation: Few are needed.
  false_positives: None.
  actions: [net.connect]
  new: [host]
  key: [new]
  tests:
    normal: [{action: net.connect, object: "a.example:443", verdict: allowed}]
    raises: [{action: net.connect, object: "b.example:443", verdict: allowed}]
    honest: [{action: net.connect, object: "a.example:443", verdict: allowed}]
`
	rules, err := ParseRules("own.yaml", []byte(text), builtin())
	if err != nil {
		t.Fatal(err)
	}
	if failed, err := Try(rules); err != nil || len(failed) > 0 {
		t.Errorf("%v %v", failed, err)
	}
	_, err = ParseRules("own.yaml", []byte(strings.Replace(text, "new: [host]", "new: [hots]", 1)), builtin())
	if err == nil || !strings.Contains(err.Error(), `"hots" is not a kind of thing that a baseline knows; these are: program, host`) {
		t.Errorf("a misspelt kind: %v", err)
	}
}
