package reviews

import (
	"context"

	"holdfast.dev/holdfast/internal/cli/words"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/run"
)

// Waiting says after a run that its changes wait, or where they are listed.
func Waiting(world *command.App, r run.Result) {
	a := &app{world}
	a.waitingGit(r)
	if r.Viewed == nil || r.Viewed.Dir == "" {
		if len(r.Settled.Flagged) > 0 && r.Listed > 0 {
			a.Note(command.Cyan, "hint", "see all that changed with: holdfast review %s", r.Session)
		}
		return
	}
	next := "holdfast review"
	if r.Viewed.Waiting > 1 {
		next += " " + r.Viewed.Session
	}
	v, err := a.openReview(context.Background(), r.Viewed.Session)
	if err != nil {
		a.Note(command.Yellow, "review", "changes wait and could not be read (%v): %s", err, next)
		return
	}
	defer v.close()
	n := v.set.Counts()
	switch {
	case n.Flagged > 0:
		a.Note(command.Yellow, "review", "%s, %s: %s", words.Plural(n.Changes, "change waits for review", "changes wait for review"),
			words.Plural(n.Flagged, "of them flagged", "of them flagged"), next)
	default:
		a.Note(command.Cyan, "review", "%s: %s", words.Plural(n.Changes, "change waits for review", "changes wait for review"), next)
	}
	if n.Unseen > 0 {
		a.Note(command.Yellow, "warning", "%s of what the run left could not be examined, and cannot be applied", words.Plural(n.Unseen, "part", "parts"))
	}
}
