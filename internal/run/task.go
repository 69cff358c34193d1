//go:build linux

package run

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"time"

	"holdfast.dev/holdfast/internal/agents/gateway"
	"holdfast.dev/holdfast/internal/agents/reports"
	"holdfast.dev/holdfast/internal/agents/state"
	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/boundary/workspace"
	"holdfast.dev/holdfast/internal/consent"
	"holdfast.dev/holdfast/internal/consent/gate"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/network/egress"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/record/bus"
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
	Notify     func(line string)     // is told of alerts while the command runs, a line each; nil for not
	Progress   func(line string)     // is told what takes long once the command has ended; nil for not
	Asks       func(id, what string) // is told of what begins to wait for an answer; nil for not
	Late       func()                // is called once when the run must be over: no reader is waited for any more; nil for not
	Grants     string                // directory of grants and revocations of credentials; "" for none
	Learn      egress.Learn          // what happens to destinations that no rule names
	Grace      time.Duration         // how long the command has to end after SIGTERM; 0 is 10 s
	Unset      func(string) error    // takes a variable that holds a secret out of this process's environment; nil when that is not to be done

	Tools reports.Tools // how agents inside report their tool calls

	// Rungs are the ways to intercept connections that may be used; empty for all.
	Rungs []boundary.Rung

	Messages *Messages // when the command is an MCP server; nil for any other

	bus *bus.Bus // of the events, once the session is open

	traps traps

	rules   gate.Rules // rules of consent; set before anything is launched
	clients clients

	intercepts bool // connections to every address arrive; known when something is launched

	// Replan loads the policy again, for Reload; nil when it cannot change.
	Replan func() (policy.Plan, error)
}

// Streams are the caller's ends of the standard descriptors. None of them is
// handed to the command: everything is relayed.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer

	// Whether each is a terminal. With any of them, Console must be set.
	InTerminal, OutTerminal, ErrTerminal bool
	Console                              Console
}

// Console is the user's terminal.
type Console interface {
	// Raw switches it to raw mode and returns what undoes that.
	Raw() (restore func(), err error)
	Size() boundary.WindowSize
	Resized() <-chan os.Signal
	// Flush drops input that nobody has read yet.
	Flush()
	// Suspend stops this process as the shell's job control wants it, and
	// returns when it was continued.
	Suspend()
}

// Result is how a run ended.
type Result struct {
	bus.Report
	egress.Summary
	Session string // of the record; "" when there is none
	Exit    boundary.Exit
	session.Outcome
	Changed    *state.Changes // what an agent changed in its copies of the user's settings; nil for nothing
	Limited    []policy.Guarantee
	Messages   gateway.Report    // of a server
	Asked      []consent.Outcome // what a rule of consent was about
	Warnings   []string
	Unsent     bool                // an alert did not reach a sink: 'holdfast alerts resend' sends it again
	Aftermaths []session.Aftermath // of runs here before this one, whose supervisor was killed
}

// RanError is a failure after the command began: the status that says that nothing
// ran must not be given.
type RanError struct{ Err error }

func (e *RanError) Error() string { return e.Err.Error() }
func (e *RanError) Unwrap() error { return e.Err }

// attempts to start when the workspace changes between scan and launch.
const attempts = 5

// waiters is how many goroutines of a run wait in system calls at most times: for the
// launch, its end, calls and look-ups. The runtime takes a processor from one that
// waits after up to 10 ms (sysmon in runtime/proc.go), and until then no other
// goroutine has it: with as many as there are cores, two cores stood still for 8 ms of
// every start.
const waiters = 8

// Run runs the task to its end. An error means that the command was not
// executed, unless it is a *RanError.
func (t *Task) Run(ctx context.Context) (Result, error) {
	runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), waiters))
	killed, err := session.Sweep(ctx, t.State, t.Plan.Workspace, t.user())
	if err != nil {
		return Result{}, err
	}
	open, err := t.listen()
	if err != nil {
		return Result{}, err
	}
	defer open.close()
	s, err := session.Open(t.State)
	if err != nil {
		return Result{}, err
	}
	defer s.Close()
	t.bus, err = t.openBus(s.Name())
	if err != nil {
		return Result{}, err
	}
	result, err := t.runIn(ctx, s, open)
	result.Aftermaths = killed
	result.Session, result.Report = t.bus.Session(), t.bus.Report()
	if !t.bus.Ended() {
		err = errors.Join(err, t.recordRefused(err))
	}
	if cerr := t.bus.Close(); cerr != nil {
		result.Warnings = append(result.Warnings, cerr.Error())
	}
	result.Lack, result.Unsent = t.bus.Lack(), t.bus.Unsent() // nothing is recorded any more
	return result, err
}

// openBus begins the record of the session.
func (t *Task) openBus(session string) (*bus.Bus, error) {
	return bus.Open(bus.Config{Session: session, Log: t.Log, Keys: t.Keys, State: t.State, Version: t.Version, Build: t.Build, Notify: t.Notify, Plan: t.Plan})
}

// openGate makes what asks before something happens, and sets the rules by which it is
// asked; nil where the policy has none.
func (t *Task) openGate() (*gate.Gate, error) {
	g, err := gate.Open(gate.Config{
		Plan: t.Plan, Session: t.bus.Session(), State: t.State, Keys: t.Keys, Version: t.Version, Executable: t.Executable,
		Sink: t.bus.Sensor(event.Approve), Mask: t.bus.Secrets().String, Asks: t.Asks, Intercepts: func() bool { return t.intercepts },
	})
	if g != nil {
		t.rules = g.Rules()
	}
	return g, err
}

// What a run says of the network, and what Learn takes besides nothing.
type Refusal = egress.Refusal

