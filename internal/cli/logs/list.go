package logs

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/internal/cli/archive"
	"holdfast.dev/holdfast/internal/cli/words"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/record/audit"
)

func newLogList(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "list",
		Short:   "List the recorded runs, the newest first",
		Example: "  holdfast log list\n  holdfast log list --json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			r, err := archive.Open(a.App)
			if err != nil {
				return err
			}
			infos, err := audit.List(r.Logs)
			if err != nil {
				return err
			}
			rows := make([]archive.Summary, len(infos))
			for i, info := range infos {
				rows[i] = archive.Summarize(info)
				if after := r.SettledAfter(info.Session); after != nil {
					rows[i].HeldBack = len(after.Quarantined)
				}
			}
			if asJSON {
				err = command.WriteJSON(a.Stdout, rows)
			} else {
				err = a.printLogs(rows)
			}
			return errors.Join(err, a.warnRemoved(r))
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "show as JSON")
	return c
}

func (a *app) printLogs(rows []archive.Summary) error {
	if len(rows) == 0 {
		fmt.Fprintln(a.Stdout, "there are no records")
		return nil
	}
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SESSION\tBEGAN\tLASTED\tSTATE\tSIZE\tWORKSPACE\tCOMMAND")
	for _, l := range rows {
		state, span := l.State, "-"
		if l.Status != "" {
			state = "status " + text.Line(l.Status)
		}
		if l.HeldBack > 0 {
			state += fmt.Sprintf(", %d held back", l.HeldBack)
		}
		if !l.Last.IsZero() {
			span = words.Lasted(l.Last.Sub(l.Begin))
		}
		workspace := "-"
		if l.Workspace != "" {
			workspace = words.Cut(l.Workspace, 60)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", text.Line(l.Session), words.Moment(l.Begin), span, state, words.Size(l.Size), workspace, words.CommandLine(l.Command, 0, 60))
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("writing the list: %w", err)
	}
	_, err := io.WriteString(a.Stdout, table.String())
	return err
}

func newLogPrune(a *app) *cobra.Command {
	keep, older := -1, ageFlag(-1)
	dry := false
	c := &cobra.Command{
		Use:   "prune [--keep N] [--older DURATION]",
		Short: "Remove old records",
		Long: `Remove the records of runs that have ended: those above the newest N, and those
that are older than DURATION. The last signed checkpoint of each is kept, which
shows later that there was one. Every run removes what is above ` + fmt.Sprint(audit.MaxRuns) + `
runs or ` + words.Size(int64(audit.MaxTotal)) + ` automatically.`,
		Example: "  holdfast log prune --keep 20\n  holdfast log prune --older 30d --dry-run",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if keep < 0 && older < 0 {
				return command.Usage(errors.New("neither --keep nor --older is given"), "say which records to remove: --keep N or --older DURATION")
			}
			return a.prune(keep, time.Duration(older), dry)
		},
	}
	c.Flags().Var((*command.CountFlag)(&keep), "keep", "keep the newest N")
	c.Flags().Var(&older, "older", "remove what began longer ago than DURATION, such as 30d or 12h")
	c.Flags().BoolVar(&dry, "dry-run", false, "say what would be removed, and remove nothing")
	return c
}

func (a *app) prune(keep int, older time.Duration, dry bool) error {
	r, err := archive.Open(a.App)
	if err != nil {
		return err
	}
	removed, err := audit.Prune(r.Logs, r.Heads, dry, func(i audit.Info, n int, _ int64) bool {
		return (older < 0 || time.Since(i.Start) <= older) && (keep < 0 || n <= keep)
	})
	freed := int64(0)
	for _, i := range removed {
		fmt.Fprintf(a.Stdout, "%s  %s  %s\n", i.Session, words.Moment(i.Start), words.Size(i.Size))
		freed += i.Size
	}
	if err == nil && !dry {
		err = r.PruneExposed()
	}
	if err != nil {
		return err
	}
	word := "removed"
	if dry {
		word = "would be removed"
	}
	fmt.Fprintf(a.Stdout, "%s %s, %s\n", words.Plural(len(removed), "record", "records"), word, words.Size(freed))
	return nil
}
