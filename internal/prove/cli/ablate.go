//go:build linux

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/prove/harness"
	"holdfast.dev/holdfast/internal/prove/probe"
	"holdfast.dev/holdfast/internal/prove/report"
)

// ablater holds the command line of prove ablate.
type ablater struct {
	prover
	harness.Ablation
	sources string
	with    []string // files of runs to merge in
}

func newProveAblate(a *app) *cobra.Command {
	var o ablater
	cmd := &cobra.Command{
		Use:   "ablate [CONTROL...]",
		Short: "Switch off one control at a time, and show which rows escape",
		Long: `Make the kill matrix: for each control of the boundary, play the rows that depend on
it with that control switched off. They must escape, or they prove nothing about it. A
control that no row needs is a finding, and so is one whose rows proved nothing and,
with --all, a row that no control holds.

CONTROL is the name of a control, or a pattern such as 'seccomp: *'; --list prints
them. Some controls show an effect only as root, others only as an ordinary user:
--with adds the JSON of the other run, which the same build must have made.

Holdfast itself has no switch for its controls. This command runs another build of
it, made from the sources with the Go toolchain, or named with --ablated.

The exit status is 1 when there is a finding.`,
		Example: `  holdfast prove ablate --list
  holdfast prove ablate seccomp 'protected paths'
  holdfast prove ablate --format json -o user.json
  holdfast prove ablate --with user.json --format markdown -o kill-matrix.md`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := command.UntilHangup(cmd)
			defer stop()
			o.Controls = args
			if err := o.fits(cmd.Flags()); err != nil {
				return err
			}
			if o.list {
				return ablateHint(a.listControls(args))
			}
			return ablateHint(a.ablate(ctx, o))
		},
		ValidArgsFunction: completeControls,
		Annotations:       map[string]string{command.OwnArguments: ""},
	}
	f := cmd.Flags()
	f.Var((*command.TextFlag)(&o.Program), "ablated", "FILE: the build whose controls can be switched off")
	f.Var((*command.TextFlag)(&o.sources), "sources", "DIR with the sources that it is built from (default: the working directory)")
	f.BoolVar(&o.Whole, "all", false, "play every row without each control, not only those that are known to depend on it")
	f.StringArrayVar(&o.with, "with", nil, "FILE: the JSON of a run as another user that is merged in (repeatable)")
	f.BoolVar(&o.list, "list", false, "print the controls that would be switched off, and play none")
	formatFlag(cmd, &o.prover, report.KillFormats)
	f.VarP((*command.TextFlag)(&o.output), "output", "o", "FILE to write the matrix to")
	placeFlags(cmd, &o.prover, 3)
	return cmd
}

