package runs

import (
	"errors"

	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/floor/command"
)

// Exit codes of a run other than those of its command; docs/formats/exit-codes.md is
// their contract.
const (
	exitBroken        = 124 // Holdfast failed after the command had begun
	exitNotExecutable = 126
	exitNotFound      = 127
)

// Status is the exit status that an error means.
func Status(err error) int {
	switch {
	case errors.Is(err, boundary.ErrNotFound):
		return exitNotFound
	case errors.Is(err, boundary.ErrNotExecutable):
		return exitNotExecutable
	case hadBegun(err):
		return exitBroken
	default:
		return command.ExitUsage
	}
}

// Hint is the next command to type after an error that names none; "" for none.
func Hint(err error) string { return boundary.Exhausted(err) }
