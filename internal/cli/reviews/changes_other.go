//go:build !linux

package reviews

import (
	"context"

	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/record/incident"
)

// Changes lists nothing: here no run is made, so that no changes are kept.
func Changes(context.Context, *command.App, string) (*incident.Changes, error) { return nil, nil }
