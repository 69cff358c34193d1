package summary

import (
	"fmt"
	"strings"

	"holdfast.dev/holdfast/internal/agents/state"
	"holdfast.dev/holdfast/internal/cli/logs/stories"
	"holdfast.dev/holdfast/internal/cli/words"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/record/story"
	"holdfast.dev/holdfast/internal/run"
)

// privateHome says after a run what became of its private home: what waits to be
// taken over, which may be asked, and what was dropped.
func (a *app) privateHome(plan policy.Plan, r run.Result, asked bool) {
	a.changed(plan, r.Changed, asked)
	a.dropped(plan.Identity.Home, r.Dropped, r.DroppedMore)
}

// changed names what an agent changed in its copies of the user's settings, and
// the next command to type unless it is about to be asked.
func (a *app) changed(plan policy.Plan, c *state.Changes, asked bool) {
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
	line := fmt.Sprintf("%s changed its copy of %s; none of it is in force here", plan.Agent.Title, strings.Join(places, ", "))
	if !asked {
		line += ". To look at it: holdfast agents changes " + c.Preset
	}
	if len(c.Files) == 0 {
		line = fmt.Sprintf("%d paths that %s made in its copies were left out. To see which: holdfast agents changes %s", len(c.LeftOut), plan.Agent.Title, c.Preset)
	}
	a.Note(command.Yellow, "review", "%s", text.Line(line))
}

// dropped says after a run what went with its private home.
func (a *app) dropped(home string, all []story.Dropped, more uint64) {
	paths, left, keep := stories.Dropped(home, all, more, false)
	if len(paths) == 0 {
		return
	}
	a.Note(command.Yellow, "dropped", "with the private home: %s", strings.Join(paths, ", "))
	for _, l := range left {
		a.Note(command.Yellow, "dropped", "%s", l)
	}
	if keep != "" {
		a.Note(command.Cyan, "hint", "%s", keep)
	}
}