const (
	LearnObserve = egress.LearnObserve
	LearnThrough = egress.LearnThrough
)

// newEgress makes the way out of the run, and the credentials that connections carry.
func (t *Task) newEgress(s *session.Session) (*egress.Egress, error) {
	return egress.New(egress.Config{
		Plan: t.Plan, Session: s.Name(), Writable: workspace.WritableTrees(t.Plan), Bus: t.bus, Rules: t.rules, Grants: t.Grants, Learn: t.Learn, Rungs: t.Rungs, Unset: t.Unset,
		Decoys: func() []egress.Decoy { return t.traps.decoys }, Client: t.clients.of,
	})
}

// runIn runs the task in an open session with a record.
func (t *Task) runIn(ctx context.Context, s *session.Session, open *ports) (Result, error) {
	questions, err := t.openGate()
	if err != nil {
		return Result{}, err
	}
	defer questions.Close()
	net, err := t.newEgress(s)
	if err != nil {
		return Result{}, err
	}
	defer net.Close()
	stopListening, err := t.takeOrders(s.Dir(), net, questions.Queue())
	if err != nil {
		return Result{}, err
	}
	defer stopListening()
	watch, err := t.newObservers()
	if err != nil {
		return Result{}, err
	}
	defer watch.close()
	proc, err := t.begin(ctx, s, net, watch)
	if err != nil {
		return Result{Warnings: s.Warnings()}, err
	}
	t.bus.Guard(proc.Kill)
	result := Result{Limited: proc.Limited()}
	result.Exit, err = t.attend(ctx, proc, open)
	questions.Close()
	result.Asked = questions.Report()
	if t.Messages != nil {
		result.Messages = t.Messages.report
	}
	err = errors.Join(err, watch.end(s, &result))
	var serr error
	result.Outcome, serr = s.Settle(ctx, t.user())
	result.Warnings = append(result.Warnings, s.Warnings()...)
	var warnings []string
	result.Summary, warnings = net.Finish()
	result.Warnings = append(result.Warnings, warnings...)
	if cerr := net.Close(); cerr != nil {
		result.Warnings = append(result.Warnings, cerr.Error())
	}
	if err := errors.Join(err, serr, t.recordEnd(result)); err != nil {
		return result, &RanError{err}
	}
	return result, nil
}

// begin launches the command, and tries again while the workspace changes under it.
func (t *Task) begin(ctx context.Context, s *session.Session, net *egress.Egress, watch *observers) (boundary.Process, error) {
	for try := 1; ; try++ {
		proc, err := t.launch(ctx, s, net, watch)
		if err == nil {
			return proc, nil
		}
		s.Drop()
		if cerr := watch.close(); cerr != nil { // everything of that launch is dead
			return nil, errors.Join(err, cerr)
		}
		if try == attempts || !mayPass(err) {
			return nil, err
		}
		time.Sleep(time.Duration(try) * 5 * time.Millisecond)
	}
}

// mayPass says whether a launch failed because the workspace changed under it:
// something that was to be protected is gone, or another run replaced it, which
// takes the mount on it away. Nothing was executed.
func mayPass(err error) bool {
	var posture *boundary.PostureError
	return errors.Is(err, os.ErrNotExist) || errors.As(err, &posture)
}

// launch scans the workspace and starts the command.
func (t *Task) launch(ctx context.Context, s *session.Session, net *egress.Egress, watch *observers) (boundary.Process, error) {
	plan := t.Plan
	if err := workspace.MakeOutputs(plan); err != nil {
		return nil, err
	}
	if err := policy.RecordExposed(t.State, workspace.WritableTrees(plan)); err != nil {
		return nil, err
	}
	if err := s.Scan(ctx, &plan); err != nil {
		return nil, err
	}
	spec := boundary.Spec{
		Plan: plan, Argv: t.Argv,
		In: stream(t.Streams.InTerminal), Out: stream(t.Streams.OutTerminal), Err: stream(t.Streams.ErrTerminal),
		Attested: func(p boundary.Posture) error {
			if err := s.Ready(); err != nil {
				return err
			}
			return t.recordStart(plan, p, watch, s.View())
		},
	}
	if err := s.AddTo(ctx, &spec); err != nil {
		return nil, err
	}
	if err := net.AddTo(&spec); err != nil {
		return nil, err
	}
	t.intercepts = spec.Network.Intercept
	watch.traps.apply(&spec)
	if err := t.Tools.AddTo(&spec); err != nil {
		return nil, err
	}
	if err := watch.agent.AddTo(&spec); err != nil {
		return nil, err
	}
	watch.apply(&spec)
	if t.Streams.Console != nil {
		spec.Size = t.Streams.Console.Size()
	}
	if t.Executable != "" {
		spec.Orphaned = []string{t.Executable, SettleCommand, s.Dir()}
	}
	return t.Backend.Start(ctx, spec)
}

// SettleCommand is the hidden subcommand that settles a session whose
// supervisor died; its argument is the session's directory.
const SettleCommand = "settle"

// Settle finishes the session in dir, whose supervisor died. It does nothing when the
// session is still looked after, or was settled.
func Settle(ctx context.Context, dir string) error {
	_, err := session.Recover(ctx, dir)
	return err
}

// Alive lists the runs of this user that are looked after now and may write to a
// workspace, to a part of it or to what it lies in.
func Alive(state, root string) []string { return session.Alive(state, root) }

// Aftermath is what a run left whose supervisor was killed.
type Aftermath = session.Aftermath

// user is told what takes long once the command has ended.
func (t *Task) user() session.User { return session.User{Signals: t.Signals, Progress: t.Progress} }

func stream(terminal bool) boundary.Stream {
	if terminal {
		return boundary.Terminal
	}
	return boundary.Pipe
}
