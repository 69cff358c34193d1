//go:build !linux

package plans

import (
	"github.com/spf13/cobra"
	"holdfast.dev/holdfast/internal/policy"
)

// Protect finds nothing where no command runs.
func Protect(*cobra.Command, *policy.Plan) ([]policy.Reserved, error) { return nil, nil }
