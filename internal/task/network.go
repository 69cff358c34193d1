//go:build linux

package task

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"holdfast.dev/holdfast/internal/broker"
	"holdfast.dev/holdfast/internal/egress"
	"holdfast.dev/holdfast/internal/egress/netstack"
	"holdfast.dev/holdfast/internal/event"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/sandbox"
)

// Refusal is a destination that was refused or did not answer.
type Refusal = egress.Refusal

// What Learn takes besides nothing: see package egress.
const (
	LearnObserve = egress.Observe
	LearnThrough = egress.Through
)

// network is what decides about the connections of a run, and the credentials
// that they may carry.
type network struct {
	task        *Task
	session     string
	authority   *egress.Authority // nil when no TLS is terminated
	files       []sandbox.File
	environment []policy.Env
	leases      *broker.Broker // nil when the plan has no credentials

	mu     sync.Mutex // guards what follows
	engine *egress.Engine
	stack  *netstack.Stack // with the rung tun
	rung   sandbox.Rung
}

// newNetwork prepares what the launch needs to know of it. Nothing listens yet.
func (t *Task) newNetwork(s *session) (*network, error) {
	n := &network{task: t, session: filepath.Base(s.dir)}
	if len(t.Plan.Credentials) > 0 {
		leases, err := broker.New(broker.Config{
			Session: n.session, Credentials: t.Plan.Credentials, Grants: t.Grants, Sink: t.record.sensor(event.Broker),
			Writable: writableTrees(t.Plan), Unset: t.Unset, Held: t.record.secrets.Hold,
			Gate: t.consent.gate, Wants: t.consent.wants,
		})
		if err != nil {
			return nil, fmt.Errorf("preparing the credentials: %w", err)
		}
		n.leases = leases
		for _, p := range leases.Placeholders() {
			t.record.secrets.Hold("placeholder-"+p.Name, p.Value)
		}
		n.environment = append(n.environment, leases.Placeholders()...)
	}
	if t.Learn == egress.Off && !slices.ContainsFunc(t.Plan.Allow, func(r policy.HostRule) bool { return r.Inspect }) {
		return n, nil
	}
	var err error
	if n.authority, err = egress.NewAuthority(); err == nil {
		var trust []policy.Env
		n.files, trust, err = egress.Trust(n.authority)
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
func (n *network) apply(spec *sandbox.Spec) {
	plan := &spec.Plan
	plan.Env = slices.Clone(plan.Env)
	for _, e := range n.environment {
		if !slices.ContainsFunc(plan.Env, func(have policy.Env) bool { return have.Name == e.Name }) {
			plan.Env = append(plan.Env, e)
		}
	}
	spec.Files = n.files
	n.task.intercepts = len(plan.Allow) > 0 || n.task.Learn != egress.Off || n.task.consent.asksHosts()
	spec.Network = &sandbox.Network{Intercept: n.task.intercepts, Rungs: n.task.Rungs, Open: n.open}
	for _, p := range plan.HostPorts {
		spec.Network.HostPorts = append(spec.Network.HostPorts, p.Inside)
	}
}

// open begins to serve the doors of a launch. A launch that is tried again has
// doors of its own.
func (n *network) open(doors sandbox.Doors) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.end(); err != nil {
		doors.Close()
		return err
	}
	config := egress.Config{
		Session: n.session, Allow: n.task.Plan.Allow, Authority: n.authority,
		Sink: n.task.record.sensor(event.Egress), Learn: n.task.Learn,
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
	engine, err := egress.New(config)
	if err != nil {
		return err
	}
	engine.Serve()
	n.engine, n.rung = engine, doors.Rung
	return nil
}

// end stops serving the doors.
func (n *network) end() error {
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
var _ egress.Consenting = (*broker.Broker)(nil)

var errNotBegun = errors.New("the run has not begun")

func (n *network) serving() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.engine != nil
}

// reload lets other rules hold for what is asked from now on. What the boundary
// was started with cannot change: a rule that needs more is an error.
func (n *network) reload(plan policy.Plan) error {
	for _, r := range plan.Allow {
		if r.Inspect && n.authority == nil {
			return fmt.Errorf("%s (%s) needs TLS terminated, and this run was started without a certificate for that", r.Host, r.Origin)
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.rung == sandbox.Closed && len(plan.Allow) > 0 {
		return errors.New("this run was started without any allowed destination, so that only programs that use its proxy could connect")
	}
	return n.engine.Reload(plan.Allow)
}

// finish tells the result what was refused and what was asked for.
func (n *network) finish(r *Result) {
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
	if n.rung != sandbox.TProxy && n.rung != sandbox.Closed {
		r.Warnings = append(r.Warnings, fmt.Sprintf("connections were intercepted by %q: holdfast doctor says why not by %q", n.rung, sandbox.TProxy))
	}
}

// close ends everything of it. It may be called more than once.
func (n *network) close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	errs := []error{n.end()}
	if n.leases != nil {
		errs = append(errs, n.leases.Close())
	}
	return errors.Join(errs...)
}
