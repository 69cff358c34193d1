package runs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/term"
	"holdfast.dev/holdfast/internal/cli/backend"
	"holdfast.dev/holdfast/internal/cli/hooks"
	"holdfast.dev/holdfast/internal/cli/plans"
	"holdfast.dev/holdfast/internal/cli/runs/summary"
	"holdfast.dev/holdfast/internal/consent"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/sys"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/run"
)

// run makes the plan and runs the command under it.
func (a *app) run(options policy.Options, argv []string, verbose bool, grace time.Duration) error {
	run.Warm()
	t, err := New(a.App, options, argv)
	if err != nil {
		return err
	}
	t.Grace = grace
	a.announce(t.Plan, options.Workspace == "")
	result, err := Run(a.App, t)
	err = summary.Explain(t.Plan, result, err)
	var lost *run.OutputError
	ran := err == nil || errors.As(err, &lost)
	summary.Write(a.App, a.terminal(t, result), t.Plan, result, verbose, ran)
	if lost != nil {
		a.Report(err)
		if result.Exit.Status() == 0 {
			return command.Exit(command.ExitFailed)
		}
	} else if err != nil {
		return err
	}
	if status := result.Exit.Status(); status != 0 {
		return command.Exit(status)
	}
	return nil
}

// terminal returns the user's terminal, for a question after the run; nil where nobody is
// to be asked: there is none, the profile is one for machines, or the run was ended from
// outside and is not to be held up.
func (a *app) terminal(t *run.Task, r run.Result) *os.File {
	in, ok := a.Stdin.(*os.File)
	keys, own := t.Streams.In.(*sys.Until)
	if !ok || !own || !t.Streams.ErrTerminal || t.Plan.Profile == "ci" || r.Exit.Reason != "" || r.Exit.Signal == syscall.SIGTERM || r.Exit.Signal == syscall.SIGHUP {
		return nil
	}
	keys.End()
	return in
}

// New makes a run of a command line.
func New(world *command.App, options policy.Options, argv []string) (*run.Task, error) {
	a := &app{world}
	_, plan, err := plans.Compile(options)
	if err != nil {
		return nil, err
	}
	for _, arg := range argv {
		if strings.ContainsRune(arg, 0) {
			return nil, command.Usage(errors.New("an argument contains a NUL byte"), "pass the data in a file")
		}
	}
	backend, err := backend.New()
	if err != nil {
		return nil, err
	}
	t := &run.Task{
		Backend: backend, Plan: plan, Argv: argv, State: options.Host.State, Streams: a.streams(),
		Version: command.Release(), Build: command.Build(), Notify: a.notify, Progress: a.settling,
		Log: filepath.Join(options.Host.State, "log"), Keys: filepath.Join(options.Host.State, "keys"),
		Grants: filepath.Join(options.Host.State, "grants"), Unset: os.Unsetenv, Getenv: a.Lookup,
		Replan: func() (policy.Plan, error) {
			_, plan, err := plans.Compile(options)
			return plan, err
		},
	}
	t.Asks = a.notifyWaiting(t.Streams)
	t.Begins = func(notes []string) {
		for _, n := range notes {
			a.Note(command.Yellow, "warning", "%s", text.Line(n))
		}
	}
	if exe, err := os.Executable(); err == nil {
		t.Executable = exe
	}
	hooks.Report(t, argv)
	return t, nil
}

// Run runs it to its end and passes the caller's signals on.
func Run(a *command.App, t *run.Task) (run.Result, error) {
	if err := sys.KeepPrivate(); err != nil {
		return run.Result{}, err
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
	defer signal.Stop(signals)
	t.Signals = signals
	messages := &deadlineWriter{to: a.Stderr, late: make(chan struct{})}
	for _, out := range []io.Writer{t.Streams.Out, t.Streams.Err} {
		if line, ok := out.(*lineWriter); ok {
			messages.command = line
		}
	}
	a.Stderr, t.Late = messages, sync.OnceFunc(func() { close(messages.late) })
	// A run that lasts keeps its heap small; a start does not collect at all (Main).
	lasting := time.AfterFunc(5*time.Second, func() { debug.SetGCPercent(50) })
	defer lasting.Stop()
	return t.Run(context.Background())
}

// notify prints an alert while the command runs.
func (a *app) notify(line string) {
	fmt.Fprintf(a.Stderr, "%s %s\r\n", a.Paint(command.Red, "holdfast: alert:"), line)
}

// settling prints what takes long after the command has ended.
func (a *app) settling(line string) {
	fmt.Fprintf(a.Stderr, "%s %s\r\n", a.Paint(command.Cyan, "holdfast: settling:"), text.Safe(line))
}

// streams are the standard descriptors of this process.
func (a *app) streams() run.Streams {
	s := run.Streams{In: a.Stdin, Out: a.Stdout, Err: a.Stderr}
	in, inOK := a.Stdin.(*os.File)
	out, outOK := a.Stdout.(*os.File)
	errs, errOK := a.Stderr.(*os.File)
	s.InTerminal = inOK && term.IsTerminal(int(in.Fd()))
	s.OutTerminal = outOK && term.IsTerminal(int(out.Fd()))
	s.ErrTerminal = errOK && term.IsTerminal(int(errs.Fd()))
	if s.ErrTerminal && s.OutTerminal { // both are written by the one that is the first
		s.Out = &lineWriter{Writer: s.Out}
	} else if s.ErrTerminal {
		s.Err = &lineWriter{Writer: s.Err}
	}
	switch {
	case s.InTerminal:
		s.Console = newConsole(in)
		if keys, err := sys.ReadUntil(in); err == nil {
			s.In = keys
		}
	case s.OutTerminal:
		s.Console = newConsole(out)
	case s.ErrTerminal:
		s.Console = newConsole(errs)
	}
	return s
}

// notifyWaiting reports that something waits, if that cannot spoil what the command draws: on a
// terminal in raw mode the command may have the whole screen.
func (a *app) notifyWaiting(s run.Streams) func(id, what string) {
	if s.InTerminal && s.ErrTerminal {
		return nil
	}
	return func(id, what string) {
		fmt.Fprintf(a.Stderr, "%s %s %s (holdfast approve)\n", a.Paint(command.Yellow, "holdfast: asks:"), id, consent.Visible(what))
	}
}

// announce says before the start which workspace was found, which preset applies, and what
// is missing.
func (a *app) announce(plan policy.Plan, found bool) {
	if found && plan.Dir != plan.Workspace {
		a.Note(command.Cyan, "workspace", "%s, which you are in; for this directory alone: --workspace .", text.Word(plan.Workspace))
	}
	if root := plan.RepositoryAround(); root != "" {
		a.Note(command.Yellow, "warning", "git does not work here: its repository %[1]s is outside the workspace; for that: --workspace %[1]s", text.Word(root))
	}
	agent := plan.Agent
	if agent == nil {
		return
	}
	line := fmt.Sprintf("%s runs with %s", agent.Title, agent.Origin)
	if agent.Sandbox != "" {
		line += "; " + agent.Sandbox
	}
	a.Note(command.Cyan, "agent", "%s", line)
	for _, m := range agent.Missing {
		a.Note(command.Yellow, "warning", "%s", m)
	}
}
