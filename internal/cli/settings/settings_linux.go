// Package settings shows what agent programs changed in their copies of the user's
// settings ([Show]), applies it ([Apply]), and offers it at the end of a run ([Offer]).
// What a change is, and where it goes, internal/agents/state knows.
package settings

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"holdfast.dev/holdfast/internal/agents/state"
	"holdfast.dev/holdfast/internal/cli/screen"
	"holdfast.dev/holdfast/internal/cli/words"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/text"
)

// Pending returns the changes of one agent, or of one run, that wait below the
// directory of Holdfast's state.
func Pending(stateDir, name, id string) ([]*state.Changes, error) {
	all, err := state.Pending(stateDir, name)
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

// Drop forgets changes.
func Drop(all []*state.Changes) error {
	var errs []error
	for _, c := range all {
		errs = append(errs, c.Drop())
	}
	return errors.Join(errs...)
}

// Apply applies the changes that digest identifies, the oldest first. Changes that
// cannot be applied stay.
func Apply(a *command.App, all []*state.Changes, name, digest string) error {
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

// Show prints changes, and the command that applies them. id is that of the one run to
// which they are limited; "" for none.
func Show(ctx context.Context, a *command.App, all []*state.Changes, home, id string) error {
	obeyed, err := state.ObeyedAmong(ctx, home, all)
	if err != nil {
		return err
	}
	for i, c := range all {
		if i > 0 {
			fmt.Fprintln(a.Stdout)
		}
		if err := write(a.Stdout, c, obeyed, home); err != nil {
			return err
		}
	}
	return showDigests(a, all, id)
}

// write prints what one run of an agent changed.
func write(w io.Writer, c *state.Changes, obeyed *state.Obeyed, home string) error {
	fmt.Fprintf(w, "%s  %s  in %s, %s\n", c.ID, text.Line(c.Preset), text.Line(c.Workspace), c.At.Format(time.RFC3339))
	for _, f := range c.Files {
		fmt.Fprintf(w, "  %s %s%s\n", f.Change, text.Line(words.Tilde(home, f.Place)), text.Line(aboutPlace(f)))
		if r := obeyed.Rule(f); r != nil {
			fmt.Fprintf(w, "    ! %s\n", r.Reason)
		}
		lines, err := changedLines(c, f)
		if err != nil {
			return err
		}
		for _, line := range lines {
			fmt.Fprintf(w, "    %s\n", text.Line(line))
		}
	}
	for _, what := range c.LeftOut {
		fmt.Fprintf(w, "  left out: %s\n", text.Line(what))
	}
	return nil
}

// OfferKey is the answer that takes these changes alone.
const OfferKey = "settings"

// Offer returns what the run id changed in an agent's copies, to be taken over by one
// answer; none if that cannot be shown, which 'holdfast agents changes' explains.
func Offer(ctx context.Context, a *command.App, stateDir, home, preset, id string) []screen.Offer {
	all, err := Pending(stateDir, preset, id)
	if err != nil || len(all) == 0 || len(all[0].Files) == 0 {
		return nil
	}
	var shown strings.Builder
	digest, err := state.Digest(all)
	if err != nil {
		return nil
	}
	obeyed, err := state.ObeyedAmong(ctx, home, all)
	if err != nil || write(&shown, all[0], obeyed, home) != nil {
		return nil
	}
	return []screen.Offer{{
		Key: OfferKey, Text: shown.String(), Later: "holdfast agents changes " + preset,
		What: words.Plural(len(all[0].Files), "changed file", "changed files") + " of " + text.Word(preset) + "'s settings in your home",
		Take: func() error { return Apply(a, all, preset, digest) },
	}}
}

// showDigests names, for each agent, the command that applies what was shown.
func showDigests(a *command.App, all []*state.Changes, id string) error {
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
