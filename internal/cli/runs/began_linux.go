package runs

import (
	"errors"

	"holdfast.dev/holdfast/internal/run"
)

// hadBegun reports whether an error came after the command had begun.
func hadBegun(err error) bool {
	var ran *run.RanError
	return errors.As(err, &ran)
}
