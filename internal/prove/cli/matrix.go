//go:build linux

package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/prove/harness"
	"holdfast.dev/holdfast/internal/prove/report"
	"holdfast.dev/holdfast/internal/prove/targets"
)

func newProveMatrix(a *app) *cobra.Command {
	var p prover
	var with []string
	cmd := &cobra.Command{
		Use:   "matrix [TARGET...]",
		Short: "Run the escape matrix against several targets, and show them side by side",
		Long: `Play the rows against each target, one after the other, and print the verdicts side
by side, with versions and flags. With no target named it is holdfast, none and
those peers that are installed here. --with adds the JSON of runs that were made
elsewhere, with: holdfast prove --target TARGET --format json -o FILE`,
		Example: `  holdfast prove matrix holdfast bwrap --core
  holdfast prove matrix --format markdown -o matrix.md
  holdfast prove matrix --with docker.json holdfast`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := command.UntilHangup(cmd)
			defer stop()
			return proveHint(a.matrix(ctx, p, args, with))
		},
		Annotations: map[string]string{command.OwnArguments: ""},
	}
	playFlags(cmd, &p)
	placeFlags(cmd, &p, 0)
	formatFlag(cmd, &p, report.MatrixFormats)
	cmd.Flags().VarP((*command.TextFlag)(&p.output), "output", "o", "FILE to write the matrix to")
	cmd.Flags().StringArrayVar(&with, "with", nil, "FILE: the JSON of a run to show beside the others (repeatable)")
	return cmd
}

func (a *app) matrix(ctx context.Context, p prover, names, with []string) error {
	if err := checkWritable(p.output); err != nil {
		return err
	}
	var runs []report.Run
	for _, path := range with {
		run, err := readRun(path)
		if err != nil {
			return err
		}
		runs = append(runs, run)
	}
	all := len(names) == 0 && len(with) == 0
	if all {
		names = targets.Names()
	}
	for _, name := range names {
		p.target = name
		run, err := a.play(ctx, p)
		if all && name != "holdfast" && (errors.Is(err, targets.ErrNotHere) || errors.Is(err, harness.ErrNothingRan) || errors.As(err, new(*command.UsageError))) {
			a.Note(command.Yellow, "note", "%s is left out: %v", name, err)
			continue
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		runs = append(runs, run)
	}
	return a.proveOutput(p, func(w io.Writer, o report.TextOptions) error {
		return report.Matrix(w, runs, p.format, o)
	})
}
