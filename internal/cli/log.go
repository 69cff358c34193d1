package cli

import (
	"github.com/spf13/cobra"
)

func newLogCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "log",
		Short: "Look at the record of runs: what was started, touched, reached and refused",
		Long: `Every run is recorded, outside the boundary, in a log that cannot be altered
unnoticed. SESSION is the name of a run, or the beginning of it; without one the
newest is meant. Text from inside is shown escaped; --json leaves it as data.`,
		Example: `  holdfast log show
  holdfast log query 'verdict == "denied"'
  holdfast log files --written
  holdfast log verify --all`,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newLogList(a), newLogShow(a), newLogReport(a), newLogFollow(a), newLogQuery(a), newLogTree(a), newLogFiles(a), newLogNet(a),
		newLogVerify(a), newLogBaseline(a), newLogExport(a), newLogPrune(a), newLogKey(a))
	return c
}
