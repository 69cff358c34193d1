// Package cli is what a person meets: commands, flags, texts, hints and exit codes.
// [Main] is the way in. It assembles the verbs, each a package below this one: runs,
// policies, references, grants, logs (with stories, baselines, incidents), alerts, hooks, doctor,
// and on Linux agents, approvals and reviews. They share plans (flags and the plan they
// make), archive (which record), lines (an event in a line), words (how things are
// shown) and screen (the terminal). Only it and they print or decide how the program
// ends; what a verb does, the rooms beside cli do.
package cli

import (
	"runtime/debug"

	"github.com/spf13/cobra"
	"holdfast.dev/holdfast/internal/cli/alerts"
	"holdfast.dev/holdfast/internal/cli/doctor"
	"holdfast.dev/holdfast/internal/cli/grants"
	"holdfast.dev/holdfast/internal/cli/hooks"
	"holdfast.dev/holdfast/internal/cli/logs"
	"holdfast.dev/holdfast/internal/cli/policies"
	"holdfast.dev/holdfast/internal/cli/references"
	"holdfast.dev/holdfast/internal/cli/runs"
	"holdfast.dev/holdfast/internal/floor/command"
)

// exitNotProved is the status of prove when nothing was proved
// (docs/formats/exit-codes.md).
const exitNotProved = 2

// Main runs one command line and returns the exit status.
func Main(args []string) int {
	if hooks.Act(args) {
		return command.ExitOK
	}
	// What a start needs fits into 16 MiB: no collection before that.
	debug.SetGCPercent(400)
	// What the inside can make the supervisor hold is bounded, but not small.
	debug.SetMemoryLimit(256 << 20)
	a, err := command.New("holdfast")
	if err != nil {
		return command.ExitUsage
	}
	a.Status, a.Hint = runs.Status, runs.Hint
	root := newRoot(a)
	root.SetArgs(args)
	return a.Report(root.Execute())
}

// Commands returns the tree of all verbs, for manual pages and completions.
func Commands() (*cobra.Command, error) {
	a, err := command.New("holdfast")
	if err != nil {
		return nil, err
	}
	return newRoot(a), nil
}

func newRoot(a *command.App) *cobra.Command {
	root := &cobra.Command{
		Use:   "holdfast",
		Short: "Run AI coding agents inside a boundary that holds",
		Long: `Holdfast runs a command, and everything it starts, inside a boundary that
holds when the command is hostile: no home, no credentials, no network but what
you name, no process of yours, and nothing in the workspace that you would later
execute.`,
		Example: `  holdfast run -- npm test
  holdfast run --ro ~/data -- python3 train.py
  holdfast why ~/.ssh/id_ed25519
  holdfast doctor`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.AddCommand(runs.Command(a), policies.Command(a), policies.Why(a), grants.Command(a), logs.Command(a), alerts.Command(a),
		hooks.Command(a), doctor.Command(a), references.Command(a), command.NewVersion(a))
	root.AddCommand(examinerCommands(a)...)
	root.AddCommand(systemCommands(a)...)
	a.Attach(root)
	return root
}
