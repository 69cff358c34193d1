// Package incidents is log report: a document about a run for people who were not
// there. [Command] is the way in. It collects what the document is made of (the
// record, the rows of the matrix, the changes that wait); record/incident writes it.
package incidents

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/internal/cli/archive"
	"holdfast.dev/holdfast/internal/cli/lines"
	"holdfast.dev/holdfast/internal/cli/reviews"
	"holdfast.dev/holdfast/internal/detect"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/document"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/record/audit"
	"holdfast.dev/holdfast/internal/record/incident"
)

// app is the world of these verbs.
type app struct{ *command.App }

// reportFlags is what a command line of log report says.
type reportFlags struct{ format, output string }

// reportFormats are the formats of a report of a run, the default first.
var reportFormats = []string{"markdown", "html"}

// Command makes the verb holdfast log report.
func Command(world *command.App) *cobra.Command {
	a := &app{world}
	o := reportFlags{format: reportFormats[0]}
	c := &cobra.Command{
		Use:   "report [SESSION]",
		Short: "Write a report of a run for people who were not there",
		Long: `Write what a run attempted, in order, and what held it; what got through by
permission; what to check or rotate: credentials that were lent, hosts that were
reached, files that a host executes; how to retest; and what could not be observed.
The verdict on the record comes first. It is one document, in Markdown or as one
page of HTML that loads and executes nothing, and its length is bounded.`,
		Example: `  holdfast log report
  holdfast log report 20261122 -o incident.md
  holdfast log report --format html -o incident.html`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: archive.CompleteSessions(a.App, 0),
		RunE: func(c *cobra.Command, args []string) error {
			if !slices.Contains(reportFormats, o.format) {
				return command.Usage(fmt.Errorf("there is no format %s", text.Word(o.format)), "the formats are "+strings.Join(reportFormats, ", "))
			}
			ctx, stop := command.Interruptible(c)
			defer stop()
			return a.incident(ctx, o, args)
		},
	}
	c.Flags().Var((*command.TextFlag)(&o.format), "format", "FORMAT: "+strings.Join(reportFormats, ", "))
	c.Flags().VarP((*command.TextFlag)(&o.output), "output", "o", "FILE to write to, which must not exist")
	c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(reportFormats, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// incident writes the report of a run.
func (a *app) incident(ctx context.Context, o reportFlags, args []string) (err error) {
	r, err := archive.Open(a.App)
	if err != nil {
		return err
	}
	info, err := r.Find(args)
	if err != nil {
		return err
	}
	var to io.Writer = a.Stdout
	if o.output != "" {
		// Only this user may read it, and nothing is overwritten.
		f, err := os.OpenFile(o.output, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return fmt.Errorf("making the file: %w", err)
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		to = f
	}
	doc, err := a.document(ctx, r, info)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(to)
	write := doc.Markdown
	if o.format == "html" {
		write = doc.HTML
	}
	if err := write(out); err != nil {
		return err
	}
	return out.Flush()
}

// document reads a record and what is kept beside it.
func (a *app) document(ctx context.Context, r archive.Archive, info audit.Info) (document.Document, error) {
	rows, noRows := matrixRows(ctx)
	b := incident.New(incident.Options{
		Session: info.Session, File: text.Word(info.Path), Rules: detect.Builtin(), Rows: rows,
		Executes: executesHere(), Usual: lines.Usual,
	})
	events := 0
	d := audit.NewDecoder()
	t, err := r.ReadVerified(ctx, info, func(record *audit.Record) error {
		err := d.Decode(record)
		if err == nil {
			b.Add(d.Event)
			events++
		}
		return err
	})
	var damage *audit.DamageError
	if err != nil && (events == 0 || !errors.As(err, &damage)) {
		return document.Document{}, err
	}
	f := incident.Findings{Record: t.Record, Running: t.Running, Problems: t.Problems, Settled: settledLines(r.SettledAfter(info.Session))}
	if damage != nil {
		f.Problems = append(f.Problems, damage.Error())
	}
	if noRows != nil {
		f.Problems = append(f.Problems, noRows.Error())
	}
	if f.Changes, err = reviews.Changes(ctx, a.App, info.Session); err != nil {
		f.Problems = append(f.Problems, "the list of what was changed cannot be read: "+err.Error())
	}
	return b.Document(f), nil
}

// settledLines is what settling found after the supervisor was killed, a line each.
func settledLines(s *archive.Settled) (lines []string) {
	if s == nil {
		return nil
	}
	for _, q := range s.Quarantined {
		lines = append(lines, fmt.Sprintf("held back %s (%s), now at %s", q.Path, q.Reason, q.Held))
	}
	for _, f := range s.Flagged {
		lines = append(lines, fmt.Sprintf("%s %s (%s)", f.Change, f.Path, f.Reason))
	}
	return append(lines, s.Warnings...)
}
