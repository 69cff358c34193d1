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

// What an answer takes alone.
const (
	filesKey = "files"
	gitKey   = "git"
)

// Waiting says after a run that its changes wait, or where they are listed. What is about
// to be asked, it leaves to the question.
func Waiting(world *command.App, r run.Result, asked []screen.Offer) {
	a := &app{world}
	a.waitingGit(r, screen.Offered(asked, gitKey))
	if r.Viewed == nil || r.Viewed.Dir == "" {
		switch {
		case r.Held > 0 && screen.Offered(asked, filesKey): // the question says it
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
	open := 0
	for _, c := range v.set.Changes {
		if shown.Len() > screen.MaxText {
			return nil, v.close
		}
		if !isOpen(c) {
			continue
		}
		open++
		if d, err := v.set.Diff(c); err == nil && !d.Binary && !d.Huge && c.History == nil {
			list = append(list, c)
			v.writeDiff(&shown, c, d)
		}
	}
	if len(list) == 0 || v.listOnly() {
		return nil, v.close
	}
	later := "holdfast review " + session
	return []screen.Offer{{
		Key: filesKey, Text: shown.String(), Later: later, Part: len(list) < open,
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
