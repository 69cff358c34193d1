package cli

import (
	"github.com/spf13/cobra"
	"holdfast.dev/holdfast/internal/cli/approvals"
	"holdfast.dev/holdfast/internal/cli/reviews"
	"holdfast.dev/holdfast/internal/cli/runs"
)

// systemCommands are the verbs of this system alone.
func systemCommands(a *app) []*cobra.Command {
	return []*cobra.Command{newAgentsCommand(a.App), newMCPCommand(a.App), approvals.Command(a.App), reviews.Command(a.App), runs.Settle()}
}
