package cli

import (
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"holdfast.dev/holdfast/internal/prove/harness"
)

// workers are the hidden commands that do a part of the work in a process of their
// own.
func workers() []*cobra.Command {
	return []*cobra.Command{newWorkerCommand(), newMachineCommand(), newTrialWorkerCommand()}
}

// newWorkerCommand returns the command that plays the rows of `holdfast prove`
// that need a network. `holdfast prove` executes it, in a network of its own;
// users need not.
func newWorkerCommand() *cobra.Command {
	return &cobra.Command{
		Use:    harness.WorkerCommand,
		Short:  "Play the probes that need a network, for holdfast prove",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM)
			defer stop()
			return harness.Worker(ctx, os.Stdin, os.Stdout)
		},
	}
}

// newMachineCommand returns the command that plays the rows of `holdfast prove
// --world` on a machine that it has changed for itself. `holdfast prove` executes
// it; users need not.
func newMachineCommand() *cobra.Command {
	return &cobra.Command{
		Use:    harness.MachineCommand,
		Short:  "Play probes on a machine that lacks something, for holdfast prove",
		Hidden: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM)
			defer stop()
			return harness.Machine(ctx, args, os.Stdin, os.Stdout)
		},
	}
}
