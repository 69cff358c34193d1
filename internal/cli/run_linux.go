package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/term"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/sys"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/run"
)

// run makes the plan and runs the command under it.
func (a *app) run(options policy.Options, argv []string, verbose bool, grace time.Duration) error {
	t, err := a.newTask(options, argv)
	if err != nil {
		return err
	}
	t.Grace = grace
	a.announce(t.Plan)
	result, err := a.runTask(t)
	err = deniedCommand(result, a.missingProgram(t.Plan, err))
	var lost *run.OutputError
	ran := err == nil || errors.As(err, &lost)
	a.summary(t.Plan, result, verbose, ran)
	if lost != nil {
		a.Report(err)
		if result.Exit.Status() == 0 {
			return command.Exit(exitFailed)
		}
	} else if err != nil {
		return err
	}
	if status := result.Exit.Status(); status != 0 {
		return command.Exit(status)
	}
	return nil
}

// newTask makes the task of a command line.
func (a *app) newTask(options policy.Options, argv []string) (*run.Task, error) {
	_, plan, err := compile(options)
	if err != nil {
		return nil, err
	}
	for _, arg := range argv {
		if strings.ContainsRune(arg, 0) {
			return nil, command.Usage(errors.New("an argument contains a NUL byte"), "pass the data in a file")
		}
	}
	backend, err := newBackend()
	if err != nil {
		return nil, err
	}
	t := &run.Task{
		Backend: backend, Plan: plan, Argv: argv, State: options.Host.State, Streams: a.streams(),
		Version: command.Release(), Build: command.Build(), Notify: a.notify, Progress: a.settling,
		Log: filepath.Join(options.Host.State, "log"), Keys: filepath.Join(options.Host.State, "keys"),
		Grants: filepath.Join(options.Host.State, "grants"), Unset: os.Unsetenv,
		Replan: func() (policy.Plan, error) {
			_, plan, err := compile(options)
			return plan, err
		},
	}
	t.Asks = a.asks(t.Streams)
	if exe, err := os.Executable(); err == nil {
		t.Executable = exe
	}
	a.reports(t, argv)
	return t, nil
}

