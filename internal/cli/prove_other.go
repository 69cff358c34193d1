//go:build !unix

package cli

import (
	"errors"

	"holdfast.dev/holdfast/internal/floor/command"
)

// examine has no program to become: rows are played on Linux.
func examine(a *command.App, _ []string) error {
	a.Report(command.Usage(errors.New("the escape matrix needs Linux"), "run it in a Linux machine or a virtual one"))
	return command.Exit(exitNotProved)
}
