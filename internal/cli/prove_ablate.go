//go:build linux

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/internal/harness"
	"holdfast.dev/holdfast/internal/probe"
	"holdfast.dev/holdfast/internal/report"
)

func newProveAblate(a *app) *cobra.Command {
	var p prover
	var o harness.Ablation
	var sources string
	cmd := &cobra.Command{
		Use:   "ablate [CONTROL...]",
		Short: "Switch one control off after the other, and see which rows escape then",
		Long: `Make the kill matrix: for each control of the boundary, play the rows that depend on
it with that control switched off. They must escape, or they prove nothing of it. A
control that no row needs is a finding, and so, with --all, is a row that no control
holds.

Holdfast itself has no switch for its controls. What is run here is another build of
it, made from the sources with the Go toolchain, or named with --ablated.

The exit status is 1 when there is a finding.`,
		Example: `  holdfast prove ablate
  holdfast prove ablate seccomp landlock
  holdfast prove ablate --all --format markdown -o kill-matrix.md`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := untilHangup(cmd)
			defer stop()
			o.Controls = args
			return proveHint(a.ablate(ctx, p, o, sources))
		},
		Annotations: map[string]string{ownArguments: ""},
	}
	f := cmd.Flags()
	f.Var((*textFlag)(&o.Program), "ablated", "FILE: the build whose controls can be switched off")
	f.Var((*textFlag)(&sources), "sources", "DIR with the sources that it is built from (default: the working directory)")
	f.BoolVar(&o.Whole, "all", false, "play every row without each control, not only those that are known to depend on it")
	formatFlag(cmd, &p, report.KillFormats)
	f.VarP((*textFlag)(&p.output), "output", "o", "FILE to write the matrix to")
	placeFlags(cmd, &p, 3)
	return cmd
}

func (a *app) ablate(ctx context.Context, p prover, o harness.Ablation, sources string) (err error) {
	if err := writable(p.output); err != nil {
		return err
	}
	place, err := a.provePlace(p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, place.Close()) }()
	if o.Holdfast, err = os.Executable(); err != nil {
		return err
	}
	if o.Program == "" {
		if sources == "" {
			sources = a.Dir
		}
		o.Program = filepath.Join(place.Dir, "holdfast-ablated")
		if err := harness.BuildAblated(ctx, sources, o.Program); err != nil {
			return &usageError{err, "run it in the sources of Holdfast, or name a build with --ablated"}
		}
	}
	show := a.progress("ablate")
	o.Runner = probe.Runner{Prober: place.Prober, Dir: place.Dir, Workers: p.jobs}
	o.Tool, o.Progress = buildVersion(), show.control
	kill, err := harness.Ablate(ctx, o)
	show.end()
	if err != nil {
		return err
	}
	err = a.proveOutput(p, func(w io.Writer, t report.TextOptions) error {
		return report.WriteKill(w, kill, p.format, t)
	})
	if found := len(kill.Needless()) > 0 || o.Whole && len(kill.Unheld()) > 0; err == nil && found {
		err = &exitError{exitUnheld}
	}
	return err
}

// control shows which control is off.
func (p *progress) control(done, total int, name string) {
	if f, ok := p.terminal(); ok {
		p.shown = true
		fmt.Fprintf(f, "\r\x1b[K%s: %d of %d controls; without %s", p.target, done, total, name)
	}
}
