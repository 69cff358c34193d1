// Package policies is holdfast policy and holdfast why: what a run would be allowed, by
// which rule, and what policy a command needs ([Command], [Why]). It reads policies
// with internal/cli/plans and starts nothing, except for policy learn, which runs the
// command (internal/cli/runs).
package policies

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/internal/cli/plans"
	"holdfast.dev/holdfast/internal/cli/screen"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/policy"
)

// app is the world of these verbs.
type app struct{ *command.App }

// Command makes the verb holdfast policy.
func Command(world *command.App) *cobra.Command {
	a := &app{world}
	c := &cobra.Command{
		Use:   "policy",
		Short: "Write, check and explain policy",
		Example: `  holdfast policy show
  holdfast policy check ~/.config/holdfast/policy.yaml
  holdfast policy explain ~/.npmrc git example.org`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return command.Usage(fmt.Errorf("unknown command %q for holdfast policy", args[0]), "see 'holdfast policy --help'")
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newPolicyShow(a), newPolicyCheck(a), newPolicyExplain(a), newPolicyTrust(a), newPolicySchema(a),
		newPolicyLearn(a), newPolicyReload(a))
	return c
}

func newPolicyShow(a *app) *cobra.Command {
	var flags plans.Flags
	var asJSON bool
	c := &cobra.Command{
		Use:     "show [flags]",
		Short:   "Show the policy that a run would have, with the origin of each entry",
		Example: "  holdfast policy show\n  holdfast policy show --profile ci --json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			options, err := flags.Options(a.App)
			if err != nil {
				return err
			}
			effective, plan, err := plans.Compile(options)
			if err != nil {
				return err
			}
			rows := policy.Rows(effective, plan)
			if asJSON {
				return command.WriteJSON(a.Stdout, shownPolicy{plan.Profile, plan.Workspace, rows, shownCredentials(plan)})
			}
			_, err = fmt.Fprint(a.Stdout, text.Safe(policy.Text(rows)))
			return err
		},
	}
	flags.Bind(c)
	c.Flags().BoolVar(&asJSON, "json", false, "show as JSON")
	return c
}

// shownPolicy is a policy as JSON.
type shownPolicy struct {
	Profile     string            `json:"profile"`
	Workspace   string            `json:"workspace"`
	Entries     []policy.Row      `json:"entries"`
	Credentials []shownCredential `json:"credentials,omitempty"`
}

// shownCredential says where a credential goes, and which variables inside hold its
// placeholder.
type shownCredential struct {
	Name   string   `json:"name"`
	Env    []string `json:"env,omitempty"`
	Hosts  []string `json:"hosts"`
	Origin string   `json:"origin"`
}

func shownCredentials(plan policy.Plan) (all []shownCredential) {
	for _, c := range plan.Credentials {
		shown := shownCredential{Name: c.Name, Env: c.Env, Origin: c.Origin.String()}
		for _, h := range c.Hosts {
			shown.Hosts = append(shown.Hosts, h.Host)
		}
		all = append(all, shown)
	}
	return all
}

func newPolicyCheck(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE…",
		Short: "Check policy files without starting anything",
		Long: `Read policy files as a run would, with those that they extend, and report all
that is wrong as file:line. 'holdfast policy show' says whether their paths exist.`,
		Example: "  holdfast policy check holdfast.yaml",
		Args:    needsQuery,
		RunE: func(_ *cobra.Command, files []string) error {
			host, err := policy.ThisHost(a.Env, a.Dir)
			if err != nil {
				return err
			}
			invalid := false
			for _, file := range files {
				err := policy.Check(host, file)
				if err == nil {
					fmt.Fprintf(a.Stdout, "%s: ok\n", text.Safe(file))
					continue
				}
				var one *policy.Error
				var many policy.Errors
				known := errors.As(err, &one) || errors.As(err, &many)
				if !known || one != nil && one.Origin == (policy.Origin{}) {
					return err // it could not be read, which says nothing about it
				}
				a.Report(err)
				invalid = true
			}
			if invalid {
				return command.Exit(command.ExitFailed)
			}
			return nil
		},
	}
}

func newPolicyExplain(a *app) *cobra.Command {
	c := explainCommand(a, policy.Explain)
	c.Use = "explain [flags] PATH|HOST|CMD…"
	c.Short = "Say what could be done with a path, a host or a command, and by which rule"
	c.Example = "  holdfast policy explain ~/.ssh example.org npm"
	return c
}

func newPolicySchema(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "schema",
		Short:   "Print the JSON Schema of a policy file, for editors",
		Example: "  holdfast policy schema > policy.schema.json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			schema, err := policy.Schema()
			if err != nil {
				return err
			}
			_, err = a.Stdout.Write(schema)
			return err
		},
	}
}

func newPolicyTrust(a *app) *cobra.Command {
	var flags plans.Flags
	var yes, remove bool
	c := &cobra.Command{
		Use:   "trust [flags] [FILE]",
		Short: "Let a project's own holdfast.yaml widen what a run may do",
		Long: `Show what the project's holdfast.yaml widens, and pin the hash of its bytes
outside the workspace. A changed file has to be trusted again. FILE is the
holdfast.yaml of the workspace that a run here has when it is not given.`,
		Example: "  holdfast policy trust\n  holdfast policy trust --yes ~/src/widget/holdfast.yaml\n  holdfast policy trust --remove",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 1 {
				if filepath.Base(args[0]) != policy.ProjectFile {
					return fmt.Errorf("only a project's %s needs trust; a policy of your own is used with --policy", policy.ProjectFile)
				}
				flags.Workspace = filepath.Dir(args[0])
			}
			options, err := flags.Options(a.App)
			if err != nil {
				return err
			}
			project, err := policy.Inspect(options)
			if err != nil {
				return err
			}
			if project == nil {
				return errors.New("there is no " + policy.ProjectFile + " in the workspace")
			}
			if remove {
				if err := policy.Distrust(options.Host, project.Path); err != nil {
					return err
				}
				fmt.Fprintf(a.Stdout, "%s is not trusted any more\n", text.Safe(project.Path))
				return nil
			}
			return trustProject(a, options.Host, *project, yes)
		},
	}
	c.Flags().StringVar(&flags.Profile, "profile", "", "`NAME` of the profile that the file comes on top of (default local)")
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	c.Flags().BoolVar(&remove, "remove", false, "remove the trust")
	return c
}

// trustProject shows what a file widens, asks, and pins the bytes that were shown.
func trustProject(a *app, host policy.Host, p policy.Project, yes bool) error {
	fmt.Fprintf(a.Stdout, "%s\nsha256 %s\n", text.Safe(p.Path), p.SHA256)
	if len(p.Widens) == 0 {
		fmt.Fprintln(a.Stdout, "widens nothing; it is in force without trust")
	}
	for _, w := range p.Widens {
		fmt.Fprintf(a.Stdout, "line %d widens: %s\n", w.Origin.Line, text.Safe(w.String()))
	}
	if !yes {
		in, ok := a.Stdin.(*os.File)
		if !ok || !screen.IsTerminal(in) {
			return command.Usage(errors.New("there is no terminal to ask on"), "after reading the file: holdfast policy trust --yes "+p.Path)
		}
		answer, err := screen.Ask(in, a.Stderr, "trust these bytes? [y/N]")
		if strings.ToLower(answer) != "y" {
			return errors.Join(errors.New("not trusted"), err)
		}
	}
	if err := policy.Trust(host, p); err != nil {
		return err
	}
	fmt.Fprintln(a.Stdout, "trusted")
	return nil
}
