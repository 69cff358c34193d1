package policies

import (
	"errors"

	"github.com/spf13/cobra"
	"holdfast.dev/holdfast/internal/cli/plans"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/policy"
)

func newPolicyLearn(a *app) *cobra.Command {
	var flags plans.Flags
	var through bool
	var to string
	c := &cobra.Command{
		Use:   "learn [flags] [--] CMD [ARG...]",
		Short: "Run a command and propose the network rules that it needs",
		Long: `Run CMD inside the boundary, note which hosts, methods and paths it asks for,
and write them as a policy. Names are answered and requests read, but nothing
leaves that no rule allows: a program that needs the answers stops at the first.
With --open what it asks for is passed on, to public addresses only. TLS is
terminated to see requests; what the command prints goes to standard error.`,
		Example: "  holdfast policy learn -- npm ci > rules.yaml\n  holdfast policy learn --open -o rules.yaml -- go mod download",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return command.Usage(errors.New("no command given"), "type 'holdfast policy learn -- CMD', for example 'holdfast policy learn -- npm ci'")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			options, err := flags.Options(a.App)
			if err != nil {
				return err
			}
			return a.learn(options, args, through, to)
		},
	}
	c.Flags().SetInterspersed(false)
	flags.Bind(c)
	c.Flags().BoolVar(&through, "open", false, "pass on what is asked for, to public addresses")
	c.Flags().VarP((*command.TextFlag)(&to), "to", "o", "FILE to write, which must not exist (default: standard output)")
	return c
}

func newPolicyReload(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "reload",
		Short: "Let running sessions load their network rules again",
		Long: `Tell every running session of yours to load its policy again, with the flags that
it was started with. The new network.allow takes effect at once; connections that
it no longer allows end. The rest of a policy takes effect with the next run. A
session whose new policy has an error keeps the old rules, and the status is 1.`,
		Example: "  holdfast policy reload",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			host, err := policy.ThisHost(a.Env, a.Dir)
			if err != nil {
				return err
			}
			return a.reload(host.State)
		},
	}
}
