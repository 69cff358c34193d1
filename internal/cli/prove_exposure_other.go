//go:build !linux

package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/internal/prove/exposure"
)

// exposure is only for Linux so far.
func (a *app) exposure(*cobra.Command, exposureFlags) (exposure.Report, error) {
	return exposure.Report{}, errors.New("holdfast prove exposure works on Linux only")
}
