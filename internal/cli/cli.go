// Package cli is what a person meets: commands, flags, texts, hints and exit
// codes. It is the only package that prints or decides how the program ends.
package cli

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"

	"github.com/spf13/cobra"
	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/sys"
)

// Exit codes of Holdfast itself; docs/exit-codes.md is their contract.
const (
	exitOK            = 0
	exitFailed        = 1   // doctor: the default profile cannot run; run: output was lost
	exitNotProved     = 2   // prove: nothing was proved
	exitBroken        = 124 // run: Holdfast failed after the command had begun
	exitUsage         = 125 // Holdfast could not do what was asked; nothing was started
	exitNotExecutable = 126
	exitNotFound      = 127
)

// app is the world of a command: nothing reads or prints past it.
type app struct{ *command.App }

// Main runs one command line and returns the exit status.
func Main(args []string) int {
	if actAsHook(args) {
		return exitOK
	}
	if most, few := sys.FewProcesses(); few {
		fmt.Fprintf(os.Stderr, "holdfast: error: this user may have %d processes and threads here, which is too few to start\nholdfast: hint: ulimit -u 4096\n", most)
		return exitUsage
	}
	// What a start needs fits into 16 MiB: no collection before that.
	debug.SetGCPercent(400)
	// What the inside can make the supervisor hold is bounded, but not small.
	debug.SetMemoryLimit(256 << 20)
	world, err := command.New("holdfast")
	if err != nil {
		return exitUsage
	}
	world.Status, world.Hint = statusOf, boundary.Exhausted
	a := &app{world}
	root := newRoot(a)
	root.SetArgs(args)
	return a.Report(root.Execute())
}

// Commands is the tree of all verbs, for those who describe it.
func Commands() (*cobra.Command, error) {
	world, err := command.New("holdfast")
	if err != nil {
		return nil, err
	}
	return newRoot(&app{world}), nil
}

// statusOf is the exit status that an error means.
func statusOf(err error) int {
	switch {
	case errors.Is(err, boundary.ErrNotFound):
		return exitNotFound
	case errors.Is(err, boundary.ErrNotExecutable):
		return exitNotExecutable
	case hadBegun(err):
		return exitBroken
	default:
		return exitUsage
	}
}

func newRoot(a *app) *cobra.Command {
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
		Version: command.Version(),
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.AddCommand(newRunCommand(a), newPolicyCommand(a), newGrantCommand(a), newLogCommand(a), newAlertsCommand(a), newHooksCommand(a), newWhyCommand(a), newDoctorCommand(a), newVersionCommand(a))
	root.AddCommand(examinerCommands(a)...)
	root.AddCommand(linuxCommands(a)...)
	root.AddCommand(hiddenCommands()...)
	a.Attach(root)
	return root
}
