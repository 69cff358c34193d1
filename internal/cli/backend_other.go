//go:build !linux

package cli

import (
	"errors"
	"runtime"

	"holdfast.dev/holdfast/internal/sandbox"
)

// newBackend is the backend of this system: there is none.
func newBackend() (sandbox.Backend, error) {
	return nil, &usageError{errors.New("running commands needs Linux, and this is " + runtime.GOOS),
		"run it in a Linux machine or a virtual one"}
}
