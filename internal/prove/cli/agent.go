//go:build linux

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/prove/agent"
	"holdfast.dev/holdfast/internal/prove/harness"
	"holdfast.dev/holdfast/internal/prove/probe"
	"holdfast.dev/holdfast/internal/prove/report"
	"holdfast.dev/holdfast/internal/prove/trial"
)

// agentTarget is the agent program to try, and how.
type agentTarget struct {
	name               string
	versions, postures []string
	inside             string
	script             string
	installs           string // directory
}

// agentFlags are the flags for trying a real agent program.
func agentFlags(cmd *cobra.Command, t *agentTarget) {
	f := cmd.Flags()
	f.Var((*command.TextFlag)(&t.name), "agent", "AGENT: try the real program of this agent, driven by a model that follows a script")
	f.StringSliceVar(&t.versions, "agent-version", nil, "VERSION of the agent, or latest; installed from the npm registry when it is not here (repeatable, or V,V)")
	f.StringSliceVar(&t.postures, "posture", nil, "POSTURE: how the agent is set up: default, auto, bypass, hardened or bare, where the agent has them; or all (repeatable, or P,P)")
	f.Var((*command.TextFlag)(&t.inside), "inside", "holdfast: start the agent inside Holdfast")
	f.Var((*command.TextFlag)(&t.script), "script", "FILE: play this script of the model, and print what was seen")
	f.Var((*command.TextFlag)(&t.installs), "agents", "DIR where agents are installed (default: in the state directory)")
	cmd.RegisterFlagCompletionFunc("agent", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return agentNames(), cobra.ShellCompDirectiveNoFileComp
	})
}

func agentNames() []string {
	all, _ := agent.Drivers() // no names if they cannot be read
	var names []string
	for _, d := range all {
		names = append(names, d.Name)
	}
	return names
}

// newTrialWorkerCommand plays a session of `holdfast prove --agent`.
func newTrialWorkerCommand() *cobra.Command {
	return &cobra.Command{
		Use:    trial.WorkerCommand,
		Short:  "Play a session with a real agent, for holdfast prove",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM)
			defer stop()
			return trial.Worker(ctx, os.Stdin, os.Stdout, trial.Catalogue())
		},
	}
}

// proveAgent plays the columns that p selects and reports them.
func (a *app) proveAgent(ctx context.Context, p prover) error {
	probes, err := agentProbes(p.selection)
	if err == nil {
		err = harness.Known(agentRows(), p.except)
	}
	if err != nil {
		return err
	}
	if p.list {
		for _, one := range probes {
			fmt.Fprintf(a.Stdout, "%-24s %-14s %s\n", one.ID, one.Class, one.Title)
		}
		return nil
	}
	columns, err := a.agentColumns(ctx, p)
	if err != nil {
		return err
	}
	if len(columns) > 1 && (p.baseline != "" || p.against != "") {
		return command.Usage(errors.New("a baseline covers one version in one posture"), "name one --agent-version and one --posture")
	}
	if p.agent.script != "" {
		return a.proveScript(ctx, p, columns)
	}
	if len(columns) > 1 && !slices.Contains(report.MatrixFormats, p.format) {
		return command.Usage(fmt.Errorf("format %s cannot show several columns", p.format), "use text, html or json, or one version in one posture")
	}
	p.target = strings.Join(strings.Fields(columns[0].agent+" "+columns[0].Posture+" "+columns[0].Inside), "-")
	return a.playAndReport(p, func() ([]report.Run, error) {
		var runs []report.Run
		for _, c := range columns {
			run, err := a.playAgent(ctx, p, c, probes)
			if err != nil {
				return nil, err
			}
			runs = append(runs, run)
		}
		return runs, nil
	})
}

// printAgents prints columns side by side, and where their verdicts differ.
func (a *app) printAgents(p prover, runs []report.Run) error {
	return a.proveOutput(p, func(w io.Writer, o report.TextOptions) error {
		if err := report.Matrix(w, runs, p.format, o); err != nil || p.format != report.FormatText {
			return err
		}
		return writeFlips(w, trial.Flips(runs))
	})
}

func writeFlips(w io.Writer, flips []trial.Flip) error {
	for i, f := range flips {
		if i == 0 {
			if _, err := fmt.Fprintln(w, "\nverdicts that differ between versions"); err != nil {
				return err
			}
		}
		if _, err := fmt.Fprintf(w, "  %s, %s: %s\n", f.ID, f.Target, f); err != nil {
			return err
		}
	}
	return nil
}

// agentColumn is a column and the program played in it.
type agentColumn struct {
	trial.Column
	agent   string
	spec    agent.Spec
	program agent.Installed
}

