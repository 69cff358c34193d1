//go:build unix

package cli

import (
	"os"
	"syscall"

	"holdfast.dev/holdfast/internal/floor/command"
)

// examine becomes the examiner. It returns only where that is not to be had.
func examine(a *command.App, args []string) error {
	path, err := command.Beside(command.Examiner)
	if err == nil {
		err = syscall.Exec(path, append([]string{"holdfast prove"}, args...), os.Environ())
	}
	a.Report(err)
	return command.Exit(exitNotProved)
}
