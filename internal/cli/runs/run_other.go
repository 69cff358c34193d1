//go:build !linux

package runs

import (
	"time"

	"holdfast.dev/holdfast/internal/cli/backend"
	"holdfast.dev/holdfast/internal/policy"
)

// run needs a backend.
func (a *app) run(policy.Options, []string, bool, time.Duration) error {
	_, err := backend.New()
	return err
}