// agentColumns finds or installs the programs and returns the columns to play.
func (a *app) agentColumns(ctx context.Context, p prover) ([]agentColumn, error) {
	t := p.agent
	d, err := agent.Named(t.name)
	if err != nil {
		return nil, command.Usage(err, "see what is known and installed with: holdfast agents")
	}
	if t.inside != "" && t.inside != "holdfast" {
		return nil, command.Usage(fmt.Errorf("an agent cannot be tried inside %s", text.Word(t.inside)), "the only choice is: --inside holdfast")
	}
	programs, err := a.agentPrograms(ctx, d, t)
	if err != nil {
		return nil, err
	}
	var out []agentColumn
	for _, program := range programs {
		spec, err := d.At(program.Version)
		if err != nil {
			return nil, err
		}
		for _, posture := range t.posturesOf(spec) {
			if _, err := spec.Posture(posture); err != nil {
				return nil, command.Usage(err, "name one of these with --posture")
			}
			out = append(out, agentColumn{agent: d.Name, spec: spec, program: program,
				Column: trial.Column{Agent: d.Name, Version: program.Version, Posture: posture, Inside: t.inside}})
		}
	}
	return out, nil
}

// posturesOf returns the postures asked for; "all" means those of the version.
// Inside Holdfast the default is bare: the agent's own sandbox is off and it asks
// nothing.
func (t agentTarget) posturesOf(s agent.Spec) []string {
	switch {
	case slices.Contains(t.postures, "all"):
		return s.PostureNames()
	case len(t.postures) > 0:
		return t.postures
	case t.inside != "":
		return []string{"bare"}
	}
	return []string{"default"}
}

// agentPrograms returns the versions asked for, oldest first.
func (a *app) agentPrograms(ctx context.Context, d agent.Driver, t agentTarget) ([]agent.Installed, error) {
	dir := t.installs
	if dir == "" {
		state, err := a.stateDir()
		if err != nil {
			return nil, err
		}
		dir = agent.DefaultDir(state)
	}
	if len(t.versions) == 0 {
		all, err := agent.Find(ctx, d, a.Env, dir)
		if err != nil {
			return nil, err
		}
		switch latest := fmt.Sprintf("holdfast prove --agent %s --agent-version latest", d.Name); {
		case len(all) == 0:
			return nil, command.Usage(fmt.Errorf("%s is not installed here", d.Title), "install it for the trial: "+latest)
		case all[0].Version == "":
			return nil, command.Usage(all[0].Silent, "try again, or install a version for the trial: "+latest)
		}
		return all[:1], nil
	}
	var out []agent.Installed
	for _, v := range t.versions {
		if v == "latest" {
			v = d.Latest
		}
		one, err := agent.Install(ctx, agent.Request{Driver: d, Version: v, Dir: dir})
		if err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	slices.SortStableFunc(out, func(x, y agent.Installed) int { return agent.Compare(x.Version, y.Version) })
	return out, nil
}

// playAgent plays one column.
func (a *app) playAgent(ctx context.Context, p prover, c agentColumn, probes []trial.Probe) (report.Run, error) {
	o, place, err := a.trialOptions(p, c)
	if err != nil {
		return report.Run{}, err
	}
	show := a.progress(c.agent + " " + c.Version + " " + c.Posture)
	o.Probes, o.Progress = probes, func(done, total int, row report.Row) {
		show.row(done, total, probe.Result{Row: probe.Row{ID: row.ID}, Verdict: verdicts[row.Verdict]})
	}
	run, err := trial.Run(ctx, c.Column, o)
	show.end()
	return run, errors.Join(err, place.Close())
}

// trialOptions returns what every trial of a column needs, and its place, which the
// caller must close.
func (a *app) trialOptions(p prover, c agentColumn) (trial.Options, *harness.Place, error) {
	exe, err := os.Executable()
	if err != nil {
		return trial.Options{}, nil, err
	}
	self := ""
	if c.Inside != "" {
		if self, err = a.holdfast(); err != nil {
			return trial.Options{}, nil, err
		}
	}
	place, err := a.provePlace(p)
	if err != nil {
		return trial.Options{}, nil, err
	}
	return trial.Options{
		Spec: c.spec, Program: c.program, Worker: []string{exe, trial.WorkerCommand}, Prober: place.Prober, Self: self, Dir: place.Dir,
		Tool: command.Version(), Host: harness.Host(), Strict: p.strict, Selection: p.selection.String(), Sessions: p.jobs,
	}, place, nil
}

// verdicts maps the names of verdicts in rows to verdicts.
var verdicts = map[string]probe.Verdict{report.Held: probe.Held, report.Escaped: probe.Escaped, report.Unseen: probe.Unseen, report.Inconclusive: probe.Inconclusive}

// agentRows returns all probes as rows, for a selection.
func agentRows() (rows []probe.Row) {
	for _, one := range trial.Catalogue() {
		rows = append(rows, probe.Row{ID: one.ID, Class: one.Class})
	}
	return rows
}

// agentProbes returns the selected probes and the controls.
func agentProbes(s harness.Selection) ([]trial.Probe, error) {
	all := trial.Catalogue()
	chosen, err := s.Rows(agentRows())
	if err != nil {
		return nil, err
	}
	var out []trial.Probe
	for _, one := range all {
		if one.Control || slices.ContainsFunc(chosen, func(r probe.Row) bool { return r.ID == one.ID }) {
			out = append(out, one)
		}
	}
	return out, nil
}
