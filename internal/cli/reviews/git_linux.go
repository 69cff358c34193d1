package reviews

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"holdfast.dev/holdfast/internal/boundary/workspace"
	"holdfast.dev/holdfast/internal/cli/screen"
	"holdfast.dev/holdfast/internal/cli/words"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/review"
	"holdfast.dev/holdfast/internal/run"
)

// maxGitShown is how many settings the end of a run names, and how many refused ones a
// review; maxGitListed how many that wait a review names.
const (
	maxGitShown  = 8
	maxGitListed = 100
)

// waitingGit says after a run which settings of git wait, unless it is about to be asked,
// and which are not taken over.
func (a *app) waitingGit(r run.Result, asked bool) {
	waiting := review.GroupGit(r.GitChanges)
	if asked {
		waiting = nil
	}
	for i, g := range waiting {
		if i == maxGitShown {
			a.Note(command.Cyan, "review", "%d more settings of git wait: holdfast review %s", len(waiting)-i, r.Session)
			break
		}
		a.Note(command.Cyan, "review", "holdfast review accept --git %s takes over %s", g.ID, g)
	}
	for _, line := range refusedGit(review.RefusedGit(r.GitChanges)) {
		a.Note(command.Yellow, "not kept", "%s", line)
	}
}

// OfferGit returns the settings of git that a run left and that wait, to be taken over by
// one answer.
func OfferGit(world *command.App, r run.Result) []screen.Offer {
	var shown strings.Builder
	var ids []string
	for _, g := range review.GroupGit(r.GitChanges) {
		fmt.Fprintf(&shown, "%s: %s\n", text.Word(string(g.File)), g)
		ids = append(ids, g.ID)
	}
	if len(ids) == 0 {
		return nil
	}
	return []screen.Offer{{
		Key: gitKey, Text: shown.String(), Later: "holdfast review " + r.Session,
		What: words.Plural(len(ids), "setting of git", "settings of git"),
		Take: func() error { return (&app{world}).decideGit(ids, review.Accept) },
	}}
}

// lostGit names the settings of git that wait and go with the list of a run, and returns
// what a question about it adds; "" for none.
func (a *app) lostGit(r review.Reviewed) string {
	l, err := review.ReadChangeList(r.Dir)
	if err != nil {
		return ""
	}
	waiting := review.GroupGit(l.Git)
	for i, g := range waiting {
		if i == maxGitShown {
			a.Note(command.Yellow, "forgets", "%d more settings of git", len(waiting)-i)
			break
		}
		a.Note(command.Yellow, "forgets", "%s: %s", text.Word(string(g.File)), g)
	}
	if len(waiting) == 0 {
		return ""
	}
	return " and " + words.Plural(len(waiting), "setting of git that waits", "settings of git that wait")
}

// refusedGit are lines about settings that are not taken over.
func refusedGit(all []workspace.ConfigChange) (lines []string) {
	for i, c := range all {
		if i == maxGitShown {
			return append(lines, fmt.Sprintf("%d more settings of git", len(all)-i))
		}
		what := " = " + review.ShowValues(c.Now)
		if len(c.Now) == 0 {
			what = " was removed"
		}
		lines = append(lines, fmt.Sprintf("%s%s in a copy of %s: %s", text.Word(c.Name()), what, text.Word(string(c.File)), c.Refused))
	}
	return lines
}

// showGit prints the settings of git that wait in the workspace of a review.
func (v *openedReview) showGit(b *strings.Builder) error {
	waiting, refused, err := v.waitingGit()
	if err != nil {
		return err
	}
	if len(waiting) > 0 {
		fmt.Fprintf(b, "\n%s\n", v.a.Tint(command.Bold, "settings of git that wait: a run made them in its copy of the file"))
		var ids []string
		for i, g := range waiting {
			if i == maxGitListed {
				fmt.Fprintf(b, "  and %d more: holdfast review --json\n", len(waiting)-i)
				break
			}
			fmt.Fprintf(b, "  %s  %s  %s\n", g.ID, fileName(v.nameOf(g.File)), g)
			ids = append(ids, g.ID)
		}
		all := strings.Join(ids, ",")
		fmt.Fprintf(b, "%s\n", v.a.Tint(command.Grey, "take them over: holdfast review accept --git "+all+"\nforget them: holdfast review reject --git "+all))
	}
	for _, line := range refusedGit(refused) {
		fmt.Fprintf(b, "%s %s\n", v.a.Tint(command.Yellow, "not kept:"), line)
	}
	return nil
}

