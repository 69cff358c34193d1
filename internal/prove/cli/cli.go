package cli

import (
	"os"

	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/internal/floor/command"
)

// The exit codes of prove are those of a test runner.
const (
	exitFound    = 1 // something escaped or was not seen; exposure: something of the level is handed over
	exitUnplayed = 2 // nothing was proved
)

// byHoldfast is the name under which `holdfast prove` starts this program.
const byHoldfast = "holdfast prove"

// app is the environment of a verb.
type app struct{ *command.App }

// Main runs one command line, without the name of the program, and returns the
// exit status.
func Main(args []string) int {
	if status, is := actAsProber(); is {
		return status
	}
	name := "holdfast-prove"
	if os.Args[0] == byHoldfast {
		name = "holdfast"
	}
	world, err := command.New(name)
	if err != nil {
		return exitUnplayed
	}
	world.Status = func(error) int { return exitUnplayed }
	a := &app{world}
	root := newRoot(a)
	root.SetArgs(args)
	cmd, err := root.ExecuteC()
	if cmd != nil && cmd.HasParent() && cmd.Parent().Name() == "model" {
		world.Status = nil // nothing is proved there
	}
	return a.Report(err)
}

// Commands returns the tree of all verbs, for manual pages and completions.
func Commands() (*cobra.Command, error) {
	world, err := command.New("holdfast-prove")
	if err != nil {
		return nil, err
	}
	return newRoot(&app{world}), nil
}

// newRoot returns the command of all verbs: those of prove, which are for Linux,
// and the scripted model.
func newRoot(a *app) *cobra.Command {
	root := newProveCommand(a)
	root.Use = "holdfast-prove"
	if os.Args[0] == byHoldfast {
		root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: byHoldfast}
	}
	root.AddCommand(newModelCommand(a), command.NewVersion(a.App))
	a.Attach(root)
	return root
}
