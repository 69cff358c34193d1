//go:build !linux

package cli

import (
	"context"

	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/record/incident"
)

// Here no run is made, so that no rows are played and no changes are kept.

func matrixRows(context.Context) ([]incident.Row, error) { return nil, nil }

func executesHere() func(string) string { return nil }

func changesOf(context.Context, *command.App, string) (*incident.Changes, error) { return nil, nil }
