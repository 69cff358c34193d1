//go:build linux

package cli

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"

	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/prove/agent"
	"holdfast.dev/holdfast/internal/prove/harness"
	"holdfast.dev/holdfast/internal/prove/report"
)

// watchedAgents returns the programs of the named agents. What a user starts is
// watched: its links are part of it.
func (a *app) watchedAgents(w *watcher) ([]harness.Watched, error) {
	w.trials = map[string]agentTarget{}
	if len(w.agents) > 0 && len(w.agent.postures) > 1 {
		return nil, command.Usage(errors.New("a baseline covers one posture"), "watch each posture by a command of its own, with a --baseline of its own")
	}
	var out []harness.Watched
	for _, name := range w.agents {
		t := w.agent
		t.name = name
		if _, twice := w.trials[t.watchName()]; twice {
			return nil, command.Usage(fmt.Errorf("the agent %s is named twice", name), "name it once")
		}
		column, err := a.oneColumn(context.Background(), w.prover, t)
		if err != nil {
			return nil, err
		}
		path := column.program.Program
		if d, err := agent.Named(name); err == nil {
			if called, err := exec.LookPath(d.Command); err == nil {
				path = called
			}
		}
		full, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		w.trials[t.watchName()] = t
		out = append(out, harness.Watched{Name: t.watchName(), Path: full})
	}
	return out, nil
}

// watchName is the name of an agent in events and of its baseline.
func (t agentTarget) watchName() string {
	name := "agent-" + t.name
	for _, p := range t.postures {
		name += "-" + p
	}
	if t.inside != "" {
		name += "-" + t.inside
	}
	return name
}

// oneColumn returns the column of the program that is installed now.
func (a *app) oneColumn(ctx context.Context, p prover, t agentTarget) (agentColumn, error) {
	p.agent = t
	columns, err := a.agentColumns(ctx, p)
	if err != nil {
		return agentColumn{}, err
	}
	if len(columns) != 1 {
		return agentColumn{}, command.Usage(errors.New("a baseline covers one posture"), "name one with --posture")
	}
	return columns[0], nil
}

// tryAgain plays the column of an agent whose program has changed; its version is
// looked up again.
func (a *app) tryAgain(ctx context.Context, p prover, t agentTarget) (report.Run, error) {
	column, err := a.oneColumn(ctx, p, t)
	if err != nil {
		return report.Run{}, err
	}
	probes, err := agentProbes(p.selection)
	if err != nil {
		return report.Run{}, err
	}
	return a.playAgent(ctx, p, column, probes)
}
