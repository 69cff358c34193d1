package cli

import (
	"errors"
	"fmt"
	"strings"

	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/cli/words"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/run"
)

// privateHome says after a run what became of its private home: what waits to be
// taken over, and what was dropped.
func (a *app) privateHome(plan policy.Plan, r run.Result) {
	a.changed(plan, r.Changed)
	a.dropped(plan.Identity.Home, r.Dropped, r.DroppedMore)
}

// changed names what an agent changed in its copies of the user's settings, and
// the next command to type.
func (a *app) changed(plan policy.Plan, c *run.Changes) {
	if c == nil || plan.Agent == nil {
		return
	}
	var places []string
	for i, f := range c.Files {
		if i == 5 {
			places = append(places, fmt.Sprintf("and %d more", len(c.Files)-i))
			break
		}
		places = append(places, words.Tilde(plan.Identity.Home, f.Place)+" ("+f.Change+")")
	}
	line := fmt.Sprintf("%s changed its copy of %s; nothing of it is in force here. To look at it: holdfast agents changes %s", plan.Agent.Title, strings.Join(places, ", "), c.Preset)
	if len(c.Files) == 0 {
		line = fmt.Sprintf("%d paths that %s made in its copies were left out. To see which: holdfast agents changes %s", len(c.LeftOut), plan.Agent.Title, c.Preset)
	}
	fmt.Fprintf(a.Stderr, "%s %s\n", a.Paint(command.Yellow, "holdfast: review:"), text.Line(line))
}

// missingProgram adds to the error about an agent that is not installed how to
// install it.
func (a *app) missingProgram(plan policy.Plan, err error) error {
	if plan.Agent == nil || plan.Agent.Install == "" || !errors.Is(err, boundary.ErrNotFound) {
		return err
	}
	return &agentMissingError{err, "install " + plan.Agent.Title + ": " + plan.Agent.Install + "; 'holdfast agents' lists those that are found"}
}

// agentMissingError is a command that was not found, of a program that a preset
// knows.
type agentMissingError struct {
	error
	hint string
}

func (e *agentMissingError) Unwrap() error { return e.error }

// Hint is how to install it.
func (e *agentMissingError) Hint() string { return e.hint }
