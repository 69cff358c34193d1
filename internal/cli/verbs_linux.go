package cli

import (
	"github.com/spf13/cobra"
	"holdfast.dev/holdfast/internal/cli/agents"
	"holdfast.dev/holdfast/internal/cli/approvals"
	"holdfast.dev/holdfast/internal/cli/reviews"
	"holdfast.dev/holdfast/internal/cli/runs"
	"holdfast.dev/holdfast/internal/floor/command"
)

// systemVerbs are those of this system alone.
func systemVerbs() []verb {
	return []verb{
		{"agents", agents.Command}, {"mcp", agents.MCP}, {"approve", approvals.Command}, {"review", reviews.Command},
		{"settle", func(*command.App) *cobra.Command { return runs.Settle() }},
	}
}
