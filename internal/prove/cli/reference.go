//go:build linux

package cli

import (
	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/prove/exposure"
	"holdfast.dev/holdfast/internal/prove/probe"
	"holdfast.dev/holdfast/internal/prove/trial"
)

// newReferenceCommand prints the tables of the examiner.
func newReferenceCommand(a *app) *cobra.Command {
	return command.NewReference(a.App, "holdfast prove", []command.Topic{
		{Name: "rows", About: "the rows of the escape matrix", Text: command.Always(probe.Reference)},
		{Name: "agents", About: "what the scripted model asks an agent to do", Text: command.Always(trial.Reference)},
		{Name: "exposure", About: "what prove exposure looks for", Text: command.Always(exposure.Reference)},
	})
}