func (v *openedReview) waitingGit() ([]review.GitSettings, []workspace.ConfigChange, error) {
	if !v.Direct() {
		return nil, nil, nil
	}
	all, err := review.Reviews(v.host.State)
	if err != nil && len(all) == 0 {
		return nil, nil, err
	}
	return review.WaitingGit(all, v.Workspace)
}

// nameOf is a path from the workspace, where it is in it.
func (v *openedReview) nameOf(path workspace.Name) string {
	return strings.TrimPrefix(string(path), string(v.Workspace)+"/")
}

// decideGit takes over, or forgets, settings of git by their IDs. An ID stands for what was
// shown: other settings have another one. One that fails does not keep the others.
func (a *app) decideGit(ids []string, d review.Decision) error {
	all, host, err := a.reviews()
	if err != nil {
		return err
	}
	var errs []error
	for _, id := range ids {
		errs = append(errs, a.decideOne(all, host, id, d))
	}
	return errors.Join(errs...)
}

func (a *app) decideOne(all []review.Reviewed, host policy.Host, id string, d review.Decision) error {
	g, err := findGit(all, id)
	if err != nil {
		return err
	}
	if d == review.Accept {
		if err := unreached(host.State, g); err != nil {
			return err
		}
	}
	if err := a.recordGit(g, host.State, host.Name, d); err != nil {
		return err
	}
	if d == review.Accept {
		if err := g.TakeOver(func() error { return unreached(host.State, g) }); err != nil {
			return fmt.Errorf("%w; to forget it: holdfast review reject --git %s", err, id)
		}
	}
	if err := g.Forget(); err != nil {
		return err
	}
	fmt.Fprintf(a.Stdout, "%sed %s: %s\n", d, text.Word(string(g.File)), g)
	return nil
}

// unreached is an error where a run is alive that may write to the file of settings.
func unreached(state string, g review.GitSettings) error {
	if alive := run.Alive(state, filepath.Dir(string(g.File))); len(alive) > 0 {
		return command.Usage(fmt.Errorf("the run %s is beginning or alive, and could change %s while it is written", alive[0], text.Word(string(g.File))), "try again when it has ended")
	}
	return nil
}

// findGit finds the settings with an ID in any workspace.
func findGit(all []review.Reviewed, id string) (review.GitSettings, error) {
	var done []workspace.Name
	for _, r := range all {
		if !r.Direct() || slices.Contains(done, r.Workspace) {
			continue
		}
		done = append(done, r.Workspace)
		waiting, _, err := review.WaitingGit(all, r.Workspace)
		if i := slices.IndexFunc(waiting, func(g review.GitSettings) bool { return g.ID == id }); i >= 0 {
			return waiting[i], nil
		}
		if err != nil {
			return review.GitSettings{}, err
		}
	}
	return review.GitSettings{}, command.Usage(fmt.Errorf("no settings of git with the ID %s wait", text.Word(id)), "see what waits with: holdfast review")
}

// recordGit records a decision in the log, before it is carried out.
func (a *app) recordGit(g review.GitSettings, state, by string, d review.Decision) error {
	log, err := review.OpenDecisions(filepath.Join(state, "log"), filepath.Join(state, "keys"), g.Of())
	if err != nil {
		return err
	}
	e := event.Event{Action: event.ReviewAnswer, Object: string(g.File), Verdict: event.Denied,
		Detail: map[string]string{"by": by, "decision": d.String(), "kind": "modified", "review": g.Of().Session, "settings": g.String()}}
	if d == review.Accept {
		e.Verdict = event.Allowed
	}
	return errors.Join(log.Put(e), log.Close(true))
}
