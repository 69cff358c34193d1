//go:build linux

package task

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"holdfast.dev/holdfast/internal/egress"
	"holdfast.dev/holdfast/internal/event"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/sandbox"
	"holdfast.dev/holdfast/internal/workspace"
)

// Task is one command to run.
type Task struct {
	Backend    sandbox.Backend
	Plan       policy.Plan
	Argv       []string
	State      string // directory of Holdfast's state, outside every view
	Executable string // this program, for the clean-up after a sudden death; "" for none
	Streams    Streams
	Signals    <-chan os.Signal   // to pass on to the command
	Sink       event.Sink         // nil for none
	Grants     string             // directory of grants and revocations of credentials; "" for none
	Learn      egress.Learn       // what happens to destinations that no rule names
	Unset      func(string) error // takes a variable that holds a secret out of this process's environment; nil when that is not to be done

	// Rungs are the ways to intercept connections that may be used; empty for all.
	Rungs []sandbox.Rung

	id string // of the session, once it is open

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
	Size() sandbox.WindowSize
	Resized() <-chan os.Signal
	// Flush drops input that nobody has read yet.
	Flush()
	// Suspend stops this process as the shell's job control wants it, and
	// returns when it was continued.
	Suspend()
}

// Result is how a run ended.
type Result struct {
	Exit        sandbox.Exit
	Settled     workspace.Report // what was quarantined and what is to be looked at
	Kept        string           // directory with what was quarantined; "" when nothing was
	Limited     []policy.Guarantee
	Rung        sandbox.Rung         // how connections were intercepted; "" when nothing ran
	Refused     []egress.Refusal     // destinations, each once
	Unreachable []egress.Refusal     // destinations that were allowed and did not answer
	Observed    []egress.Observation // requests that were made, while a policy is learned
	Warnings    []string
}

// attempts to start when the workspace changes between scan and launch.
const attempts = 5

// Run runs the task to its end. An error means that the command was not
// executed, unless Result.Exit says otherwise.
func (t *Task) Run(ctx context.Context) (Result, error) {
	if err := t.sweep(ctx); err != nil {
		return Result{}, err
	}
	open, err := t.listen()
	if err != nil {
		return Result{}, err
	}
	defer open.close()
	s, err := t.open()
	if err != nil {
		return Result{}, err
	}
	defer s.close()
	t.id = filepath.Base(s.dir)
	net, err := t.newNetwork(s)
	if err != nil {
		return Result{}, err
	}
	defer net.close()
	stopListening, err := t.answer(s, net)
	if err != nil {
		return Result{}, err
	}
	defer stopListening()
	var proc sandbox.Process
	for try := 1; ; try++ {
		proc, err = t.launch(ctx, s, net)
		if err == nil {
			break
		}
		if try == attempts || !mayPass(err) {
			return Result{Warnings: s.warnings()}, err
		}
		time.Sleep(time.Duration(try) * 5 * time.Millisecond)
	}
	result := Result{Limited: proc.Limited()}
	result.Exit, err = t.attend(ctx, proc, open)
	settled, serr := s.settle(ctx)
	result.Settled, result.Warnings = settled, s.warnings()
	net.finish(&result)
	if cerr := net.close(); cerr != nil {
		result.Warnings = append(result.Warnings, cerr.Error())
	}
	if len(settled.Quarantined) > 0 {
		result.Kept = s.quarantine()
	}
	lost := t.emit("session.end", "", map[string]string{"status": fmt.Sprint(result.Exit.Status())})
	return result, errors.Join(err, serr, lost)
}

// mayPass says whether a launch failed because the workspace changed under it:
// something that was to be protected is gone, or another run replaced it, which
// takes the mount on it away. Nothing was executed.
func mayPass(err error) bool {
	var posture *sandbox.PostureError
	return errors.Is(err, os.ErrNotExist) || errors.As(err, &posture)
}

// launch scans the workspace and starts the command.
func (t *Task) launch(ctx context.Context, s *session, net *network) (sandbox.Process, error) {
	plan := t.Plan
	if err := s.scan(ctx, &plan); err != nil {
		return nil, err
	}
	spec := sandbox.Spec{
		Plan: plan, Argv: t.Argv,
		In: stream(t.Streams.InTerminal), Out: stream(t.Streams.OutTerminal), Err: stream(t.Streams.ErrTerminal),
		Attested: func(sandbox.Posture) error { return t.emit("session.start", plan.Workspace, nil) },
	}
	net.apply(&spec)
	if t.Streams.Console != nil {
		spec.Size = t.Streams.Console.Size()
	}
	if t.Executable != "" {
		spec.Orphaned = []string{t.Executable, SettleCommand, s.dir}
	}
	return t.Backend.Start(ctx, spec)
}

// SettleCommand is the hidden subcommand that settles a session whose
// supervisor died; its argument is the session's directory.
const SettleCommand = "settle"

func stream(terminal bool) sandbox.Stream {
	if terminal {
		return sandbox.Terminal
	}
	return sandbox.Pipe
}

// emit records an event; no sink is no record.
func (t *Task) emit(action, object string, detail map[string]string) error {
	if t.Sink == nil {
		return nil
	}
	return t.Sink.Emit(event.Event{Time: time.Now(), Session: t.id, Action: action, Object: object, Verdict: event.Allowed, Detail: detail})
}
