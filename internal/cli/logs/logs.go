// Package logs is holdfast log: list, query, follow, verify, export and prune the
// records of runs, and the keys that sign them. [Command] is the way in; show,
// baseline and report have packages of their own below this one. What a record is, and
// whether it is whole, is record/audit's to say.
package logs

import (
	"github.com/spf13/cobra"
	"holdfast.dev/holdfast/internal/cli/logs/baselines"
	"holdfast.dev/holdfast/internal/cli/logs/incidents"
	"holdfast.dev/holdfast/internal/cli/logs/stories"
	"holdfast.dev/holdfast/internal/floor/command"
)

// app is the world of these verbs.
type app struct{ *command.App }

// Command makes the verb holdfast log.
func Command(world *command.App) *cobra.Command {
	a := &app{world}
	c := &cobra.Command{
		Use:   "log",
		Short: "Look at the record of runs: what was started, touched, reached and refused",
		Long: `Every run is recorded, outside the boundary, in a log that cannot be altered
unnoticed. SESSION is the name of a run, or the beginning of it; the default
is the newest. Text from inside is shown escaped; --json leaves it as data.`,
		Example: `  holdfast log show
  holdfast log query 'verdict == "denied"'
  holdfast log files --written
  holdfast log verify --all`,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newLogList(a), stories.Show(a.App), incidents.Command(a.App), newLogFollow(a), newLogQuery(a), stories.Tree(a.App), stories.Files(a.App), stories.Net(a.App),
		newLogVerify(a), baselines.Command(a.App), newLogExport(a), newLogPrune(a), newLogKey(a))
	return c
}
