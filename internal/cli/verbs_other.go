//go:build !linux

package cli

import (
	"time"

	"github.com/spf13/cobra"
	"holdfast.dev/holdfast/internal/cli/backend"
	"holdfast.dev/holdfast/internal/policy"
)

// hiddenCommands are for the parts of Holdfast that run on Linux.
func hiddenCommands() []*cobra.Command { return nil }

// linuxCommands are the verbs of Linux alone.
func linuxCommands(*app) []*cobra.Command { return nil }

// run needs a backend.
func (a *app) run(policy.Options, []string, bool, time.Duration) error {
	_, err := backend.New()
	return err
}

// learn needs a backend.
func (a *app) learn(policy.Options, []string, bool, string) error {
	_, err := backend.New()
	return err
}

// reload needs running sessions.
func (a *app) reload(string) error {
	_, err := backend.New()
	return err
}
