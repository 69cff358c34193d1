//go:build !linux

package backend

import (
	"errors"
	"runtime"

	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/policy"
)

// New returns an error: this system has no backend.
func New() (boundary.Backend, error) {
	return nil, command.Usage(errors.New("running commands needs Linux, and this is "+runtime.GOOS),
		"run it in a Linux machine or a virtual one")
}

// SystemView is what every boundary shows of the system.
func SystemView() []policy.PathRule { return nil }
