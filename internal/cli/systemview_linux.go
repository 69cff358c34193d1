package cli

import (
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/sandbox/native"
)

// systemView is what every boundary shows of the system.
func systemView() []policy.PathRule { return native.SystemView() }
