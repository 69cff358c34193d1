//go:build linux

package run

import (
	"errors"

	"holdfast.dev/holdfast/internal/agents/state"
	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/consent/gate"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/network/egress"
	"holdfast.dev/holdfast/internal/run/relay"
	"holdfast.dev/holdfast/internal/run/sensors"
)

// openGate makes what asks before something happens, and sets the rules by which it
// asks; nil where the policy has none.
func (r *running) openGate() (*gate.Gate, error) {
	t := r.task
	g, err := gate.Open(gate.Config{
		Plan: t.Plan, Session: r.bus.Session(), State: t.State, Keys: t.Keys, Version: t.Version, Executable: t.Executable,
		Sink: r.bus.Sensor(event.Approve), Mask: r.bus.Secrets().String, Asks: t.Asks, Intercepts: func() bool { return r.intercepts },
	})
	if g != nil {
		t.rules = g.Rules()
	}
	return g, err
}

// newSensors makes what watches the run, and the copies of the agent's settings, which
// are read back through the private home that it opens.
func (r *running) newSensors() (*sensors.Set, error) {
	t := r.task
	var err error
	if r.agent, err = state.New(t.Plan.Agent, t.Plan.Identity.Home, t.State, r.bus.Secrets()); err != nil {
		return nil, err
	}
	return sensors.New(sensors.Config{
		Plan: t.Plan, Bus: r.bus, Rules: t.rules, Tools: t.Tools, State: t.State, Gateway: t.Messages != nil,
		Protected: []string{t.State, t.Log, t.Keys, t.Grants, t.Executable}, Opened: r.openView,
	})
}

// openView opens what is read back when everything inside has ended.
func (r *running) openView(w boundary.Watch) error {
	return errors.Join(r.agent.OpenHome(w), r.session.OpenView(w))
}

// newEgress makes the way out of the run, and the credentials that connections carry.
func (r *running) newEgress() (*egress.Egress, error) {
	t := r.task
	return egress.New(egress.Config{
		Plan: t.Plan, Session: r.session.Name(), Bus: r.bus, Rules: t.rules, Grants: t.Grants, Learn: t.Learn, Rungs: t.Rungs, Unset: t.Unset,
		Decoys: r.sensors.Decoys(), Client: r.sensors.Client, Getenv: t.Getenv,
	})
}

// relay connects the command and its caller.
func (r *running) relay() relay.Config {
	t := r.task
	return relay.Config{
		Argv: t.Argv, Plan: t.Plan, Bus: r.bus, Rules: t.rules, Streams: t.Streams, Signals: t.Signals,
		Late: t.Late, Grace: t.Grace, Server: t.Messages, Ports: r.ports,
	}
}

// reload loads the policy again, lets its destinations hold and records that. On any
// error the old ones stay.
func (r *running) reload() error {
	load := func() error {
		if r.task.Replan == nil {
			return errors.New("the policy of this run cannot be loaded again")
		}
		if !r.egress.Serving() {
			return errors.New("the run has not begun")
		}
		plan, err := r.task.Replan()
		if err != nil {
			return err
		}
		return r.egress.Reload(plan)
	}
	return r.recordReload(load())
}
