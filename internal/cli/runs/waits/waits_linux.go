// Package waits says after a run what of it waits for a decision ([Say]), and asks, where
// there is somebody, whether it is taken over now ([Offers]). What waits, and how it is
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

// Offers are what waits and may be taken over by one answer. The zero value has none.
type Offers struct {
	all  []screen.Offer
	done func()
}

// Find returns what a run offers. home is the user's.
func Find(a *command.App, home string, r run.Result) Offers {
	world := *a
	world.Stdout = a.Stderr // the output is the command's
	o := Offers{done: func() {}}
	ctx := context.Background()
	if r.Held > 0 {
		o.all, o.done = reviews.Offer(ctx, &world, r.Session)
	}
	o.all = append(o.all, reviews.OfferGit(&world, r)...)
	if c := r.Changed; c != nil {
		o.all = append(o.all, settings.Offer(ctx, &world, c.State(), home, c.Preset, c.ID)...)
	}
	return o
}

// Settings reports whether settings of an agent are among them.
func (o Offers) Settings() bool { return screen.Offered(o.all, settings.OfferKey) }

// Ask asks about all of them on the terminal in, and takes over what the answer says. An
// error is printed, and changes nothing about the run.
func (o Offers) Ask(a *command.App, in *os.File) { a.Report(screen.AskOffers(a, in, o.all)) }

// Close ends the look at them.
func (o Offers) Close() { o.done() }

// Say names what waits in the workspace, and the next command to type where o does not
// ask.
func Say(a *command.App, r run.Result, o Offers) { reviews.Waiting(a, r, o.all) }
