//go:build !linux

package policies

import (
	"holdfast.dev/holdfast/internal/cli/backend"
	"holdfast.dev/holdfast/internal/policy"
)

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
