package reviews

import (
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"holdfast.dev/holdfast/internal/boundary/workspace"
	"holdfast.dev/holdfast/internal/cli/words"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/review"
)

func newReviewList(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "list",
		Short:   "List the runs whose changes wait, and the last ones in direct mode",
		Example: "  holdfast review list\n  holdfast review list --json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, stop := command.Interruptible(c)
			defer stop()
			return a.listReviews(ctx, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "show as JSON")
	return c
}

// listedReview is a review as list shows it.
type listedReview struct {
	review.Reviewed
	Counts *review.Counts `json:"counts,omitempty"` // nil of a run that is not over, or cannot be read
	Error  string         `json:"error,omitempty"`
}

// maxShown is how many runs in direct mode list shows in addition to those that wait.
const maxShown = 10

func (a *app) listReviews(ctx context.Context, asJSON bool) error {
	all, host, err := a.reviews()
	if err != nil {
		return err
	}
	rows := []listedReview{}
	direct := 0
	for _, r := range all {
		if r.Direct() && !r.Waits() {
			if direct++; direct > maxShown && !asJSON {
				continue
			}
		}
		row := listedReview{Reviewed: r}
		if !r.Running() {
			v := &openedReview{a: a, Reviewed: r, host: host}
			if err := v.read(ctx); err != nil {
				row.Error = err.Error()
			} else {
				n := v.set.Counts()
				row.Counts = &n
				v.set.Close()
			}
		}
		rows = append(rows, row)
	}
	if asJSON {
		return command.WriteJSON(a.Stdout, rows)
	}
	return a.printReviews(rows)
}

func (a *app) printReviews(rows []listedReview) error {
	if len(rows) == 0 {
		fmt.Fprintln(a.Stdout, "nothing waits for review, and no run changed anything")
		return nil
	}
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SESSION\tENDED\tSTATE\tCHANGES\tFLAGGED\tWORKSPACE")
	for _, r := range rows {
		changes, flagged := "-", "-"
		if r.Counts != nil {
			changes, flagged = fmt.Sprint(r.Counts.Changes), fmt.Sprint(r.Counts.Flagged)
		}
		ended := "-"
		if !r.Ended.IsZero() {
			ended = words.Moment(r.Ended)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", text.Line(r.Session), ended, stateOf(r.Reviewed), changes, flagged, words.Cut(string(r.Workspace), 60))
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("writing the list: %w", err)
	}
	for _, r := range rows {
		if r.Error != "" {
			fmt.Fprintf(&table, "%s cannot be read: %s\n", text.Line(r.Session), text.Line(r.Error))
		}
	}
	_, err := io.WriteString(a.Stdout, table.String())
	return err
}

// stateOf is a state in a word of ours.
func stateOf(r review.Reviewed) string {
	switch {
	case r.Direct() && r.Waits():
		return "held back"
	case r.Direct():
		return "in the workspace"
	case r.Running():
		return "running"
	case r.State == workspace.ReviewPartly:
		return "waits, partly applied"
	case r.Waits():
		return "waits"
	}
	return text.Line(string(r.State))
}
