package cli

import (
	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/boundary/native"
)

// newBackend is the backend of this system.
func newBackend() (boundary.Backend, error) { return &native.Backend{}, nil }
