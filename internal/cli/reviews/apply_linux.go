package reviews

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/internal/boundary/workspace"
	"holdfast.dev/holdfast/internal/cli/words"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/review"
	"holdfast.dev/holdfast/internal/run"
)

func newReviewApply(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "apply [flags] [SESSION]",
		Short: "Apply the accepted changes to the workspace",
		Long: `Write accepted changes into the workspace, a file at a time. A file that you
changed since the run began is left alone, and its three sides are shown. An
interrupted apply is continued by the next one.`,
		Example: "  holdfast review apply",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return a.withReview(c, firstArgument(args), func(ctx context.Context, v *openedReview) error {
				v.json = asJSON
				return v.apply(ctx, review.Options{})
			})
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "show as JSON what was done")
	return c
}

// apply applies what is accepted, and reports what could not be.
func (v *openedReview) apply(ctx context.Context, o review.Options) error {
	if err := v.begin(); err != nil {
		return err
	}
	for _, session := range run.Alive(v.host.State, string(v.Workspace)) {
		v.a.Note(command.Yellow, "warning", "the run %s is still running in %s: it can read and change what is applied there at once", text.Line(session), text.Word(string(v.Workspace)))
	}
	n := v.set.Counts()
	err := v.record.Put(event.Event{Action: event.ReviewApply, Object: string(v.Workspace), Verdict: event.Allowed,
		Detail: map[string]string{"by": v.by, "review": v.Session, "accepted": strconv.Itoa(n.Accepted), "safe": strconv.FormatBool(o.Safe)}})
	if err != nil {
		return err
	}
	r, err := v.set.Apply(ctx, o)
	rerr := v.recordApply(r)
	if err == nil {
		err = rerr
	}
	if v.json {
		err = errors.Join(err, command.WriteJSON(v.a.Stdout, r))
	} else {
		err = errors.Join(v.showApply(r), err)
	}
	if serr := v.finish(r); err == nil {
		err = serr
	}
	if err != nil {
		return err
	}
	if !v.settled(r) {
		return command.Exit(command.ExitFailed)
	}
	return nil
}

// settled reports whether nothing of the review is left: not a hunk either.
func (v *openedReview) settled(r review.Report) bool {
	return r.Settled && len(r.Conflicts)+len(r.Refused) == 0 && !slices.ContainsFunc(v.set.Changes, isOpen)
}

// isOpen reports whether a change, or a hunk of it, is undecided and could be
// applied.
func isOpen(c *review.Change) bool { return c.Decision == review.Undecided && c.Cannot == "" }

// recordApply records what became of each path.
func (v *openedReview) recordApply(r review.Report) error {
	put := func(p workspace.Name, verdict event.Verdict, detail map[string]string) error {
		detail["by"], detail["review"] = v.by, v.Session
		return v.record.Put(event.Event{Action: event.ReviewApply, Object: filepath.Join(string(v.Workspace), string(p)), Verdict: verdict, Detail: detail})
	}
	for _, p := range r.Applied {
		if err := put(p, event.Allowed, map[string]string{}); err != nil {
			return err
		}
	}
	for _, c := range r.Conflicts {
		if err := put(c.Path, event.Denied, map[string]string{"reason": "conflict: " + c.Why}); err != nil {
			return err
		}
	}
	for _, p := range r.Refused {
		if err := put(p.Path, event.Denied, map[string]string{"reason": p.Why}); err != nil {
			return err
		}
	}
	return nil
}

// finish notes how far the review is. A review with nothing left is forgotten.
func (v *openedReview) finish(r review.Report) error {
	err := v.record.Close(true)
	v.record = nil
	if err != nil {
		return err
	}
	n := v.set.Counts()
	switch {
	case v.settled(r) && n.Cannot == 0 && !v.Direct():
		return v.Forget()
	case v.settled(r):
		return v.SetState(workspace.ReviewApplied)
	case n.Applied > 0:
		return v.SetState(workspace.ReviewPartly)
	}
	return nil
}

func (v *openedReview) showApply(r review.Report) error {
	w := bufio.NewWriter(v.a.Stdout)
	list := func(colour, word string, problems []review.Problem) {
		for _, p := range problems {
			fmt.Fprintf(w, "%s %s: %s\n", v.a.Tint(colour, word), fileName(string(p.Path)), text.Line(p.Why))
		}
	}
	list(command.Yellow, "recovered", r.Recovered)
	for _, p := range r.Applied {
		fmt.Fprintf(w, "%s %s\n", v.a.Tint(command.Green, "applied"), fileName(string(p)))
	}
	list(command.Yellow, "left", r.Left)
	list(command.Red, "not applied", r.Refused)
	for i := range r.Conflicts {
		v.writeConflict(w, &r.Conflicts[i])
	}
	n := v.set.Counts()
	fmt.Fprintln(w, v.countsText(n))
	switch {
	case len(r.Conflicts) > 0:
		fmt.Fprintf(w, "%s\n", v.a.Tint(command.Grey, "to go on with a conflict: bring the file back to its base and apply again; or merge by hand what\n'holdfast review cat PATH' prints, and reject the change"))
	case len(r.Applied)+len(r.Refused) == 0 && n.Accepted == 0 && n.Undecided > 0:
		fmt.Fprintf(w, "%s\n", v.a.Tint(command.Grey, "nothing is accepted: holdfast review -i, or holdfast review accept PATH"))
	case n.Undecided > 0: // why the status is 1
		fmt.Fprintf(w, "%s\n", v.a.Tint(command.Grey, words.Plural(n.Undecided, "change is", "changes are")+" left to decide: holdfast review"))
	}
	return w.Flush()
}

// writeConflict shows the three sides of a change that does not fit any more.
func (v *openedReview) writeConflict(w io.Writer, c *review.Conflict) {
	fmt.Fprintf(w, "%s %s: %s\n", v.a.Tint(command.Red, "conflict"), fileName(string(c.Path)), text.Line(c.Why))
	for _, one := range []struct {
		name string
		side review.Side
	}{{"base", c.Base}, {"yours", c.Theirs}, {"the run's", c.Ours}} {
		fmt.Fprintf(w, "  %-10s %s\n", one.name, aboutSide(one.side))
	}
	for _, one := range []struct {
		title    string
		from, to review.Side
	}{{"base → yours", c.Base, c.Theirs}, {"base → the run's", c.Base, c.Ours}, {"yours → the run's", c.Theirs, c.Ours}} {
		if !one.from.Known || !one.to.Known {
			continue
		}
		if one.title == "yours → the run's" && c.Base.Known {
			continue
		}
		d := review.DiffSides(one.from, one.to)
		if d == nil || len(d.Hunks) == 0 {
			continue
		}
		fmt.Fprintf(w, "  %s\n", v.a.Tint(command.Bold, one.title))
		for i := range d.Hunks {
			v.writeHunk(w, d, i, 0)
		}
	}
}

func aboutSide(s review.Side) string {
	switch {
	case !s.Known:
		return "not known any more"
	case s.Type == review.None:
		return "not there"
	case s.Type == review.Link:
		return "link to " + text.Word(s.Target)
	case s.Type != review.File:
		return fmt.Sprintf("%s, mode %04o", typeName(s.Type), s.Mode)
	}
	sum := ""
	if s.SHA256 != "" {
		sum = ", sha256 " + s.SHA256[:min(16, len(s.SHA256))] + "…"
	}
	return fmt.Sprintf("mode %04o, %s%s", s.Mode, words.Size(s.Size), sum)
}
