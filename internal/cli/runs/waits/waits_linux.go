// Package waits says after a run what of it waits for a decision ([Say]), and asks, where
// there is somebody, whether it is taken over now ([Ask]). What waits, and how it is
// taken, cli/reviews and cli/settings know.
package waits

import (
	"context"
	"os"

	"holdfast.dev/holdfast/internal/cli/reviews"
	"holdfast.dev/holdfast/internal/cli/screen"
	"holdfast.dev/holdfast/internal/cli/settings"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/run"
)

// Say names what waits in the workspace, and the next command to type.
func Say(a *command.App, r run.Result) { reviews.Waiting(a, r) }

// Ask asks on the terminal in about what waits, and takes it over if the answer is yes.
// home is the user's. An error is printed, and changes nothing about the run.
func Ask(a *command.App, in *os.File, home string, r run.Result) {
	world := *a
	world.Stdout = a.Stderr // the output is the command's
	var all []screen.Offer
	ctx := context.Background()
	if r.Held > 0 {
		files, done := reviews.Offer(ctx, &world, r.Session)
		defer done()
		all = append(all, files...)
	}
	all = append(all, reviews.OfferGit(&world, r)...)
	if c := r.Changed; c != nil {
		all = append(all, settings.Offer(ctx, &world, c.State(), home, c.Preset, c.ID)...)
	}
	world.Report(screen.AskOffers(&world, in, all))
}
