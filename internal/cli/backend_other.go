//go:build !linux

package cli

import (
	"errors"
	"runtime"
	"time"

	"github.com/spf13/cobra"
	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/policy"
)

// hiddenCommands are for the parts of Holdfast that run on Linux.
func hiddenCommands() []*cobra.Command { return nil }

// linuxCommands are the verbs of Linux alone.
func linuxCommands(*app) []*cobra.Command { return nil }

// run needs a backend.
func (a *app) run(policy.Options, []string, bool, time.Duration) error {
	_, err := newBackend()
	return err
}

// learn needs a backend.
func (a *app) learn(policy.Options, []string, bool, string) error {
	_, err := newBackend()
	return err
}

// reload needs running sessions.
func (a *app) reload(string) error {
	_, err := newBackend()
	return err
}

// newBackend is the backend of this system: there is none.
func newBackend() (boundary.Backend, error) {
	return nil, command.Usage(errors.New("running commands needs Linux, and this is "+runtime.GOOS),
		"run it in a Linux machine or a virtual one")

}
