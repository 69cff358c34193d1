//go:build linux

package run

import (
	"context"
	"errors"
	"os"
	"runtime"
	"slices"
	"time"

	"holdfast.dev/holdfast/internal/agents/reports"
	"holdfast.dev/holdfast/internal/agents/state"
	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/consent/gate"
	"holdfast.dev/holdfast/internal/network/egress"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/record/bus"
	"holdfast.dev/holdfast/internal/run/orders"
	"holdfast.dev/holdfast/internal/run/relay"
	"holdfast.dev/holdfast/internal/run/sensors"
	"holdfast.dev/holdfast/internal/run/session"
)

// Task is one command to run.
type Task struct {
	Backend    boundary.Backend
	Plan       policy.Plan
	Argv       []string
	State      string // directory of Holdfast's state, outside every view
	Executable string // this program, for the clean-up after a sudden death; "" for none
	Streams    Streams
	Signals    <-chan os.Signal      // to pass on to the command
	Log        string                // directory of the records; "" for none, in tests
	Keys       string                // directory of the keys that sign them
	Version    string                // of Holdfast: the release
	Build      string                // of Holdfast: release and commit
	Notify     func(line string)     // gets alerts while the command runs, a line each; nil for none
	Progress   func(line string)     // gets what takes long once the command has ended; nil for none
	Begins     func(notes []string)  // gets, before the command begins, what of its settings is not as the user has it; nil for nobody
	Asks       func(id, what string) // gets what begins to wait for an answer; nil for none
	Late       func()                // is called once when the run must be over: no reader is waited for any more; nil for not
	Grants     string                // directory of grants and revocations of credentials; "" for none
	Learn      egress.Learn          // what happens to destinations that no rule names
	Grace      time.Duration         // how long the command has to end after SIGTERM; 0 is 10 s
	Unset      func(string) error    // takes a variable that holds a secret out of this process's environment; nil when that is not to be done

	Getenv func(string) string // the user's environment, of which the variables that name certificates are read; nil for an empty one

	Tools reports.Tools // how agents inside report their tool calls

	// Rungs are the ways to intercept connections that may be used; empty for all.
	Rungs []boundary.Rung

	Messages *Messages // when the command is an MCP server; nil for any other

	// Replan loads the policy again, for Reload; nil when it cannot change.
	Replan func() (policy.Plan, error)

	rules gate.Rules // of consent; set before anything is launched
}

// What of the parts of a run its callers use.
type (
	Streams     = relay.Streams
	Messages    = relay.Messages
	OutputError = relay.OutputError
	Refusal     = egress.Refusal
	Aftermath   = session.Aftermath
)

// The values of Learn other than off.
const (
	LearnObserve = egress.LearnObserve
	LearnThrough = egress.LearnThrough
)

// Result is how a run ended.
type Result struct {
	bus.Report
	egress.Summary
	relay.Ended
	session.Outcome
	Session    string         // of the record; "" if there is none
	Changed    *state.Changes // what an agent changed in its copies of the user's settings; nil for nothing
	Limited    []policy.Guarantee
	Asked      gate.Outcomes // what a rule of consent was about
	Ports      []int         // of the run's loopback, where nothing listened
	Warnings   []string
	Unsent     bool        // an alert did not reach a sink: 'holdfast alerts resend' sends it again
	Aftermaths []Aftermath // of runs here before this one, whose supervisor was killed
}

func (r *Result) warn(err error) {
	if err != nil {
		r.Warnings = append(r.Warnings, err.Error())
	}
}

// RanError is a failure after the command began: the status for "nothing ran" must not
// be given.
type RanError struct{ Err error }

func (e *RanError) Error() string { return e.Err.Error() }
func (e *RanError) Unwrap() error { return e.Err }

// Attempts to start when the workspace changes between scan and launch: so many, and where
// something in it was replaced, as git does with its files, for so long.
const (
	attempts = 5
	patience = 5 * time.Second
)

