package agents

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"holdfast.dev/holdfast/internal/agents/state"
	"holdfast.dev/holdfast/internal/cli/settings"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/policy"
)

func (a *app) countPending(host policy.Host, rows []listedAgent) error {
	all, err := state.Pending(host.State, "")
	for _, c := range all {
		for i := range rows {
			if rows[i].Name == c.Preset {
				rows[i].Pending++
			}
		}
	}
	return err
}

func newAgentChanges(a *app) *cobra.Command {
	var drop, asJSON bool
	var id, apply string
	c := &cobra.Command{
		Use:   "changes [flags] [NAME]",
		Short: "Show what agents changed in their copies of your settings; apply it or drop it",
		Long: `An agent has copies of the settings that your own sessions obey: hooks, servers,
permissions, instructions. What it changes there waits here until you apply or
drop it. Without a flag the changes are shown, and at the end the command that
applies what was shown and nothing else: --apply DIGEST. In a JSON file only the
changed values are written, and only where your value is still the one the agent was
given; any other file must be unchanged since it was copied.`,
		Example: "  holdfast agents changes\n  holdfast agents changes claude\n  holdfast agents changes claude --apply 3f786850e387550fdab836ed7e6dc881",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			host, err := policy.ThisHost(a.Env, a.Dir)
			if err != nil {
				return err
			}
			name := ""
			if len(args) > 0 {
				if name = args[0]; !policy.HasPreset(host, name) {
					return command.Usage(fmt.Errorf("there is no preset %q", name), "'holdfast agents' lists them")
				}
			}
			if (apply != "" || drop) && name == "" {
				return command.Usage(errors.New("no agent given"), "name it: holdfast agents changes claude")
			}
			all, err := settings.Pending(host.State, name, id)
			if err != nil {
				return err
			}
			switch {
			case drop:
				return settings.Drop(all)
			case c.Flags().Changed("apply"):
				return settings.Apply(a.App, all, name, apply)
			case asJSON:
				return command.WriteJSON(a.Stdout, append([]*state.Changes{}, all...))
			}
			return settings.Show(c.Context(), a.App, all, host.Home, id)
		},
	}
	c.Flags().StringVar(&apply, "apply", "", "apply to your files the changes shown with this `DIGEST`")
	c.Flags().BoolVar(&drop, "drop", false, "forget the changes")
	c.Flags().BoolVar(&asJSON, "json", false, "show as JSON")
	c.Flags().StringVar(&id, "id", "", "only the changes of the run with this `ID` (default: all)")
	c.MarkFlagsMutuallyExclusive("apply", "drop", "json")
	return c
}
