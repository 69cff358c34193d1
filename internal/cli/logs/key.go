package logs

import (
	"fmt"

	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/internal/cli/archive"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/record/audit"
)

func newLogKey(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "key",
		Short: "Show or change the key that signs records",
		Long: `Records are signed with a key of this user, made with the first run and kept
outside every boundary. To verify records elsewhere, you need its public half.`,
		Example: "  holdfast log key show\n  holdfast log key rotate",
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(
		&cobra.Command{
			Use:     "show",
			Short:   "Print the public keys, one a line, the one that signs now first",
			Example: "  holdfast log key show > holdfast.pub",
			Args:    cobra.NoArgs,
			RunE:    func(*cobra.Command, []string) error { return a.showKeys() },
		},
		&cobra.Command{
			Use:   "rotate",
			Short: "Make a new key, and remove the private half of the old one",
			Long: `Make a new key. What the old one signed can still be verified, because its public
half stays; only the runs that are under way can still sign with it.`,
			Example: "  holdfast log key rotate",
			Args:    cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error {
				r, err := archive.Open(a.App)
				if err != nil {
					return err
				}
				k, err := audit.Rotate(r.Keys)
				if err != nil {
					return err
				}
				_, err = fmt.Fprintln(a.Stdout, k.Text)
				return err
			},
		})
	return c
}

func (a *app) showKeys() error {
	r, err := archive.Open(a.App)
	if err != nil {
		return err
	}
	keys, err := audit.PublicKeys(r.Keys)
	if err != nil {
		return err
	}
	if len(keys) == 0 {
		a.Note(command.Cyan, "note", "there is no key yet: it is made with the first run")
	}
	for _, k := range keys {
		if _, err := fmt.Fprintln(a.Stdout, k.Text); err != nil {
			return err
		}
	}
	return nil
}
