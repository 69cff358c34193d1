// Package grants is holdfast grant: where a secret is, which hosts it may go to, and
// for how long. [Command] is the way in. Secrets are read by internal/credentials
// alone; nothing here shows one.
package grants

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/internal/cli/plans"
	"holdfast.dev/holdfast/internal/cli/words"
	"holdfast.dev/holdfast/internal/credentials"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/policy"
)

// app is the world of these verbs.
type app struct{ *command.App }

// Command makes the verb holdfast grant.
func Command(world *command.App) *cobra.Command {
	a := &app{world}
	c := &cobra.Command{
		Use:   "grant",
		Short: "Manage credentials for runs: where a secret is, where it may go, and for how long",
		Long: `A grant says where a secret is and which hosts it may go to. The secret itself is
not stored, and never enters the boundary: inside there is a placeholder, which is
replaced on the way to those hosts and nowhere else. A policy uses a grant by its
name:

  network:
    allow:
      - {host: api.github.com, credential: github}`,
		Example: `  holdfast grant add github --source 'command:gh auth token' --host api.github.com
  holdfast grant test github
  holdfast grant list
  holdfast grant revoke github`,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newGrantAdd(a), newGrantList(a), newGrantRevoke(a), newGrantTest(a))
	return c
}

// grantStore is where this user's grants are.
func grantStore(host policy.Host) credentials.Store {
	return credentials.Store{Dir: filepath.Join(host.State, "grants")}
}

// listedGrant is a grant as list shows it.
type listedGrant struct {
	credentials.Grant
	State string `json:"state"` // active, revoked, expired or used up
	Left  *int64 `json:"uses_left,omitempty"`
}

func newListedGrant(g credentials.Grant, now time.Time) listedGrant {
	l := listedGrant{Grant: g}
	switch err := g.Standing(now); {
	case err == nil:
		l.State = "active"
	case errors.Is(err, credentials.ErrRevoked):
		l.State = "revoked"
	case errors.Is(err, credentials.ErrExpired):
		l.State = "expired"
	default:
		l.State = "used up"
	}
	if g.Uses > 0 {
		left := max(0, g.Uses-g.Used)
		l.Left = &left
	}
	return l
}

func newGrantList(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "list",
		Short:   "Show the grants, with their hosts, state and last use",
		Example: "  holdfast grant list\n  holdfast grant list --json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			host, err := policy.ThisHost(a.Env, a.Dir)
			if err != nil {
				return err
			}
			all, broken := grantStore(host).List()
			rows := make([]listedGrant, len(all))
			for i, g := range all {
				rows[i] = newListedGrant(g, time.Now())
			}
			if asJSON {
				err = command.WriteJSON(a.Stdout, rows)
			} else {
				err = a.printGrants(rows, broken != nil)
			}
			return errors.Join(err, broken)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "show as JSON")
	return c
}

func (a *app) printGrants(rows []listedGrant, broken bool) error {
	if len(rows) == 0 {
		if !broken {
			fmt.Fprintln(a.Stdout, "there are no grants")
		}
		return nil
	}
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tSTATE\tSOURCE\tHOSTS\tEXPIRES\tUSES LEFT\tLAST USE")
	for _, g := range rows {
		left := "any"
		if g.Left != nil {
			left = fmt.Sprint(*g.Left)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", g.Name, g.State, text.Line(sourceText(g.Source)), text.Line(strings.Join(g.Hosts, ",")),
			words.Moment(g.Expires), left, words.Moment(g.LastUse))
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("writing the list: %w", err)
	}
	_, err := fmt.Fprint(a.Stdout, table.String())
	return err
}

// sourceText names a source in a few words. Of a command only the program is shown:
// arguments can hold secrets.
func sourceText(s credentials.Source) string {
	switch {
	case len(s.Argv) > 0:
		return s.Kind + " " + filepath.Base(s.Argv[0])
	case s.Kind == "github-app":
		return s.Kind + " " + s.Options["app-id"]
	}
	return s.Kind + " " + s.Value
}

func newGrantRevoke(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke NAME…",
		Short: "End a grant, and the credential of that name in every run that is under way",
		Long: `End a grant. From its next request on, no run that is under way gets the
credential of that name, whether a grant or a policy gave it. What a source made
for a run, such as an installation token, is revoked there by that run.`,
		Example: "  holdfast grant revoke github",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return command.Usage(errors.New("no grant given to revoke"), "list them with: holdfast grant list")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, names []string) error {
			host, err := policy.ThisHost(a.Env, a.Dir)
			if err != nil {
				return err
			}
			for _, name := range names {
				found, err := grantStore(host).Revoke(name)
				if err != nil {
					return fmt.Errorf("revoking %s: %w", text.Line(name), err)
				}
				if found {
					fmt.Fprintf(a.Stdout, "%s is revoked\n", name)
				} else {
					fmt.Fprintf(a.Stdout, "there is no grant %s; runs under way cannot use a credential of that name any more\n", name)
				}
			}
			return nil
		},
	}
}

func newGrantTest(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "test NAME",
		Short: "Fetch a secret once and describe it, without showing it",
		Long: `Fetch the secret of a grant, or of a credential of the policy that applies here,
and say how long it is, the beginning of its hash and when it expires. What was
made for the test is revoked again. No use is counted.`,
		Example: "  holdfast grant test github",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			cred, writable, err := a.credential(args[0])
			if err != nil {
				return err
			}
			trial, err := credentials.Try(c.Context(), cred, credentials.Config{Writable: writable})
			if err != nil {
				return err
			}
			fmt.Fprintf(a.Stdout, "%s: %s gave a secret of %d bytes, %s\n", cred.Name, trial.Kind, trial.Length, trial.Hash)
			switch {
			case trial.Expires.IsZero():
				fmt.Fprintf(a.Stdout, "the source does not say when it expires; a lease lasts %s\n", text.Span(cred.TTL))
			default:
				fmt.Fprintf(a.Stdout, "it expires %s; a lease lasts %s at most\n", words.Moment(trial.Expires), text.Span(cred.TTL))
			}
			if trial.Revoked {
				fmt.Fprintln(a.Stdout, "it was made for this test, and is revoked again")
			}
			return nil
		},
	}
}

// credential is the grant of a name, or else the credential of the policy that
// applies here, with the trees that a run could change.
func (a *app) credential(name string) (policy.Credential, []string, error) {
	var flags plans.Flags
	options, err := flags.Options(a.App)
	if err != nil {
		return policy.Credential{}, nil, err
	}
	cred, err := grantStore(options.Host).Credential(name)
	granted := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return policy.Credential{}, nil, err
	}
	_, plan, err := plans.Compile(options)
	if granted { // also if no run is possible: what earlier ones could write to is still known
		return cred, []string{plan.Workspace}, cred.ResolveSource(plan, options.Host)
	}
	if err != nil {
		return policy.Credential{}, nil, fmt.Errorf("there is no grant %s, and no policy here that could have the credential: %w", text.Line(name), err)
	}
	for _, c := range plan.Credentials {
		if c.Name == name {
			return c, []string{plan.Workspace}, nil
		}
	}
	return policy.Credential{}, nil, command.Usage(fmt.Errorf("there is no grant and no credential %q", text.Line(name)), "list them with: holdfast grant list")
}
