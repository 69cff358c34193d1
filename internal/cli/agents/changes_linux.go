package agents

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"holdfast.dev/holdfast/internal/agents/state"
	"holdfast.dev/holdfast/internal/cli/words"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/text"
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
			all, err := pendingOf(host, name, id)
			if err != nil {
				return err
			}
			switch {
			case drop:
				return dropAll(all)
			case c.Flags().Changed("apply"):
				return a.applyAll(all, name, apply)
			case asJSON:
				return command.WriteJSON(a.Stdout, append([]*state.Changes{}, all...))
			}
			return a.showChanges(c.Context(), all, host.Home, id)
		},
	}
	c.Flags().StringVar(&apply, "apply", "", "apply to your files the changes shown with this `DIGEST`")
	c.Flags().BoolVar(&drop, "drop", false, "forget the changes")
	c.Flags().BoolVar(&asJSON, "json", false, "show as JSON")
	c.Flags().StringVar(&id, "id", "", "only the changes of the run with this `ID` (default: all)")
	c.MarkFlagsMutuallyExclusive("apply", "drop", "json")
	return c
}

// pendingOf are the changes of one agent, or of one run.
func pendingOf(host policy.Host, name, id string) ([]*state.Changes, error) {
	all, err := state.Pending(host.State, name)
	if err != nil || id == "" {
		return all, err
	}
	for _, c := range all {
		if c.ID == id {
			return []*state.Changes{c}, nil
		}
	}
	return nil, command.Usage(fmt.Errorf("no changes have the id %q", id), "'holdfast agents changes' lists them")
}

func dropAll(all []*state.Changes) error {
	var errs []error
	for _, c := range all {
		errs = append(errs, c.Drop())
	}
	return errors.Join(errs...)
}

// applyAll applies the changes that digest identifies, the oldest first. Changes that
// cannot be applied stay.
func (a *app) applyAll(all []*state.Changes, name, digest string) error {
	now, err := state.Digest(all)
	if err != nil {
		return err
	}
	if digest != now {
		return command.Usage(errors.New("the waiting changes are not those shown with that digest"), "show them, and take the digest from the last line: holdfast agents changes "+name)
	}
	failed := false
	for _, c := range slices.Backward(all) {
		whole := true
		for _, f := range c.Files {
			if err := c.Apply(f); err != nil {
				a.Report(err)
				whole, failed = false, true
				continue
			}
			fmt.Fprintf(a.Stdout, "%s: %s\n", text.Line(f.Place), f.Change)
		}
		if whole {
			if err := c.Drop(); err != nil {
				return err
			}
		}
	}
	if failed {
		return command.Exit(command.ExitFailed)
	}
	return nil
}

func (a *app) showChanges(ctx context.Context, all []*state.Changes, home, id string) error {
	obeyed, err := state.ObeyedAmong(ctx, home, all)
	if err != nil {
		return err
	}
	for i, c := range all {
		if i > 0 {
			fmt.Fprintln(a.Stdout)
		}
		fmt.Fprintf(a.Stdout, "%s  %s  in %s, %s\n", c.ID, text.Line(c.Preset), text.Line(c.Workspace), c.At.Format(time.RFC3339))
		for _, f := range c.Files {
			fmt.Fprintf(a.Stdout, "  %s %s%s\n", f.Change, text.Line(words.Tilde(home, f.Place)), text.Line(aboutPlace(f)))
			if r := obeyed.Rule(f); r != nil {
				fmt.Fprintf(a.Stdout, "    ! %s\n", r.Reason)
			}
			lines, err := changedLines(c, f)
			if err != nil {
				return err
			}
			for _, line := range lines {
				fmt.Fprintf(a.Stdout, "    %s\n", text.Line(line))
			}
		}
		for _, what := range c.LeftOut {
			fmt.Fprintf(a.Stdout, "  left out: %s\n", text.Line(what))
		}
	}
	return a.showDigests(all, id)
}

// showDigests names, for each agent, the command that applies what was shown.
func (a *app) showDigests(all []*state.Changes, id string) error {
	byPreset := map[string][]*state.Changes{}
	for _, c := range all {
		byPreset[c.Preset] = append(byPreset[c.Preset], c)
	}
	for _, preset := range slices.Sorted(maps.Keys(byPreset)) {
		digest, err := state.Digest(byPreset[preset])
		if err != nil {
			return err
		}
		name := text.Line(preset)
		if id != "" {
			name += " --id " + text.Line(id)
		}
		fmt.Fprintf(a.Stdout, "\nto apply what is shown to your files: holdfast agents changes %s --apply %s\nto forget it: holdfast agents changes %s --drop\n", name, digest, name)
	}
	return nil
}

// aboutPlace is where a change really goes, if links lead there, and that a new file
// may be executed.
func aboutPlace(f state.ChangedFile) string {
	about := ""
	switch real, err := f.Real(); {
	case err != nil:
		about = "; it cannot be applied: " + err.Error()
	case real != f.Place:
		about = " -> " + real
	}
	if f.Change == "added" {
		about += fmt.Sprintf(", mode %04o", f.Mode&0o100|0o600)
		if f.Mode&0o100 != 0 {
			about += ": it may be executed"
		}
	}
	return about
}

// changedLines shows one change as lines: of JSON the values, else the lines
// between the first and the last that differ.
func changedLines(c *state.Changes, f state.ChangedFile) ([]string, error) {
	var out []string
	for _, k := range f.Keys {
		var was, value strings.Builder
		if err := errors.Join(command.WriteJSONLine(&was, k.Was), command.WriteJSONLine(&value, k.Value)); err != nil {
			return nil, fmt.Errorf("showing a change: %w", err)
		}
		if k.Had {
			out = append(out, "- "+strings.Join(k.Key, ".")+" = "+strings.TrimSuffix(was.String(), "\n"))
		}
		if !k.Removed {
			out = append(out, "+ "+strings.Join(k.Key, ".")+" = "+strings.TrimSuffix(value.String(), "\n"))
		}
	}
	if len(f.Keys) > 0 {
		return out, nil
	}
	before, after, err := c.Text(f)
	if err != nil {
		return nil, err
	}
	old, now := splitLines(before), splitLines(after)
	for len(old) > 0 && len(now) > 0 && old[0] == now[0] {
		old, now = old[1:], now[1:]
	}
	for len(old) > 0 && len(now) > 0 && old[len(old)-1] == now[len(now)-1] {
		old, now = old[:len(old)-1], now[:len(now)-1]
	}
	for _, line := range old {
		out = append(out, "- "+line)
	}
	for _, line := range now {
		out = append(out, "+ "+line)
	}
	return out, nil
}

func splitLines(text []byte) []string {
	if len(text) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
}
