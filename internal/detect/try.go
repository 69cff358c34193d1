package detect

import (
	"fmt"
	"slices"

	"holdfast.dev/holdfast/internal/detect/baseline"
	"holdfast.dev/holdfast/internal/floor/event"
)

// Failure is a failed test of a rule.
type Failure struct {
	Rule  string
	Where string // file:line of the rule
	Test  string // raises or honest
	What  string
}

func (f Failure) String() string {
	if f.Where == "" {
		return fmt.Sprintf("%s: %s: %s", f.Rule, f.Test, f.What)
	}
	return fmt.Sprintf("%s: %s: %s: %s", f.Where, f.Rule, f.Test, f.What)
}

// Try runs the tests of rules, together with the built-in ones that they may
// refer to. A rule must be raised by one session and not by the other.
func Try(rules []Rule) ([]Failure, error) {
	var failed []Failure
	for _, r := range rules {
		for _, t := range []struct {
			name    string
			session []event.Event
			want    bool
		}{{"raises", r.Tests.Raises, true}, {"honest", r.Tests.Honest, false}} {
			alerts, err := Replay(Config{Rules: without(builtin(), rules), Alone: true, Baseline: r.Tests.baseline()}, t.session)
			if err != nil {
				return nil, err
			}
			if raised := slices.ContainsFunc(alerts, func(a Alert) bool { return a.Rule == r.ID }); raised != t.want {
				failed = append(failed, Failure{r.ID, r.Where, t.name, failureText(t.want)})
			}
		}
	}
	return failed, nil
}

// baseline is what the sessions are compared with; nil where there is none.
func (t Tests) baseline() *baseline.Checker {
	if len(t.Normal) == 0 {
		return nil
	}
	var b baseline.Baseline
	var trace baseline.Trace
	for i := range t.Normal {
		trace.Observe(&t.Normal[i])
	}
	if _, err := b.Learn(baseline.Run{Session: "normal"}, &trace); err != nil {
		return nil // more than the events of a test are
	}
	return baseline.Against(&b)
}

func failureText(want bool) string {
	if want {
		return "the session does not raise the rule"
	}
	return "the session raises the rule"
}

// without are the known rules whose ids the given ones do not have, and the given ones.
func without(known, given []Rule) []Rule {
	ids := map[string]bool{}
	for _, r := range given {
		ids[r.ID] = true
	}
	out := slices.DeleteFunc(slices.Clone(known), func(r Rule) bool { return ids[r.ID] })
	return append(out, given...)
}

// Replay gives a session to an engine of its own and returns what it raised.
func Replay(c Config, session []event.Event) ([]Alert, error) {
	var alerts []Alert
	c.Raise = func(a Alert) { alerts = append(alerts, a) }
	e, err := New(c)
	if err != nil {
		return nil, err
	}
	for _, one := range session {
		e.Observe(one)
	}
	return alerts, e.Err()
}
