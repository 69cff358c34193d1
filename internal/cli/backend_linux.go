package cli

import (
	"holdfast.dev/holdfast/internal/sandbox"
	"holdfast.dev/holdfast/internal/sandbox/native"
)

// newBackend is the backend of this system.
func newBackend() (sandbox.Backend, error) { return &native.Backend{}, nil }
