//go:build linux

package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/boundary/workspace"
	"holdfast.dev/holdfast/internal/consent/gate"
	"holdfast.dev/holdfast/internal/credentials"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/network"
	"holdfast.dev/holdfast/internal/network/netstack"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/record/bus"
)

// What a run needs of package network.
type (
	Refusal     = network.Refusal
	Observation = network.Observation
	Learn       = network.Learn
	Decoy       = credentials.Decoy
)

// The values of Learn other than off.
const (
	LearnObserve = network.Observe
	LearnThrough = network.Through
)

// Config is what a way out needs.
type Config struct {
	Plan    policy.Plan
	Session string
	Bus     *bus.Bus
	Rules   gate.Rules
	Grants  string             // directory of grants and revocations of credentials; "" for none
	Learn   Learn              // what happens to destinations that no rule names
	Rungs   []boundary.Rung    // that may be used; empty for all
	Unset   func(string) error // removes a secret variable from the environment of this process; nil for not
	Decoys  []Decoy            // secrets that no honest program sends
	Client  func(local, remote netip.AddrPort) event.Process
	Getenv  func(string) string // the user's environment, which can name certificates
}

// Egress decides about the connections of a run, and the credentials that they may
// carry.
type Egress struct {
	config      Config
	authority   *network.Authority
	files       []boundary.File
	environment []policy.Env
	roots       *network.Roots
	warnings    []string            // about certificates
	leases      *credentials.Broker // nil when the plan has no credentials

	mu     sync.Mutex // guards what follows
	engine *network.Engine
	stack  *netstack.Stack // with the rung tun
	rung   boundary.Rung
}

// New prepares what the launch needs to know of it. Nothing listens yet.
func New(c Config) (*Egress, error) {
	if c.Getenv == nil {
		c.Getenv = func(string) string { return "" }
	}
	e := &Egress{config: c}
	if err := e.prepareTrust(); err != nil {
		return nil, fmt.Errorf("preparing to terminate TLS: %w", err)
	}
	if len(c.Plan.Credentials) > 0 {
		leases, err := credentials.New(credentials.Config{
			Session: c.Session, Credentials: c.Plan.Credentials, Grants: c.Grants, Sink: c.Bus.Sensor(event.Broker),
			Writable: workspace.WritableTrees(c.Plan), Unset: c.Unset, Held: c.Bus.Secrets().Hold,
			Gate: c.Rules.Gate, Wants: c.Rules.Wants, Roots: e.roots.Pool,
		})
		if err != nil {
			return nil, fmt.Errorf("preparing the credentials: %w", err)
		}
		e.leases = leases
		for _, p := range leases.Placeholders() {
			c.Bus.Secrets().Hold("placeholder-"+p.Name, p.Value)
		}
		e.environment = append(e.environment, leases.Placeholders()...)
		for _, f := range leases.Files() {
			e.files = append(e.files, boundary.File{Path: f.Path, Content: []byte(f.Content), Mode: 0o600})
		}
	}
	return e, nil
}

// prepareTrust makes the authority of the run, and what has the inside trust it and
// whatever the user's programs trust.
func (e *Egress) prepareTrust() (err error) {
	if e.authority, err = network.NewAuthority(); err != nil {
		return err
	}
	read := credentials.Unchangeable(workspace.WritableTrees(e.config.Plan))
	e.roots, e.warnings, err = network.HostRoots(network.RootsConfig{Getenv: e.config.Getenv, Read: read, Unset: e.config.Unset})
	if err != nil {
		return err
	}
	// What is refused, Java may take for a certificate that is not valid.
	java := e.roots.Added || e.config.Learn != network.Off || slices.ContainsFunc(e.config.Plan.Allow, func(r policy.HostRule) bool { return r.Inspect })
	files, trust, err := e.roots.Trust(e.authority, java)
	e.files = files
	e.environment = append(e.environment, trust...)
	e.environment = append(e.environment, agentTrust(e.config.Plan)...)
	return err
}

// AddTo adds to the launch what the network needs there. What the user set in
// the environment stays.
func (e *Egress) AddTo(spec *boundary.Spec) error {
	var instead []policy.Env // of what names certificates outside; what was given another value stays
	for _, v := range e.environment {
		outside := e.config.Getenv(v.Name)
		if outside != "" && network.NamesRoots(v.Name) && slices.ContainsFunc(spec.Plan.Env, func(have policy.Env) bool { return have.Name == v.Name && have.Value == outside }) {
			instead = append(instead, v)
		}
	}
	plan, err := spec.Plan.With(policy.Additions{Env: e.environment, Certs: instead})
	if err != nil {
		return err
	}
	spec.Plan = plan
	spec.Files = append(spec.Files, e.files...)
	needed := len(plan.Allow) > 0 || e.config.Learn != network.Off || e.config.Rules.Intercept()
	spec.Network = &boundary.Network{Intercept: true, Optional: !needed, Rungs: e.config.Rungs, Open: e.open}
	for _, p := range plan.HostPorts {
		spec.Network.HostPorts = append(spec.Network.HostPorts, p.Inside)
	}
	return nil
}

