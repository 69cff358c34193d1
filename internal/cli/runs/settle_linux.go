package runs

import (
	"context"

	"github.com/spf13/cobra"
	"holdfast.dev/holdfast/internal/run"
)

// Settle makes the hidden verb that finishes a session whose supervisor was killed.
// A process of that session executes it; a person has no need to.
func Settle() *cobra.Command {
	return &cobra.Command{
		Use:    run.SettleCommand + " DIR",
		Short:  "Finish a session whose supervisor was killed",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return run.Settle(context.Background(), args[0])
		},
	}
}
