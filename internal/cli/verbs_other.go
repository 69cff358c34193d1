//go:build !linux

package cli

import "github.com/spf13/cobra"

// systemCommands are the verbs of Linux alone.
func systemCommands(*app) []*cobra.Command { return nil }
