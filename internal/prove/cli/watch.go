//go:build linux

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/prove/harness"
	"holdfast.dev/holdfast/internal/prove/probe"
	"holdfast.dev/holdfast/internal/prove/report"
	"holdfast.dev/holdfast/internal/prove/targets"
)

// watcher holds the command line of prove watch.
type watcher struct {
	prover
	binaries []string
	baseline string
	policy   string
	every    time.Duration
	quiet    time.Duration
	once     bool
	targets  map[string]probe.Target // by the name of the watched program
	trials   map[string]agentTarget  // likewise, of agents
	agents   []string
}

// newProveWatch returns the command that tests a target again when its program has
// changed.
func newProveWatch(a *app) *cobra.Command {
	var w watcher
	c := &cobra.Command{
		Use:   "watch [flags] [TARGET…]",
		Short: "Test a target again when its program or an agent's changes",
		Long: `Watch the programs of targets and of agents, which update themselves without notice.
When a program has changed and is quiet again, play the rows and compare them with
the baseline, which is the first run if there is none yet. What got weaker, or fails
differently, becomes an alert in a log of its own and in the sinks of your policy.

Symbolic links to a program are watched too, and all files of an npm package. The
kernel reports changes; a timer finds those that it does not report. A program of
--binary is tested if it has the name of a target or is the one of --target-cmd; for
any other only the change is reported. With --agent the program of an agent is tried
in one posture, as prove --agent does. SIGTERM ends it cleanly.`,
		Example: `  holdfast prove watch
  holdfast prove watch codex bwrap --core --baseline baselines/
  holdfast prove watch --agent claude --posture auto
  holdfast prove watch --target-cmd 'mybox -- {}' --once`,
		ValidArgs: targets.Names(),
		RunE: func(c *cobra.Command, names []string) error {
			ctx, stop := command.UntilHangup(c)
			defer stop()
			return proveHint(a.watch(ctx, w, names, c.Flags()))
		},
	}
	commandFlags(c, &w.prover)
	playFlags(c, &w.prover)
	placeFlags(c, &w.prover, 0)
	f := c.Flags()
	f.StringArrayVar(&w.agents, "agent", nil, "AGENT whose installed program is tried (repeatable)")
	f.StringSliceVar(&w.agent.postures, "posture", nil, "POSTURE of agents: default, auto, bypass, hardened or bare")
	f.Var((*command.TextFlag)(&w.agent.inside), "inside", "holdfast: agents are tried inside Holdfast")
	f.StringArrayVar(&w.binaries, "binary", nil, "PATH of a program to watch, or of a directory with one (repeatable)")
	f.Var((*command.TextFlag)(&w.baseline), "baseline", "FILE to compare with, made by the first run; a directory where several programs are watched (default: in the state directory)")
	f.Var((*command.TextFlag)(&w.policy), "policy", "policy FILE that says where alerts go, instead of your own")
	f.DurationVar(&w.every, "every", 15*time.Minute, "check everything this often")
	f.DurationVar(&w.quiet, "quiet", 5*time.Second, "how long a program must not have changed before it is tested")
	f.BoolVar(&w.once, "once", false, "test what changed since the last time, and exit; status 1 when it is weaker")
	return c
}

// watch watches programs until ctx ends.
func (a *app) watch(ctx context.Context, w watcher, names []string, flags *pflag.FlagSet) error {
	if err := w.fits(flags); err != nil {
		return err
	}
	if w.every < time.Second || w.quiet < 0 {
		return command.Usage(errors.New("--every must be at least a second, and --quiet must not be negative"), "holdfast prove watch --every 15m")
	}
	watched, err := a.watchedPrograms(&w, names)
	if err != nil {
		return err
	}
	tried, err := a.watchedAgents(&w)
	if err != nil {
		return err
	}
	watched = append(watched, tried...)
	state, err := a.stateDir()
	if err != nil {
		return err
	}
	alarm, err := a.watchAlarm(w)
	if err != nil {
		return err
	}
	bad := ""
	err = harness.Watch(ctx, harness.WatchOptions{
		Watched: watched, Every: w.every, Quiet: w.quiet, Once: w.once, Files: w.files(filepath.Join(state, "prove"), len(watched), a.Dir),
		Retest: func(ctx context.Context, name string) (report.Run, error) { return a.retest(ctx, w, name) },
		Tell: func(e harness.WatchEvent) error {
			if e.Kind == harness.WatchWeaker || e.Kind == harness.WatchUntested && e.Err != nil {
				bad = e.Kind
			}
			a.tellWatch(e)
			return alarm.Raise(e)
		},
	})
	if err = errors.Join(err, alarm.Close()); err != nil || !w.once {
		return err
	}
	switch bad {
	case harness.WatchWeaker:
		return command.Exit(exitFound)
	case harness.WatchUntested:
		return command.Exit(exitUnplayed)
	}
	return nil
}

// retest plays what is watched under this name.
func (a *app) retest(ctx context.Context, w watcher, name string) (report.Run, error) {
	if t, ok := w.trials[name]; ok {
		return a.tryAgain(ctx, w.prover, t)
	}
	p, t := w.prover, w.targets[name]
	if _, own := t.(targets.Template); !own {
		p.target, p.command = t.Name(), ""
	}
	return a.playOn(ctx, p, t)
}

