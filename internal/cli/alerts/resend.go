package alerts

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/internal/cli/archive"
	"holdfast.dev/holdfast/internal/cli/plans"
	"holdfast.dev/holdfast/internal/cli/words"
	"holdfast.dev/holdfast/internal/detect/alert"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/policy"
)

// resendGrace is how long alerts of a record are tried.
const resendGrace = 10 * time.Second

func newAlertsResend(a *app) *cobra.Command {
	var own string
	var again bool
	c := &cobra.Command{
		Use:   "resend [SESSION]",
		Short: "Send the alerts of a run to the sinks that did not get them",
		Long: `Send the alerts of a run to the sinks that did not get them, as its record
says. The record of a killed run does not say it: then all its alerts are sent. SESSION
is the name of a run, or the beginning of it; the default is the newest. The sinks are
those of your policy; a sink recognises an alert that it gets twice by its id.`,
		Example:           "  holdfast alerts resend\n  holdfast alerts resend --delivered\n  holdfast alerts resend --policy ci.yaml",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: archive.CompleteSessions(a.App, 0),
		RunE: func(c *cobra.Command, args []string) error {
			ctx := c.Context()
			if ctx == nil {
				ctx = context.Background()
			}
			return a.resend(ctx, args, own, again)
		},
	}
	c.Flags().Var((*command.TextFlag)(&own), "policy", "policy FILE that says where alerts go, instead of your own")
	c.Flags().BoolVar(&again, "delivered", false, "also send the alerts that were delivered")
	return c
}

// resend sends the alerts of a record. What is shown on a terminal is shown by
// alerts.
func (a *app) resend(ctx context.Context, args []string, own string, again bool) error {
	r, err := archive.Open(a.App)
	if err != nil {
		return err
	}
	info, err := r.Find(args)
	if err != nil {
		return err
	}
	session := text.Line(info.Session)
	if info.Open {
		return command.Usage(fmt.Errorf("the run %s has not ended: it sends its alerts itself", session), "wait for its end, then: holdfast alerts resend "+session)
	}
	options, err := a.alertOptions(own)
	if err != nil {
		return err
	}
	options.Sinks = slices.DeleteFunc(options.Sinks, func(s policy.AlertSink) bool { return s.Kind == alert.Terminal })
	if len(options.Sinks) == 0 {
		return command.Usage(errors.New("your policy has no sink to send alerts to"), "the kinds of sinks are in docs/policy.md, alerts.sinks; name the file with --policy FILE")
	}
	bad := false
	backlog, err := alert.ReadBacklog(ctx, info.Path)
	if err = archive.WarnDamaged(a.App, info, err, &bad); err != nil {
		return err
	}
	backlog.Again = again
	options.Grace, options.NoBound = resendGrace, true
	sinks, err := alert.Open(options)
	if err != nil {
		return err
	}
	return a.sendBacklog(session, sinks, backlog, bad)
}

// sendBacklog sends a backlog and prints what became of it.
func (a *app) sendBacklog(session string, sinks *alert.Dispatcher, backlog *alert.Backlog, bad bool) error {
	sent, unknown := sinks.Resend(backlog)
	for _, name := range unknown {
		a.Note(command.Yellow, "warning", "%s did not get some alerts, and your policy has no such sink", text.Line(name))
		bad = true
	}
	missed := sinks.Close()
	for _, u := range missed {
		a.Note(command.Yellow, "warning", "%s", text.Line(u.Error()))
		sent[u.Sink] -= len(u.Alerts)
	}
	for _, name := range slices.Sorted(maps.Keys(sent)) {
		fmt.Fprintf(a.Stdout, "%s delivered to %s\n", words.Plural(sent[name], "alert", "alerts"), text.Line(name))
	}
	switch {
	case len(missed) > 0:
		a.Note(command.Cyan, "hint", "try again: holdfast alerts resend %s", session)
		return command.Exit(command.ExitFailed)
	case bad:
		return command.Exit(command.ExitFailed)
	case len(sent) == 0:
		a.Note(command.Cyan, "note", "there is nothing to send")
	}
	return nil
}

// alertOptions are where alerts go by the user's policy, or by the file own. No
// project has a say in it.
func (a *app) alertOptions(own string) (alert.Options, error) {
	nowhere, err := os.MkdirTemp("", "holdfast-alerts-")
	if err != nil {
		return alert.Options{}, err
	}
	defer os.Remove(nowhere)
	flags := plans.Flags{Policy: own, Workspace: nowhere}
	options, err := flags.Options(a.App)
	if err != nil {
		return alert.Options{}, err
	}
	_, plan, err := plans.Compile(options)
	host, _ := os.Hostname() // it is for the reader of an alert alone
	return alert.Options{Sinks: plan.Alerts.Sinks, Host: host, Version: command.Release(), Terminal: func(line string) {
		fmt.Fprintf(a.Stderr, "%s %s\n", a.Paint(command.Red, "holdfast: alert:"), line)
	}}, err
}
