package cli

import (
	"strings"

	"holdfast.dev/holdfast/internal/cli/logs/stories"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/record/story"
)

// dropped says after a run what went with its private home.
func (a *app) dropped(home string, all []story.Dropped, more uint64) {
	paths, left := stories.Dropped(home, all, more, false)
	if len(paths) == 0 {
		return
	}
	a.Note(command.Yellow, "dropped", "with the private home: %s", strings.Join(paths, ", "))
	for _, l := range left {
		a.Note(command.Yellow, "dropped", "%s", l)
	}
	a.Note(command.Cyan, "hint", "%s", stories.KeepDropped)
}
