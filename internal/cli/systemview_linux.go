package cli

import (
	"holdfast.dev/holdfast/internal/boundary/native"
	"holdfast.dev/holdfast/internal/policy"
)

// systemView is what every boundary shows of the system.
func systemView() []policy.PathRule { return native.SystemView() }
