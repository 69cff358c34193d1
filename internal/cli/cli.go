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
	"slices"

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
	root := newRoot(a, args)
	root.SetArgs(args)
	return a.Report(root.Execute())
}

// Commands returns the tree of all verbs, for manual pages and completions.
func Commands() (*cobra.Command, error) {
	a, err := command.New("holdfast")
	if err != nil {
		return nil, err
	}
	return newRoot(a, nil), nil
}

// verb is a command of the program.
type verb struct {
	name string
	make func(*command.App) *cobra.Command
}

func verbs() []verb {
	return slices.Concat([]verb{
		{"run", runs.Command}, {"policy", policies.Command}, {"why", policies.Why}, {"grant", grants.Command},
		{"log", logs.Command}, {"alerts", alerts.Command}, {"hooks", hooks.Command}, {"doctor", doctor.Command},
		{"reference", references.Command}, {"version", command.NewVersion},
	}, examinerVerbs(), systemVerbs())
}

// newRoot returns the command line with all verbs, or with the one that args name:
// making the others takes longer than half a millisecond of each start.
func newRoot(a *command.App, args []string) *cobra.Command {
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
	needed := verbs()
	if i := slices.IndexFunc(needed, func(v verb) bool { return len(args) > 0 && v.name == args[0] }); i >= 0 {
		needed = needed[i : i+1]
	}
	for _, v := range needed {
		root.AddCommand(v.make(a))
	}
	a.Attach(root)
	return root
}