// open begins to serve the doors of a launch. A launch that is tried again has
// doors of its own.
func (e *Egress) open(doors boundary.Doors) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.end(); err != nil {
		doors.Close()
		return err
	}
	config := network.Config{
		Session: e.config.Session, Allow: e.config.Plan.Allow, Authority: e.authority, Roots: e.roots,
		Sink: e.config.Bus.Sensor(event.Egress), Learn: e.config.Learn,
		Gate: e.config.Rules.Gate, Wants: e.config.Rules.Wants, Asks: e.config.Rules.CanAsk, MayConcern: e.config.Rules.MayConcern, Client: e.config.Client,
	}
	if e.config.Plan.Agent != nil {
		config.Logins, config.NoLogin = e.config.Plan.Agent.Logins, e.config.Plan.Agent.NoLogin
	}
	if d := e.config.Decoys; len(d) > 0 {
		config.Decoys = credentials.NewDecoys(d)
	}
	if e.leases != nil { // a nil *Broker would be no nil Credentials
		config.Credentials = e.leases
	}
	if doors.TUN != nil {
		stack, err := netstack.New(doors.TUN)
		doors.TUN = nil
		if err != nil {
			doors.Close()
			return fmt.Errorf("serving the TUN device: %w", err)
		}
		e.stack, config.Listeners, config.Packets = stack, append(config.Listeners, stack.Listener()), stack.Packets()
	}
	config.Doors = doors
	engine, err := network.New(config)
	if err != nil {
		return err
	}
	engine.Serve()
	e.engine, e.rung = engine, doors.Rung
	return nil
}

// end stops serving the doors.
func (e *Egress) end() error {
	var errs []error
	if e.stack != nil { // which ends what the engine reads
		errs = append(errs, e.stack.Close())
	}
	if e.engine != nil {
		errs = append(errs, e.engine.Close())
	}
	return errors.Join(errs...)
}

// Serving reports whether the doors of a launch are served.
func (e *Egress) Serving() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.engine != nil
}

// Reload lets other rules hold for what is asked from now on. What the boundary
// was started with cannot change: a rule that needs more is an error.
func (e *Egress) Reload(plan policy.Plan) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.rung == boundary.Closed && len(plan.Allow) > 0 {
		return errors.New("connections of this run are not intercepted, so that only programs that use its proxy could connect")
	}
	return e.engine.Reload(plan.Allow)
}

// Summary is what a run reports about its connections at the end.
type Summary struct {
	Rung        boundary.Rung // how connections were intercepted; "" when nothing ran
	Refused     []Refusal     // destinations, each once
	Unreachable []Refusal     // destinations that were allowed and did not answer
	Observed    []Observation // requests that were made, while a policy is learned
}

// Finish stops serving, and returns what was refused and what was asked for.
func (e *Egress) Finish() (sum Summary, warnings []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	warnings = e.warnings
	if e.engine == nil {
		return Summary{}, warnings
	}
	if err := e.end(); err != nil {
		warnings = append(warnings, err.Error())
	}
	sum = Summary{e.rung, e.engine.Refusals(), e.engine.Unreachable(), e.engine.Observations()}
	if e.rung != boundary.TProxy && e.rung != boundary.Closed && len(e.config.Plan.Allow) > 0 {
		warnings = append(warnings, fmt.Sprintf("connections were intercepted by %q: holdfast doctor says why not by %q", e.rung, boundary.TProxy))
	}
	return sum, warnings
}

// Close ends everything of it. It may be called more than once.
func (e *Egress) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	errs := []error{e.end()}
	if e.leases != nil {
		errs = append(errs, e.leases.Close())
	}
	return errors.Join(errs...)
}

// agentTrust are the variables by which the agent finds the bundle of certificates, in
// addition to those that every program gets.
func agentTrust(plan policy.Plan) []policy.Env {
	if plan.Agent == nil {
		return nil
	}
	var env []policy.Env
	for _, name := range plan.Agent.Trust {
		env = append(env, policy.Env{Name: name, Value: network.Bundle, Origin: plan.Agent.Origin})
	}
	return env
}
