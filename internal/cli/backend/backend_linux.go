package backend

import (
	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/boundary/native"
	"holdfast.dev/holdfast/internal/policy"
)

// New is the backend of this system.
func New() (boundary.Backend, error) { return &native.Backend{}, nil }

// SystemView is what every boundary shows of the system.
func SystemView() []policy.PathRule { return native.SystemView() }