func completeControls(*cobra.Command, []string, string) (names []string, _ cobra.ShellCompDirective) {
	for _, c := range harness.Controls() {
		names = append(names, c.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// fits reports a flag of prove ablate that has no meaning with the others.
func (o ablater) fits(flags *pflag.FlagSet) error {
	return checkFlags(flags, []misfit{
		{[]string{"ablated", "sources", "all", "with", "format", "output", "jobs", "dir", "prober"}, o.list, "is for a matrix, and --list plays nothing", "leave out --list, or the other"},
		{[]string{"sources"}, o.Program != "", "names the sources of a build, and --ablated names a finished one", "leave one of them out"},
	})
}

// ablateHint adds the next command to type to an error of prove ablate.
func ablateHint(err error) error {
	var unknown *harness.UnknownControlError
	switch {
	case errors.As(err, &unknown):
		hint := "see the controls with: holdfast prove ablate --list"
		if len(unknown.Near) > 0 {
			hint = "did you mean " + strings.Join(quotedAll(unknown.Near), ", ") + "? " + hint
		}
		return command.Usage(err, hint)
	case errors.Is(err, context.Canceled):
		return command.Usage(errors.New("interrupted before all controls were switched off, so nothing is reported"), "name fewer controls: holdfast prove ablate CONTROL")
	}
	return proveHint(err)
}

func quotedAll(names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = "'" + name + "'"
	}
	return out
}

// listControls prints the controls that would be switched off.
func (a *app) listControls(names []string) error {
	controls, err := harness.ControlsNamed(names)
	if err != nil {
		return err
	}
	t := tabwriter.NewWriter(a.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "CONTROL\tSWITCHES\tAS\tROWS OR REASON")
	for _, c := range controls {
		rows := strings.Join(c.Rows, " ")
		if c.Network && rows != "" {
			rows += " (in a network)"
		}
		var as []string
		for _, who := range []struct {
			name string
			may  bool
		}{{"root", c.Root}, {"user", c.User}} {
			if who.may {
				as = append(as, who.name)
			}
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", c.Name, cmp.Or(strings.Join(c.Omit, "+"), "-"), cmp.Or(strings.Join(as, ","), "-"), cmp.Or(rows, c.Why))
	}
	return t.Flush()
}

func readKill(path string) (report.Kill, error) {
	f, err := os.Open(path)
	if err != nil {
		return report.Kill{}, err
	}
	defer f.Close()
	kill, err := report.ReadKill(f)
	if err != nil {
		return report.Kill{}, fmt.Errorf("%s: %w", path, err)
	}
	return kill, nil
}

// readKills reads the runs to merge into one of this build.
func readKills(paths []string) ([]report.Kill, error) {
	var all []report.Kill
	for _, path := range paths {
		kill, err := readKill(path)
		if err != nil {
			return nil, err
		}
		if _, err := (report.Kill{Tool: "holdfast", Version: command.Version()}).Merge(kill); err != nil {
			return nil, command.Usage(fmt.Errorf("%s: %w", path, err), "make it again with this program, as the other user")
		}
		all = append(all, kill)
	}
	return all, nil
}

func (a *app) ablate(ctx context.Context, o ablater) (err error) {
	if err := checkWritable(o.output); err != nil {
		return err
	}
	if _, err := harness.ControlsNamed(o.Controls); err != nil {
		return err // before a build is made
	}
	others, err := readKills(o.with)
	if err != nil {
		return err
	}
	place, err := a.provePlace(o.prover)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, place.Close()) }()
	if err := a.ablatedProgram(ctx, &o, place); err != nil {
		return err
	}
	own, err := os.Executable()
	if err != nil {
		return err
	}
	pool := harness.NewPool([]string{own, harness.WorkerCommand}, place.Dir, place.Prober, o.jobs)
	defer func() { err = errors.Join(pool.Close(), err) }()
	show := a.progress("ablate")
	o.Runner = probe.Runner{Prober: place.Prober, Dir: place.Dir, Workers: o.jobs, Networked: pool.Play}
	o.Tool, o.Progress = command.Version(), show.control
	kill, err := harness.Ablate(ctx, o.Ablation)
	show.end()
	if err != nil {
		return err
	}
	for _, other := range others {
		if kill, err = kill.Merge(other); err != nil {
			return err
		}
	}
	err = a.proveOutput(o.prover, func(w io.Writer, t report.TextOptions) error {
		return report.WriteKill(w, kill, o.format, t)
	})
	if found := len(kill.Needless())+len(kill.Unknown()) > 0 || o.Whole && len(kill.Unheld()) > 0; err == nil && found {
		err = command.Exit(exitFound)
	}
	return err
}

// ablatedProgram finds Holdfast, and if no program is named, builds one whose
// controls can be switched off.
func (a *app) ablatedProgram(ctx context.Context, o *ablater, place *harness.Place) (err error) {
	if o.Holdfast, err = a.holdfast(); err != nil || o.Program != "" {
		return err
	}
	o.Program = filepath.Join(place.Dir, "holdfast-ablated")
	if err := harness.BuildAblated(ctx, cmp.Or(o.sources, a.Dir), o.Program); err != nil {
		return command.Usage(err, "run it in the sources of Holdfast, or name a build with --ablated")
	}
	return nil
}

// control shows which control is off.
func (p *progress) control(done, total int, name string) {
	if f, ok := p.terminal(); ok {
		p.shown = true
		fmt.Fprintf(f, "\r\x1b[K%s: %d of %d controls; without %s", p.target, done, total, name)
	}
}
