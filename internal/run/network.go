//go:build linux

package run

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/boundary/workspace"
	"holdfast.dev/holdfast/internal/credentials"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/network"
	"holdfast.dev/holdfast/internal/network/netstack"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/run/session"
)

// Refusal is a destination that was refused or did not answer.
type Refusal = network.Refusal

// What Learn takes besides nothing: see package egress.
const (
	LearnObserve = network.Observe
	LearnThrough = network.Through
)

// networking is what decides about the connections of a run, and the credentials
// that they may carry.
type networking struct {
	task        *Task
	session     string
	authority   *network.Authority // nil when no TLS is terminated
	files       []boundary.File
	environment []policy.Env
	leases      *credentials.Broker // nil when the plan has no credentials

	mu     sync.Mutex // guards what follows
	engine *network.Engine
	stack  *netstack.Stack // with the rung tun
	rung   boundary.Rung
}

// newNetwork prepares what the launch needs to know of it. Nothing listens yet.
func (t *Task) newNetwork(s *session.Session) (*networking, error) {
	n := &networking{task: t, session: s.Name()}
	if len(t.Plan.Credentials) > 0 {
		leases, err := credentials.New(credentials.Config{
			Session: n.session, Credentials: t.Plan.Credentials, Grants: t.Grants, Sink: t.bus.Sensor(event.Broker),
			Writable: workspace.WritableTrees(t.Plan), Unset: t.Unset, Held: t.bus.Secrets().Hold,
			Gate: t.consent.gate, Wants: t.consent.wants,
		})
		if err != nil {
			return nil, fmt.Errorf("preparing the credentials: %w", err)
		}
		n.leases = leases
		for _, p := range leases.Placeholders() {
			t.bus.Secrets().Hold("placeholder-"+p.Name, p.Value)
		}
		n.environment = append(n.environment, leases.Placeholders()...)
	}
	if t.Learn == network.Off && !slices.ContainsFunc(t.Plan.Allow, func(r policy.HostRule) bool { return r.Inspect }) {
		return n, nil
	}
	var err error
	if n.authority, err = network.NewAuthority(); err == nil {
		var trust []policy.Env
		n.files, trust, err = network.Trust(n.authority)
		n.environment = append(n.environment, trust...)
		n.environment = append(n.environment, t.agentTrust()...)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("preparing to terminate TLS: %w", err), n.close())
	}
	return n, nil
}

// apply adds to the launch what the network needs there. What the user set in
// the environment stays.
func (n *networking) apply(spec *boundary.Spec) error {
	plan, err := spec.Plan.With(policy.Additions{Env: n.environment})
	if err != nil {
		return err
	}
	spec.Plan = plan
	spec.Files = n.files
	n.task.intercepts = len(plan.Allow) > 0 || n.task.Learn != network.Off || n.task.consent.asksHosts()
	spec.Network = &boundary.Network{Intercept: n.task.intercepts, Rungs: n.task.Rungs, Open: n.open}
	for _, p := range plan.HostPorts {
		spec.Network.HostPorts = append(spec.Network.HostPorts, p.Inside)
	}
	return nil
}

// open begins to serve the doors of a launch. A launch that is tried again has
// doors of its own.
func (n *networking) open(doors boundary.Doors) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.end(); err != nil {
		doors.Close()
		return err
	}
	config := network.Config{
		Session: n.session, Allow: n.task.Plan.Allow, Authority: n.authority,
		Sink: n.task.bus.Sensor(event.Egress), Learn: n.task.Learn,
		Gate: n.task.consent.gate, Wants: n.task.consent.wants, Asks: n.task.consent.asks, Client: n.task.clients.of,
	}
	if d := n.task.traps.decoys; d != nil {
		config.Decoys = d
	}
	if n.leases != nil { // a nil *Broker would be no nil Credentials
		config.Credentials = n.leases
	}
	if doors.TUN != nil {
		stack, err := netstack.New(doors.TUN, netstack.Options{})
		doors.TUN = nil
		if err != nil {
			doors.Close()
			return fmt.Errorf("serving the TUN device: %w", err)
		}
		n.stack, config.Listeners, config.Packets = stack, append(config.Listeners, stack.Listener()), stack.Packets()
	}
	config.Doors = doors
	engine, err := network.New(config)
	if err != nil {
		return err
	}
	engine.Serve()
	n.engine, n.rung = engine, doors.Rung
	return nil
}

// end stops serving the doors.
func (n *networking) end() error {
	var errs []error
	if n.stack != nil { // which ends what the engine reads
		errs = append(errs, n.stack.Close())
	}
	if n.engine != nil {
		errs = append(errs, n.engine.Close())
	}
	return errors.Join(errs...)
}

// errNotBegun says that a run is still being started.
// What is optional of what the engine is given; a slip in a signature would take it
// away in silence.
var _ network.Consenting = (*credentials.Broker)(nil)

var errNotBegun = errors.New("the run has not begun")

func (n *networking) serving() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.engine != nil
}

// reload lets other rules hold for what is asked from now on. What the boundary
// was started with cannot change: a rule that needs more is an error.
func (n *networking) reload(plan policy.Plan) error {
	for _, r := range plan.Allow {
		if r.Inspect && n.authority == nil {
			return fmt.Errorf("%s (%s) needs TLS terminated, and this run was started without a certificate for that", r.Host, r.Origin)
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.rung == boundary.Closed && len(plan.Allow) > 0 {
		return errors.New("this run was started without any allowed destination, so that only programs that use its proxy could connect")
	}
	return n.engine.Reload(plan.Allow)
}

// finish tells the result what was refused and what was asked for.
func (n *networking) finish(r *Result) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.engine == nil {
		return
	}
	if err := n.end(); err != nil {
		r.Warnings = append(r.Warnings, err.Error())
	}
	r.Rung = n.rung
	r.Refused, r.Unreachable, r.Observed = n.engine.Refusals(), n.engine.Unreachable(), n.engine.Observations()
	if n.rung != boundary.TProxy && n.rung != boundary.Closed {
		r.Warnings = append(r.Warnings, fmt.Sprintf("connections were intercepted by %q: holdfast doctor says why not by %q", n.rung, boundary.TProxy))
	}
}

// close ends everything of it. It may be called more than once.
func (n *networking) close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	errs := []error{n.end()}
	if n.leases != nil {
		errs = append(errs, n.leases.Close())
	}
	return errors.Join(errs...)
}

// agentTrust are the variables by which the agent finds the bundle of
// certificates, besides those that every program gets.
func (t *Task) agentTrust() []policy.Env {
	if t.Plan.Agent == nil {
		return nil
	}
	var env []policy.Env
	for _, name := range t.Plan.Agent.Trust {
		env = append(env, policy.Env{Name: name, Value: network.Bundle, Origin: t.Plan.Agent.Origin})
	}
	return env
}
