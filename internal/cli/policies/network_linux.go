package policies

import (
	"context"
	"errors"
	"fmt"
	"os"

	"holdfast.dev/holdfast/internal/cli/runs"
	"holdfast.dev/holdfast/internal/cli/runs/summary"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/run"
)

// learn runs a command and writes the network rules that it needs.
func (a *app) learn(options policy.Options, argv []string, through bool, to string) error {
	t, err := runs.New(a.App, options, argv)
	if err != nil {
		return err
	}
	if to == "" { // the proposal is our output; the command's is not
		t.Streams.Out, t.Streams.OutTerminal = t.Streams.Err, t.Streams.ErrTerminal
	}
	t.Learn = run.LearnObserve
	if through {
		t.Learn = run.LearnThrough
	}
	result, err := runs.Run(a.App, t)
	if err != nil {
		return err
	}
	summary.Write(a.App, nil, t.Plan, result, false, true)
	if status := result.Exit.Status(); status != 0 {
		a.Note(command.Yellow, "warning", "the command ended with status %d; what it would have asked for later is missing from the proposal", status)
	}
	return a.propose(result, to)
}

func (a *app) propose(result run.Result, to string) error {
	seen := make([]policy.Seen, len(result.Observed))
	for i, o := range result.Observed {
		seen[i] = policy.Seen{Host: o.Name, Port: o.Port, Kind: o.Kind, Method: o.Method, Path: o.Path, Count: o.Count}
	}
	proposal := policy.Propose(seen)
	if to == "" {
		_, err := a.Stdout.Write(proposal)
		return err
	}
	f, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(proposal)
	return errors.Join(err, f.Close())
}

// reload has the running sessions load their policy again.
func (a *app) reload(state string) error {
	all, err := run.Reload(context.Background(), state)
	if err != nil {
		return err
	}
	failed := false
	for _, r := range all {
		if r.Err != nil {
			failed = true
			a.Note(command.Red, "error", "%s keeps its old rules: %s", r.Session, text.Line(r.Err.Error()))
			continue
		}
		fmt.Fprintf(a.Stdout, "%s: reloaded\n", r.Session)
	}
	if len(all) == 0 {
		fmt.Fprintln(a.Stdout, "no session is running")
	}
	if failed {
		return command.Exit(command.ExitFailed)
	}
	return nil
}