// waiters is how many goroutines of a run wait in system calls at most times: for the
// launch, its end, calls and look-ups. The runtime takes a processor from one that
// waits after up to 10 ms (sysmon in runtime/proc.go), and until then no other
// goroutine has it: with as many as there are cores, two cores were idle for 8 ms of
// every start.
const waiters = 8

// Warm computes what every run needs, whatever its policy, concurrently with what comes
// first.
func Warm() {
	go session.Warm()
	go bus.Warm()
}

// Run runs the task to its end. An error means that the command was not
// executed, unless it is a *RanError.
func (t *Task) Run(ctx context.Context) (Result, error) {
	runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), waiters))
	killed, err := session.Sweep(ctx, t.State, t.Plan.Workspace, t.user())
	if err != nil {
		return Result{}, err
	}
	ports, err := relay.Listen(t.Plan.Publish)
	if err != nil {
		return Result{}, err
	}
	defer ports.Close()
	s, err := session.Open(t.State)
	if err != nil {
		return Result{}, err
	}
	defer s.Close()
	b, err := bus.Open(bus.Config{Session: s.Name(), Log: t.Log, Keys: t.Keys, State: t.State, Version: t.Version, Build: t.Build, Notify: t.Notify, Plan: t.Plan})
	if err != nil {
		return Result{}, err
	}
	r := &running{task: t, session: s, bus: b, ports: ports}
	result, err := r.runToEnd(ctx)
	result.Aftermaths = killed
	result.Session, result.Report = b.Session(), b.Report()
	if !b.Ended() {
		err = errors.Join(err, r.recordRefused(err))
	}
	result.warn(b.Close())
	result.Lack, result.Unsent = b.Lack(), b.Unsent() // nothing is recorded any more
	return result, err
}

// running is a task in its session, with a record, and what it is made of.
type running struct {
	task    *Task
	session *session.Session
	bus     *bus.Bus
	ports   *relay.Ports

	gate       *gate.Gate // nil where the policy has no rules of consent
	sensors    *sensors.Set
	agent      *state.Agent
	egress     *egress.Egress
	intercepts bool // connections to every address arrive; known when something is launched
	told       bool // Task.Begins was called
}

// runToEnd runs the task to its end. What is made in its course is closed in the
// opposite order.
func (r *running) runToEnd(ctx context.Context) (result Result, err error) {
	if r.gate, err = r.openGate(); err != nil {
		return Result{}, err
	}
	defer r.gate.Close()
	if r.sensors, err = r.newSensors(); err != nil {
		return Result{}, err
	}
	defer r.sensors.Close()
	if r.egress, err = r.newEgress(); err != nil {
		return Result{}, err
	}
	defer r.egress.Close()
	stopOrders, err := orders.Listen(r.session.Dir(), r.bus.Session(), r.gate.Queue(), r.reload)
	if err != nil {
		return Result{}, err
	}
	defer stopOrders()
	proc, err := r.begin(ctx)
	if err != nil {
		return Result{Warnings: r.session.Warnings()}, err
	}
	r.bus.Guard(proc.Kill)
	result.Limited = proc.Limited()
	result.Ended, err = relay.Attend(ctx, proc, r.relay())
	if err := errors.Join(err, r.end(ctx, &result)); err != nil {
		return result, &RanError{err}
	}
	return result, nil
}

// begin launches the command, and tries again while the workspace changes under it.
func (r *running) begin(ctx context.Context) (boundary.Process, error) {
	last := time.Now().Add(patience)
	for try := 1; ; try++ {
		proc, err := r.launch(ctx)
		if err == nil {
			return proc, nil
		}
		r.session.Drop()
		if cerr := r.sensors.Close(); cerr != nil { // everything of that launch is dead
			return nil, errors.Join(err, cerr)
		}
		if !mayRetry(err) || try >= attempts && (!wasReplaced(err) || time.Now().After(last)) {
			return nil, err
		}
		time.Sleep(min(time.Duration(try)*5*time.Millisecond, 100*time.Millisecond))
	}
}

