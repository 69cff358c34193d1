//go:build !linux

package cli

import (
	"errors"
	"runtime"

	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/internal/floor/command"
)

// newProveCommand has nothing to play here: rows are about the Linux kernel.
func newProveCommand(*app) *cobra.Command {
	return &cobra.Command{
		Short: "Run the escape matrix against Holdfast, or against another sandbox",
		RunE: func(*cobra.Command, []string) error {
			return command.Usage(errors.New("the escape matrix needs Linux, and this is "+runtime.GOOS), "run it in a Linux machine or a virtual one")
		},
	}
}

func actAsProber() (status int, is bool) { return 0, false }
