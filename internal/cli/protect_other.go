//go:build !linux

package cli

import (
	"github.com/spf13/cobra"
	"holdfast.dev/holdfast/internal/policy"
)

// protect finds nothing where no command runs.
func protect(*cobra.Command, *policy.Plan) ([]policy.Reserved, error) { return nil, nil }