// mayRetry reports whether a launch failed because the workspace changed under it:
// something that should be protected is gone, or another run replaced it, which removes
// the mount on it. Nothing was executed.
func mayRetry(err error) bool {
	var posture *boundary.PostureError
	return errors.Is(err, os.ErrNotExist) || errors.As(err, &posture)
}

func wasReplaced(err error) bool {
	var posture *boundary.PostureError
	return errors.As(err, &posture) && posture.Replaced
}

// launch scans the workspace and starts the command. Each part adds what it needs to
// the launch.
func (r *running) launch(ctx context.Context) (boundary.Process, error) {
	t, plan := r.task, r.task.Plan
	if err := r.session.Prepare(ctx, &plan); err != nil {
		return nil, err
	}
	spec := boundary.Spec{Plan: plan, Argv: t.Argv}
	spec.Attested = func(p boundary.Posture) error {
		if err := r.session.Ready(); err != nil {
			return err
		}
		return r.recordStart(plan, p)
	}
	t.Streams.AddTo(&spec)
	if err := r.session.AddTo(ctx, &spec); err != nil {
		return nil, err
	}
	if err := r.egress.AddTo(&spec); err != nil {
		return nil, err
	}
	r.intercepts = !spec.Network.Optional
	if err := t.Tools.AddTo(&spec); err != nil {
		return nil, err
	}
	if err := r.agent.AddTo(&spec); err != nil {
		return nil, err
	}
	if notes := slices.Concat(r.session.Notes(), r.agent.Notes()); t.Begins != nil && len(notes) > 0 && !r.told {
		t.Begins(notes)
		r.told = true
	}
	r.sensors.AddTo(&spec)
	if t.Executable != "" {
		spec.Orphaned = []string{t.Executable, SettleCommand, r.session.Dir()}
	}
	return t.Backend.Start(ctx, spec)
}

// end finishes what ran and records how. Everything inside is dead. What the agent
// changed is taken out while the root of the view is still served.
func (r *running) end(ctx context.Context, result *Result) error {
	r.gate.Close()
	result.Asked = r.gate.Report()
	changed, err := r.agent.Collect(r.task.State, r.session.Name(), r.task.Plan.Workspace)
	result.Changed, result.Warnings = changed, append(result.Warnings, r.agent.Warnings()...)
	result.warn(err)
	result.warn(r.session.CollectGit())
	unseen := r.sensors.Close()
	result.Ports = r.sensors.RefusedPorts()
	r.session.NothingHidden = r.sensors.NothingHidden()
	var unsettled error
	result.Outcome, unsettled = r.session.Settle(ctx, r.task.user())
	result.Warnings = append(result.Warnings, r.session.Warnings()...)
	var warnings []string
	result.Summary, warnings = r.egress.Finish()
	result.Warnings = append(result.Warnings, warnings...)
	result.warn(r.egress.Close())
	return errors.Join(unseen, unsettled, r.recordEnd(*result))
}

// SettleCommand is the hidden subcommand that settles a session whose
// supervisor died; its argument is the session's directory.
const SettleCommand = "settle"

// Settle finishes the session in dir, whose supervisor died. It does nothing when the
// session is still looked after, or was settled.
func Settle(ctx context.Context, dir string) error { return session.Recover(ctx, dir) }

// Alive lists the runs of this user that are looked after now and may write to a
// workspace, to a part of it or to what it lies in.
func Alive(state, root string) []string { return session.Alive(state, root) }

// Reload makes the running sessions below a state directory reload their policy. Runs
// that end meanwhile are left out.
func Reload(ctx context.Context, state string) ([]orders.Reloaded, error) {
	return orders.Reload(ctx, state)
}

// user is notified of what takes long once the command has ended.
func (t *Task) user() session.User { return session.User{Signals: t.Signals, Progress: t.Progress} }
