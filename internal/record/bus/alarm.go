//go:build linux

package bus

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"holdfast.dev/holdfast/internal/detect"
	"holdfast.dev/holdfast/internal/detect/alert"
	"holdfast.dev/holdfast/internal/detect/baseline"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/record/audit"
)

// alertGrace is how long the end of a run waits for alerts in progress; the
// record lists what is not delivered by then.
const alertGrace = 2 * time.Second

// alarm evaluates the rules of detection over every event, and sends alerts.
type alarm struct {
	rules  *detect.Engine
	sinks  *alert.Dispatcher
	normal *baseline.Checker
	loaded chan struct{} // closed when the baseline was read, or could not be

	mu        sync.Mutex // guards what follows
	firstSeen []string   // what was new in this workspace; detection bounds how many there are
}

// newAlarm reads the rules and prepares the sinks. Alerts are events too.
func newAlarm(c Config, b *Bus) (*alarm, error) {
	own, err := userRules(c.Plan.Alerts.Rules)
	if err != nil {
		return nil, err
	}
	a := &alarm{normal: baseline.Open(baseline.File(c.State, c.Plan.Workspace)), loaded: make(chan struct{})}
	place := detect.Place{Home: c.Plan.Identity.Home, Workspace: c.Plan.Workspace}
	for _, r := range c.Plan.Paths {
		switch r.Access {
		case policy.Read:
			place.Fixed = append(place.Fixed, r.Path)
		case policy.Write:
			place.Writable = append(place.Writable, r.Path)
		}
	}
	a.rules, err = detect.New(detect.Config{Rules: own, Place: place, Baseline: a.normal, Raise: func(found detect.Alert) {
		a.noteFirstSeen(found)
		found.N, _ = b.Sensor(event.Detect).writeEvent(found.Event(), (*audit.Log).Put) // a failing record ends the run, and the alert is sent nevertheless
		a.sinks.Raise(found)
	}})
	if err != nil {
		return nil, fmt.Errorf("preparing detection: %w", err)
	}
	host, _ := os.Hostname() // only for the reader of an alert
	notify := c.Notify
	if notify == nil {
		notify = func(string) {}
	}
	a.sinks, err = alert.Open(alert.Options{
		Sinks: c.Plan.Alerts.Sinks, Terminal: notify, Grace: alertGrace, Host: host, Version: c.Version,
	})
	if err != nil {
		return nil, fmt.Errorf("preparing the alert sinks: %w", err)
	}
	go func() { // in parallel to the launch; the first event waits for it
		defer close(a.loaded)
		a.normal.Load() // its error is reported at the end
	}()
	return a, nil
}

// noteFirstSeen keeps the key of what is new for the summary of the run.
func (a *alarm) noteFirstSeen(found detect.Alert) {
	if found.Rule != detect.FirstSeen || found.Count > 1 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.firstSeen = append(a.firstSeen, found.Key)
}

// firstSeenKeys returns the keys of what was new, in the order of the events.
func (a *alarm) firstSeenKeys() []string {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.firstSeen)
}

// userRules reads the rules that the policy names.
func userRules(sources []policy.RuleSource) ([]detect.Rule, error) {
	var out []detect.Rule
	for _, s := range sources {
		rules, err := detect.LoadPath(s.Path)
		if err != nil {
			return nil, fmt.Errorf("reading detection rules (%s): %w", s.Origin, err)
		}
		out = append(out, rules...)
	}
	return out, nil
}

func (a *alarm) observe(e event.Event) { a.rules.Observe(e) }

// deliver waits up to alertGrace for alerts in progress, and closes the sinks.
func (a *alarm) deliver() []*alert.Undelivered { return a.sinks.Close() }

// close ends detection, and returns what did not reach a sink.
func (a *alarm) close() error {
	<-a.loaded
	errs := []error{a.rules.Err(), a.normal.Load()}
	for _, u := range a.deliver() {
		errs = append(errs, u)
	}
	return errors.Join(errs...)
}
