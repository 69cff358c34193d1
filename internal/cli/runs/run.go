// Package runs is holdfast run: it makes a run of a command line ([New]), runs it on
// this terminal to its end ([Run]) and returns the exit status for an error ([Status]).
// [Command] is the verb itself; mcp run and policy learn run commands the same way.
// What happens in a run is internal/run's.
package runs

import (
	"errors"
	"time"

	"github.com/spf13/cobra"
	"holdfast.dev/holdfast/internal/cli/plans"
	"holdfast.dev/holdfast/internal/floor/command"
)

// app is the world of these verbs.
type app struct{ *command.App }

// Command makes the verb holdfast run.
func Command(world *command.App) *cobra.Command {
	a := &app{world}
	var flags plans.Flags
	var verbose bool
	var grace time.Duration
	cmd := &cobra.Command{
		Use:   "run [flags] [--] CMD [ARG...]",
		Short: "Run a command, and everything it starts, inside the boundary",
		Long: `Run CMD inside the boundary. It may write to the workspace (default: the repository that you
are in), but for what your host would execute from there, and read system directories and
toolchains. Home, credentials and other processes are absent, and of the network all but what is
allowed. The exit status is CMD's; 125: nothing was started; 124: holdfast failed after that.`,
		Example: `  holdfast run -- npm test
  holdfast run --allow packages.example.org -- npm ci
  holdfast run --ro ~/data --rw ~/out --env API_URL=http://localhost -- ./job
  holdfast run --publish 3000 -- npm run dev
  holdfast run claude`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return command.Usage(errors.New("no command given"), "type 'holdfast run -- CMD', for example 'holdfast run -- bash'")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if grace <= 0 {
				return command.Usage(errors.New("--grace must be a duration above 0"), "for example --grace 30s")
			}
			options, err := flags.Options(a.App)
			if err != nil {
				return err
			}
			if flags.Preset == "" {
				options.Preset = plans.Preset(a.App, options, args[0])
			}
			return a.run(options, args, verbose, grace)
		},
	}
	cmd.Flags().SetInterspersed(false)
	flags.Bind(cmd)
	plans.Complete(cmd)
	cmd.Flags().DurationVar(&grace, "grace", 10*time.Second, "end the run `DURATION` after SIGTERM was passed on to it")
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "show what the boundary is made of")
	return cmd
}
