// Package summary says after a run what a person has to know of it: what was refused,
// denied, quarantined, left for review, and what is new ([Write]); and what to do
// about its error ([Explain]). It reads the result that internal/run returns, and
// nothing else.
package summary

import (
	"fmt"
	"os"
	"strings"
	"syscall"

	"holdfast.dev/holdfast/internal/boundary/workspace"
	"holdfast.dev/holdfast/internal/cli/runs/waits"
	"holdfast.dev/holdfast/internal/cli/words"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/run"
)

// app is the world in which a summary is written.
type app struct{ *command.App }

// lossText returns the format of the message about a guarantee that --without accepted.
func lossText(g policy.Guarantee) string {
	if g.Switch() {
		return "ran without %s, as --without accepted"
	}
	return "ran with %s only as far as this machine keeps it, as --without accepted"
}

// Write prints after a run what a person must know about it, if anything, and asks on the
// terminal in whether what waits is taken over; in is nil where nobody is to be asked.
func Write(world *command.App, in *os.File, plan policy.Plan, r run.Result, verbose, ran bool) {
	a := &app{world}
	var asked waits.Offers
	if ran && in != nil {
		asked = waits.Find(a.App, plan.Identity.Home, r)
		defer asked.Close()
	}
	note := a.Note
	for _, g := range plan.Accepted {
		if !ran {
			break
		}
		note(command.Yellow, "warning", lossText(g), g)
	}
	a.aftermaths(r.Aftermaths)
	a.warnings(r)
	if r.Exit.Reason != "" {
		note(command.Red, "stopped", "%s", r.Exit.Reason)
	}
	for _, h := range r.Exit.Hits {
		note(command.Yellow, "limit", "%s", h)
	}
	if r.Exit.Signal == syscall.SIGXFSZ {
		note(command.Yellow, "limit", "a file outgrew the limit of its size (--filesize, else --disk)")
	}
	if verbose {
		for _, n := range plan.Notes {
			note(command.Cyan, "note", "%s", n)
		}
		note(command.Cyan, "note", "profile %s, %d paths in view, %d protected, limits by control group: %v", plan.Profile, len(plan.Paths), len(plan.Protect), r.Limited)
		if r.Session != "" {
			note(command.Cyan, "note", "the record of this run: holdfast log show %s", r.Session)
		}
		note(command.Cyan, "note", "network: %d rules, connections intercepted: %s", len(plan.Allow), interceptionText(r.Rung))
	}
	a.refusals(r)
	a.files(plan, r)
	a.consents(r.Asked)
	a.privateHome(plan, r, asked.Settings())
	a.settled(r.Settled, r.Kept)
	waits.Say(a.App, r, asked)
	a.incomplete(r, ran)
	asked.Ask(a.App, in)
}

// warnings prints what else went wrong.
func (a *app) warnings(r run.Result) {
	for _, w := range r.Warnings {
		a.Note(command.Yellow, "warning", "%s", w)
	}
	if r.Unsent {
		a.Note(command.Cyan, "hint", "send the alerts again: holdfast alerts resend %s", r.Session)
	}
}

// incomplete warns that the record of a run is not COMPLETE.
func (a *app) incomplete(r run.Result, ran bool) {
	if ran && r.Lack.Verdict != "" {
		a.Note(command.Yellow, "record", "%s: %s; see: holdfast log verify %s", r.Lack.Verdict, r.Lack.Reason, r.Session)
	}
}

// fewNew is how many new things the end of a run names.
const fewNew = 6

// noteNews prints what a run did that is new in its workspace, in one line.
func (a *app) noteNews(all []string) {
	if len(all) == 0 {
		return
	}
	var named []string
	for _, one := range all[:min(fewNew, len(all))] {
		named = append(named, text.Line(words.ShortHash(one)))
	}
	if more := len(all) - len(named); more > 0 {
		named = append(named, fmt.Sprintf("and %d more", more))
	}
	a.Note(command.Cyan, "new", "%s (by the baseline of this workspace; see: holdfast alerts)", strings.Join(named, "; "))
}

// aftermaths prints what earlier runs here left whose supervisor was killed: nothing
// was reported at their end.
func (a *app) aftermaths(all []run.Aftermath) {
	for _, left := range all {
		a.Note(command.Yellow, "warning", "the run %s in this workspace was killed with its supervisor; what it left was examined afterwards:", left.Session)
		a.settled(workspace.Report{Quarantined: left.Quarantined, Flagged: left.Flagged, Warnings: left.Warnings}, left.Kept)
		if left.Held > 0 {
			a.Note(command.Cyan, "hint", "see what was quarantined, and take it over: holdfast review %s", left.Session)
		}
	}
}

// settled prints what was found in the workspace after a run; kept is the directory of
// what was quarantined, "" for none.
func (a *app) settled(r workspace.Report, kept string) {
	for _, w := range r.Warnings {
		a.Note(command.Yellow, "warning", "%s", w)
	}
	for i, q := range r.Quarantined {
		if i == summaryLines {
			a.Note(command.Yellow, "quarantined", "and %d more", len(r.Quarantined)-i)
			break
		}
		a.Note(command.Yellow, "quarantined", "%s (%s)", text.Line(string(q.Path)), q.Reason)
	}
	if kept != "" {
		a.Note(command.Cyan, "hint", "look at what was quarantined in %s", text.Word(kept))
		a.takeBack(r.Quarantined, kept)
	}
	for _, f := range r.Flagged {
		a.Note(command.Yellow, string(f.Change), "%s (%s)", text.Line(string(f.Path)), f.Reason)
	}
}

// maxTakeBack is how many commands the end of a run names that take something back.
const maxTakeBack = 8

// takeBack prints the commands for what is whole in the directory kept: 'holdfast review'
// takes back what was in the workspace alone.
func (a *app) takeBack(all []workspace.Quarantined, kept string) {
	shown := 0
	for _, q := range all {
		if q.Cut || !strings.HasPrefix(string(q.Held), kept+"/") {
			continue
		}
		if shown++; shown > maxTakeBack {
			return
		}
		a.Note(command.Cyan, "hint", "take it back if you want it: mv -nT %s %s", text.Word(string(q.Held)), text.Word(string(q.Path)))
	}
}
