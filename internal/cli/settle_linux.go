package cli

import (
	"context"

	"github.com/spf13/cobra"
	"holdfast.dev/holdfast/internal/cli/approvals"
	"holdfast.dev/holdfast/internal/cli/reviews"
	"holdfast.dev/holdfast/internal/run"
)

// hiddenCommands are for the parts of Holdfast, not for people.
func hiddenCommands() []*cobra.Command {
	return []*cobra.Command{newSettleCommand()}
}

// linuxCommands are the verbs of this system alone.
func linuxCommands(a *app) []*cobra.Command {
	return []*cobra.Command{newAgentsCommand(a.App), newMCPCommand(a.App), approvals.Command(a.App), reviews.Command(a.App)}
}

// newSettleCommand finishes a session whose supervisor was killed. The janitor
// of that session executes it; a person has no need to.
func newSettleCommand() *cobra.Command {
	return &cobra.Command{
		Use:    run.SettleCommand + " DIR",
		Short:  "Finish a session whose supervisor was killed",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			_, err := run.Settle(context.Background(), args[0])
			return err
		},
	}
}
