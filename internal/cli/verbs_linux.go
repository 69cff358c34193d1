package cli

import (
	"github.com/spf13/cobra"
	"holdfast.dev/holdfast/internal/cli/agents"
	"holdfast.dev/holdfast/internal/cli/approvals"
	"holdfast.dev/holdfast/internal/cli/reviews"
	"holdfast.dev/holdfast/internal/cli/runs"
	"holdfast.dev/holdfast/internal/floor/command"
)

// systemCommands are the verbs of this system alone.
func systemCommands(a *command.App) []*cobra.Command {
	return []*cobra.Command{agents.Command(a), agents.MCP(a), approvals.Command(a), reviews.Command(a), runs.Settle()}
}
