//go:build !linux

package cli

import (
	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/internal/floor/command"
)

// systemCommands are the verbs of Linux alone.
func systemCommands(*command.App) []*cobra.Command { return nil }
