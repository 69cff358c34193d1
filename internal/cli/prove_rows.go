//go:build linux

package cli

import (
	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/internal/prove/probe"
)

func newProveRows(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "rows",
		Short: "Print all rows as JSON, for a runner of your own",
		Long: `Print all rows of the escape matrix as JSON: what each prepares, tries and looks at
afterwards. docs/formats/rows.md says how another program plays them.`,
		Example: `  holdfast prove rows >rows.json`,
		Args:    cobra.NoArgs,
		RunE:    func(*cobra.Command, []string) error { return probe.WriteRows(a.Stdout) },
	}
}