// watchedPrograms returns the programs to watch, with the target that tests each in
// w.targets.
func (a *app) watchedPrograms(w *watcher, names []string) ([]harness.Watched, error) {
	w.targets = map[string]probe.Target{}
	var out []harness.Watched
	add := func(name, path string, t probe.Target) error {
		if _, twice := w.targets[name]; twice {
			return command.Usage(fmt.Errorf("%s is named twice", name), "watch programs with the same name in commands of their own")
		}
		w.targets[name] = t
		full, err := filepath.Abs(path)
		out = append(out, harness.Watched{Name: name, Path: full, Untested: t == nil})
		return err
	}
	if len(names) == 0 && len(w.binaries) == 0 && w.command == "" && len(w.agents) == 0 {
		names = []string{"holdfast"}
	}
	for _, name := range names {
		p := w.prover
		p.target, p.command = name, ""
		t, err := a.proveTarget(p)
		if err == nil {
			err = addProgram(t, name, add)
		}
		if err != nil {
			return nil, err
		}
	}
	if w.command != "" {
		t, err := a.proveTarget(w.prover)
		if err == nil {
			err = addProgram(t, t.Name(), add)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, path := range w.binaries {
		if slices.ContainsFunc(out, func(x harness.Watched) bool { return x.Path == path }) {
			continue // the program of a target, which is tested
		}
		t, err := targetAt(path)
		if err == nil {
			err = add(filepath.Base(path), path, t)
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// targetAt returns the target whose name a program has; nil if there is none.
func targetAt(path string) (probe.Target, error) {
	name := filepath.Base(path)
	if !slices.Contains(targets.Names(), name) || name == "none" || name == "holdfast" {
		return nil, nil
	}
	return targets.Named(name, targets.Options{Path: path})
}

// addProgram adds the program of a target as it is called: through PATH if it has
// that name there, because links on the way are part of it.
func addProgram(t probe.Target, name string, add func(name, path string, t probe.Target) error) error {
	if one, ok := t.(targets.Template); ok {
		return add(name, one.Words[0], t)
	}
	m, ok := t.(probe.Movable)
	if !ok {
		return command.Usage(fmt.Errorf("the target %s has no program to watch", name), "name another one: "+strings.Join(targets.Names(), ", "))
	}
	path, err := m.Program()
	if err != nil {
		return err
	}
	if called, err := exec.LookPath(name); err == nil && name != "holdfast" {
		path = called
	}
	return add(name, path, t)
}

// files returns where the baselines and what was tested last are kept.
func (w watcher) files(state string, programs int, dir string) harness.WatchFiles {
	f := harness.WatchFiles{State: state, Baseline: func(name string) string {
		return filepath.Join(state, "prove-"+filepath.Base(name)+".json")
	}}
	if w.baseline == "" {
		return f
	}
	at := w.baseline
	if !filepath.IsAbs(at) {
		at = filepath.Join(dir, at)
	}
	info, err := os.Stat(at)
	if programs > 1 || strings.HasSuffix(w.baseline, "/") || err == nil && info.IsDir() {
		f.Baseline = func(name string) string { return filepath.Join(at, "prove-"+filepath.Base(name)+".json") }
	} else {
		f.Baseline = func(string) string { return at }
	}
	return f
}

// watchAlarm opens the log, with the sinks of the user's policy. Without holdfast it
// prints a warning and returns nil.
func (a *app) watchAlarm(w watcher) (*harness.WatchAlarm, error) {
	program, err := a.holdfast()
	if err != nil {
		a.Note(command.Yellow, "warning", "nothing is recorded and no sink is notified: %s", text.Line(err.Error()))
		return nil, nil
	}
	alarm, err := harness.NewWatchAlarm(harness.WatchAlarmOptions{Program: program, Policy: w.policy, Dir: a.Dir, Env: a.Env, Stderr: a.Stderr})
	if errors.Is(err, harness.ErrNoHoldfast) {
		a.Note(command.Yellow, "warning", "nothing is recorded and no sink is notified: %s", text.Line(err.Error()))
		return nil, nil
	}
	return alarm, err
}

// tellWatch prints what happened.
func (a *app) tellWatch(e harness.WatchEvent) {
	line := fmt.Sprintf("%s  %-9s  %s  %s", time.Now().Format(time.DateTime), e.Kind, text.Word(e.Name), text.Word(e.Path))
	if e.Is != "" {
		line += "  " + e.Is[:min(12, len(e.Is))]
	}
	if e.Err != nil {
		line += "  " + text.Line(e.Err.Error())
	}
	colour := command.Grey
	switch e.Kind {
	case harness.WatchWeaker:
		colour = command.Red
	case harness.WatchDifferent, harness.WatchGone, harness.WatchUnsteady, harness.WatchUntested:
		colour = command.Yellow
	}
	fmt.Fprintln(a.Stdout, a.Tint(colour, line))
	switch e.Kind {
	case harness.WatchWeaker, harness.WatchDifferent, harness.WatchBetter:
		report.WriteChanges(a.Stdout, e.Changes, report.FormatText, report.TextOptions{})
	}
}
