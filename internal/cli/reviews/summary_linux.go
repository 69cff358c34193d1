package reviews

import (
	"context"
	"strings"

	"holdfast.dev/holdfast/internal/cli/screen"
	"holdfast.dev/holdfast/internal/cli/words"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/review"
	"holdfast.dev/holdfast/internal/run"
)

// Waiting says after a run that its changes wait, or where they are listed.
func Waiting(world *command.App, r run.Result) {
	a := &app{world}
	a.waitingGit(r)
	if r.Viewed == nil || r.Viewed.Dir == "" {
		switch {
		case r.Held > 0:
			a.Note(command.Cyan, "hint", "see what was quarantined, and take it over: holdfast review %s", r.Session)
		case len(r.Settled.Flagged) > 0 && r.Listed > 0:
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

// Offer returns what a run in direct mode held back, to be taken over by one answer, as
// far as it can be shown whole, and a function that ends the review.
func Offer(ctx context.Context, world *command.App, session string) ([]screen.Offer, func()) {
	v, err := (&app{world}).openReview(ctx, session)
	if err != nil {
		return nil, func() {} // 'holdfast review' says why
	}
	var shown strings.Builder
	var list []*review.Change
	for _, c := range v.set.Changes {
		if shown.Len() > screen.MaxText {
			return nil, v.close
		}
		if d, err := v.set.Diff(c); err == nil && isOpen(c) && !d.Binary && !d.Huge && c.History == nil {
			list = append(list, c)
			v.writeDiff(&shown, c, d)
		}
	}
	if len(list) == 0 || v.listOnly() {
		return nil, v.close
	}
	later := "holdfast review " + session
	return []screen.Offer{{
		Key: "files", Text: shown.String(), Later: later,
		What: words.Plural(len(list), "file that programs on this machine obey", "files that programs on this machine obey"),
		Take: func() error {
			if err := v.begin(); err != nil {
				return err
			}
			if err := v.decideAll(list, review.Accept); err != nil {
				return err
			}
			return v.apply(ctx, review.Options{})
		},
	}}, v.close
}
