package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/internal/floor/command"
)

func newVersionCommand(a *command.App) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(a.Stdout, "holdfast", command.Version())
			return err
		},
	}
}
