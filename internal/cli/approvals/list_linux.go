package approvals

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"holdfast.dev/holdfast/internal/cli/words"
	"holdfast.dev/holdfast/internal/consent"
	"holdfast.dev/holdfast/internal/floor/command"
)

// requestJSON is a request as programs read it.
type requestJSON struct {
	ID      string         `json:"id"`
	Session string         `json:"session"`
	Kind    string         `json:"kind"`
	Asked   time.Time      `json:"asked"`
	Expires time.Time      `json:"expires"`
	Rule    string         `json:"rule,omitempty"`
	Reason  string         `json:"reason,omitempty"`
	Digest  string         `json:"digest"`
	Count   int            `json:"count"`
	Gist    string         `json:"gist"`
	What    []consent.Line `json:"what"` // made visible, as everywhere
}

func requestToJSON(r consent.Request) requestJSON {
	return requestJSON{
		ID: r.ID, Session: r.Session, Kind: string(r.Attempt.Kind), Asked: r.Asked.UTC(), Expires: r.Expires.UTC(),
		Rule: r.Rule, Reason: consent.Visible(r.Reason), Digest: r.Digest, Count: r.Count, Gist: consent.Summary(r.Attempt), What: consent.Describe(r),
	}
}

// waits is what all running sessions ask, and what they were granted.
func (a *app) waits(c *cobra.Command) ([]consent.Waiting, error) {
	ctx, stop := command.Interruptible(c)
	defer stop()
	p, err := a.approver("")
	if err != nil {
		return nil, err
	}
	all, err := consent.Waits(ctx, p.state)
	if err != nil && len(all) > 0 {
		a.Note(command.Yellow, "warning", "%v", err)
		err = nil
	}
	return all, err
}

func newApproveList(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "list",
		Short:   "List what waits for an answer, with exactly what would happen",
		Example: "  holdfast approve list\n  holdfast approve list --json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			all, err := a.waits(c)
			if err != nil {
				return err
			}
			requests := waitingRequests(all)
			if asJSON {
				out := []requestJSON{}
				for _, r := range requests {
					out = append(out, requestToJSON(r))
				}
				return command.WriteJSON(a.Stdout, out)
			}
			if len(requests) == 0 {
				_, err := fmt.Fprintln(a.Stdout, "nothing waits for an answer")
				return err
			}
			return a.printRequests(a.Stdout, requests, time.Now())
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "show as JSON")
	return c
}

// printRequests shows requests and what would happen, word for word.
func (a *app) printRequests(to io.Writer, requests []consent.Request, now time.Time) error {
	out := bufio.NewWriter(to)
	for i, r := range requests {
		if i > 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintf(out, "%s  %s\n", a.Tint(command.Bold, consent.Visible(r.ID)), requestHead(r, now))
		wide, what := 0, consent.Describe(r)
		for _, l := range what {
			wide = max(wide, len(l.Name))
		}
		for _, l := range what {
			fmt.Fprintf(out, "  %-*s  %s\n", wide, l.Name, l.Text)
		}
	}
	return out.Flush()
}

// requestHead says whose request it is, how old, and how long it still waits.
func requestHead(r consent.Request, now time.Time) string {
	text := fmt.Sprintf("of %s, asked %s ago, %s left", consent.Visible(r.Session), words.Span(now.Sub(r.Asked)), words.Span(r.Expires.Sub(now)))
	if r.Count > 1 {
		text += fmt.Sprintf(", %d times", r.Count)
	}
	return text
}

func newApproveGrants(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "grants",
		Short:   "List the approvals in force",
		Example: "  holdfast approve grants\n  holdfast approve grants --json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			all, err := a.waits(c)
			if err != nil {
				return err
			}
			return a.showGrants(liveGrants(all), asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "show as JSON")
	return c
}

// grantJSON is an approval as programs read it.
type grantJSON struct {
	ID      string    `json:"id"`
	Session string    `json:"session"`
	Covers  string    `json:"covers"`
	Scope   string    `json:"scope"`
	Begun   time.Time `json:"begun"`
	Expires time.Time `json:"expires,omitzero"` // of scope for
	Uses    int       `json:"uses,omitempty"`   // how often at most; none for as often as wanted
	Used    int       `json:"used"`
	By      string    `json:"by,omitempty"`
	Via     string    `json:"via,omitempty"`
	Reason  string    `json:"reason,omitempty"`
}

func (a *app) showGrants(all []consent.Grant, asJSON bool) error {
	rows := []grantJSON{}
	for _, g := range all {
		rows = append(rows, grantJSON{
			ID: g.ID, Session: g.Session, Covers: g.Covers.Words(), Scope: string(g.Scope), Begun: g.Begun.UTC(), Expires: g.Expires.UTC(),
			Uses: g.Uses, Used: g.Used, By: consent.Visible(g.By), Via: consent.Visible(g.Via), Reason: consent.Visible(g.Reason),
		})
	}
	switch {
	case asJSON:
		return command.WriteJSON(a.Stdout, rows)
	case len(rows) == 0:
		_, err := fmt.Fprintln(a.Stdout, "no approval is in force")
		return err
	}
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "GRANT\tSESSION\tHOLDS\tUSED\tBY\tCOVERS")
	for _, g := range rows {
		holds, used := "with the run", fmt.Sprint(g.Used)
		if !g.Expires.IsZero() {
			holds = words.Span(time.Until(g.Expires)) + " more"
		}
		if g.Uses > 0 {
			used += fmt.Sprintf(" of %d", g.Uses)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", g.ID, g.Session, holds, used, g.By, g.Covers)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("writing the list: %w", err)
	}
	_, err := io.WriteString(a.Stdout, text.String())
	return err
}

func newApproveWatch(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "watch",
		Short: "Show requests as they come, a line each",
		Long: `Show requests as they come and how they are answered, a line each, until you end it
(Ctrl-C). While it runs, requests wait for an answer as if a human were present.`,
		Example: "  holdfast approve watch\n  holdfast approve watch --json",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, stop := command.Interruptible(c)
			defer stop()
			p, err := a.approver("")
			if err != nil {
				return err
			}
			return a.watchApprovals(ctx, p.state, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "show as JSON, an object a line")
	return c
}

// watchApprovals prints changes until the context ends or the reader is gone.
func (a *app) watchApprovals(ctx context.Context, state string, asJSON bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	known := map[string]consent.Request{}
	var broken error
	err := consent.FollowWaits(ctx, state, func(all []consent.Waiting) {
		now := map[string]consent.Request{}
		for _, r := range waitingRequests(all) {
			now[r.Session+"/"+r.ID] = r
			if _, old := known[r.Session+"/"+r.ID]; !old && broken == nil {
				broken = a.printRequest("asks", r, asJSON)
			}
		}
		for name, r := range known {
			if _, still := now[name]; !still && broken == nil {
				broken = a.printRequest("over", r, asJSON)
			}
		}
		if known = now; broken != nil {
			cancel()
		}
	})
	if broken != nil || ctx.Err() != nil { // that is how it is ended
		return broken
	}
	return err
}

func (a *app) printRequest(what string, r consent.Request, asJSON bool) error {
	if asJSON {
		return command.WriteJSONLine(a.Stdout, struct {
			Event string `json:"event"`
			requestJSON
		}{what, requestToJSON(r)})
	}
	_, err := fmt.Fprintf(a.Stdout, "%s  %s  %s  %s  %s\n", time.Now().Format("15:04:05"), what, consent.Visible(r.ID), consent.Visible(r.Session), consent.Summary(r.Attempt))
	return err
}