// runTask runs a task to its end and passes the caller's signals on.
func (a *app) runTask(t *run.Task) (run.Result, error) {
	if err := sys.KeepPrivate(); err != nil {
		return run.Result{}, err
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
	defer signal.Stop(signals)
	t.Signals = signals
	messages := &patient{to: a.Stderr, late: make(chan struct{})}
	a.Stderr, t.Late = messages, sync.OnceFunc(func() { close(messages.late) })
	// A run that lasts keeps its heap small; a start does not collect at all (Main).
	lasting := time.AfterFunc(time.Second/2, func() { debug.SetGCPercent(50) })
	defer lasting.Stop()
	return t.Run(context.Background())
}

// notify prints an alert while the command runs.
func (a *app) notify(line string) {
	fmt.Fprintf(a.Stderr, "%s %s\r\n", a.Paint(command.Red, "holdfast: alert:"), line)
}

// aftermaths says what runs here had left whose supervisor was killed: nobody was
// told at their end.
func (a *app) aftermaths(say func(colour, kind, format string, args ...any), all []run.Aftermath) {
	for _, left := range all {
		say(command.Yellow, "warning", "the run %s in this workspace was killed with its supervisor; what it left was looked through afterwards:", left.Session)
		for _, w := range left.Warnings {
			say(command.Yellow, "warning", "%s", w)
		}
		for _, q := range left.Quarantined {
			say(command.Yellow, "quarantined", "%s (%s)", text.Line(string(q.Path)), q.Reason)
		}
		if len(left.Quarantined) > 0 {
			say(command.Cyan, "hint", "look at what was quarantined in %s/quarantine; move it back if you want it", left.Dir)
		}
		for _, f := range left.Flagged {
			say(command.Yellow, string(f.Change), "%s (%s)", text.Line(string(f.Path)), f.Reason)
		}
	}
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
	switch {
	case s.InTerminal:
		s.Console = newConsole(in)
	case s.OutTerminal:
		s.Console = newConsole(out)
	case s.ErrTerminal:
		s.Console = newConsole(errs)
	}
	return s
}

// lost is the format of what is said of a guarantee that --without accepted.
func lost(g policy.Guarantee) string {
	if g.Switch() {
		return "ran without %s, as --without accepted"
	}
	return "ran with %s only as far as this machine keeps it, as --without accepted"
}

// summary says after a run what a person has to know of it; nothing when there
// is nothing.
func (a *app) summary(plan policy.Plan, r run.Result, verbose, ran bool) {
	say := a.Note
	for _, g := range plan.Accepted {
		if !ran {
			break
		}
		say(command.Yellow, "warning", lost(g), g)
	}
	a.aftermaths(say, r.Aftermaths)
	a.warnings(r)
	if r.Exit.Reason != "" {
		say(command.Red, "stopped", "%s", r.Exit.Reason)
	}
	for _, h := range r.Exit.Hits {
		say(command.Yellow, "limit", "%s", h)
	}
	if r.Exit.Signal == syscall.SIGXFSZ {
		say(command.Yellow, "limit", "a file outgrew the limit of its size (--filesize, else --disk)")
	}
	if verbose {
		for _, n := range plan.Notes {
			say(command.Cyan, "note", "%s", n)
		}
		say(command.Cyan, "note", "profile %s, %d paths in view, %d protected, limits by control group: %v", plan.Profile, len(plan.Paths), len(plan.Protect), r.Limited)
		if r.Session != "" {
			say(command.Cyan, "note", "the record of this run: holdfast log show %s", r.Session)
		}
		say(command.Cyan, "note", "network: %d rules, connections intercepted: %s", len(plan.Allow), intercepted(r.Rung))
	}
	a.refusals(r)
	a.consents(r.Asked)
	a.privateHome(plan, r)
	for _, w := range r.Settled.Warnings {
		say(command.Yellow, "warning", "%s", w)
	}
	for _, q := range r.Settled.Quarantined {
		say(command.Yellow, "quarantined", "%s (%s)", text.Line(string(q.Path)), q.Reason)
	}
	if r.Kept != "" {
		say(command.Cyan, "hint", "look at what was quarantined in %s; move it back if you want it", r.Kept)
	}
	for _, f := range r.Settled.Flagged {
		say(command.Yellow, string(f.Change), "%s (%s)", text.Line(string(f.Path)), f.Reason)
	}
	a.reviewable(r)
	a.lacking(r, ran)
}

// warnings says what went wrong besides.
func (a *app) warnings(r run.Result) {
	for _, w := range r.Warnings {
		a.Note(command.Yellow, "warning", "%s", w)
	}
	if r.Unsent {
		a.Note(command.Cyan, "hint", "send the alerts again: holdfast alerts resend %s", r.Session)
	}
}

// lacking says that the record of a run is not COMPLETE.
func (a *app) lacking(r run.Result, ran bool) {
	if ran && r.Lack.Verdict != "" {
		a.Note(command.Yellow, "record", "%s: %s; see: holdfast log verify %s", r.Lack.Verdict, r.Lack.Reason, r.Session)
	}
}

// fewNew is how many new things the end of a run names.
const fewNew = 6

// news says what a run did that is new in its workspace, in one line.
func (a *app) news(all []string) {
	if len(all) == 0 {
		return
	}
	var named []string
	for _, one := range all[:min(fewNew, len(all))] {
		named = append(named, text.Line(shortHash(one)))
	}
	if more := len(all) - len(named); more > 0 {
		named = append(named, fmt.Sprintf("and %d more", more))
	}
	fmt.Fprintf(a.Stderr, "%s %s (by the baseline of this workspace; see: holdfast alerts)\n", a.Paint(command.Cyan, "holdfast: new:"), strings.Join(named, "; "))
}
