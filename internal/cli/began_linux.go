package cli

import (
	"errors"

	"holdfast.dev/holdfast/internal/task"
)

// hadBegun reports whether an error came after the command had begun.
func hadBegun(err error) bool {
	var ran *task.RanError
	return errors.As(err, &ran)
}
