// Package alerts is holdfast alerts: the alerts of records, the rules that raise them,
// and what sends them again or for another program. [Command] is the way in. Detection
// itself is internal/detect's.
package alerts

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/internal/cli/archive"
	"holdfast.dev/holdfast/internal/cli/words"
	"holdfast.dev/holdfast/internal/detect"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/record/audit"
)

// app is the world of these verbs.
type app struct{ *command.App }

// Command makes the verb holdfast alerts.
func Command(world *command.App) *cobra.Command {
	a := &app{world}
	var s alertSearch
	c := &cobra.Command{
		Use:   "alerts [SESSION]",
		Short: "Show what looked like an escape attempt, and why",
		Long: `Show the alerts that a run raised. SESSION is the name of a run, or the beginning of
it; the default is the newest. An alert refuses nothing: what it reports was refused or
permitted before. The rules are explained by: holdfast reference rules`,
		Example: `  holdfast alerts
  holdfast alerts --severity high --all
  holdfast alerts rules credential-denied
  holdfast alerts resend
  holdfast alerts test rules.yaml`,
		Annotations:       map[string]string{command.OwnArguments: "a session"},
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: archive.CompleteSessions(a.App, 0),
		RunE: func(c *cobra.Command, args []string) error {
			ctx, stop := command.Interruptible(c)
			defer stop()
			return a.alerts(ctx, s, args)
		},
	}
	c.Flags().BoolVar(&s.all, "all", false, "the alerts of all runs, the oldest first")
	c.Flags().BoolVar(&s.json, "json", false, "show as JSON, one alert a line")
	c.Flags().Var((*severityFlag)(&s.least), "severity", "only of this SEVERITY and above: info, low, medium, high, critical")
	c.RegisterFlagCompletionFunc("severity", cobra.FixedCompletions(severityWords(), cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveKeepOrder))
	c.AddCommand(newAlertsRules(a), newAlertsTest(a), newAlertsResend(a), newAlertsRelay(a))
	return c
}

func severityWords() []string {
	var out []string
	for _, s := range detect.Severities() {
		out = append(out, string(s))
	}
	return out
}

// severityFlag is a severity.
type severityFlag detect.Severity

func (f *severityFlag) String() string { return string(*f) }
func (f *severityFlag) Type() string   { return "SEVERITY" }
func (f *severityFlag) Set(s string) error {
	if detect.Severity(s).Level() == 0 {
		return fmt.Errorf("it is not one of %s", strings.Join(severityWords(), ", "))
	}
	*f = severityFlag(s)
	return nil
}

// alertSearch is which alerts are wanted, and how.
type alertSearch struct {
	all, json bool
	least     detect.Severity // "" for all
}

// listedAlert is an alert as it is in a record.
type listedAlert struct {
	Session     string          `json:"session"`
	Seq         uint64          `json:"seq"`
	Time        time.Time       `json:"time"`
	Rule        string          `json:"rule"`
	Severity    detect.Severity `json:"severity"`
	Title       string          `json:"title"`
	Technique   []string        `json:"technique,omitempty"`
	Object      string          `json:"object,omitempty"`
	Key         string          `json:"key,omitempty"`
	Count       int             `json:"count"`
	Events      []uint64        `json:"events,omitempty"`
	PID         int             `json:"pid,omitempty"`
	Executable  string          `json:"executable,omitempty"`
	Explanation string          `json:"explanation,omitempty"`
}

func (a *app) alerts(ctx context.Context, s alertSearch, args []string) error {
	r, err := archive.Open(a.App)
	if err != nil {
		return err
	}
	infos, err := r.FindAll(args, s.all)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(a.Stdout)
	bad, found := false, 0
	for _, info := range infos {
		var rows []listedAlert
		err = archive.WarnDamaged(a.App, info, s.log(ctx, info, &rows), &bad)
		if err == nil {
			found += len(rows)
			err = s.print(a, out, rows)
		}
		if err != nil {
			break
		}
	}
	if err == nil && found == 0 && !s.json {
		a.Note(command.Cyan, "note", "there are no such alerts")
	}
	if err = errors.Join(err, out.Flush()); err == nil && bad {
		err = command.Exit(command.ExitFailed)
	}
	return err
}

// log reads the alerts of one record. Of those that were raised again with a
// higher count, the last is kept, at the place of the first.
func (s alertSearch) log(ctx context.Context, info audit.Info, rows *[]listedAlert) error {
	at := map[[2]string]int{}
	programs := map[uint64]string{}
	return audit.Scan(ctx, info.Path, runtime.GOMAXPROCS(0), func(r *audit.Record) (bool, error) {
		action, _ := r.Field("action")
		return action == event.AlertRaise || action == event.ProcExec, nil
	}, func(r *audit.Record) error {
		e, err := r.Event()
		if err != nil {
			return err
		}
		if e.Action == event.ProcExec {
			programs[e.Process.Exec] = e.Process.Executable
			return nil
		}
		one := newListedAlert(detect.AlertOf(e), e.Seq)
		if one.Executable == "" {
			one.Executable = programs[e.Process.Exec]
		}
		if one.Severity.Level() < s.least.Level() {
			return nil
		}
		key := [2]string{one.Rule, one.Key}
		if i, again := at[key]; again {
			(*rows)[i].Count = one.Count
			return nil
		}
		at[key] = len(*rows)
		*rows = append(*rows, one)
		return nil
	})
}

func newListedAlert(one detect.Alert, seq uint64) listedAlert {
	return listedAlert{
		Session: one.Session, Seq: seq, Time: one.Time, Rule: one.Rule, Severity: one.Severity, Title: one.Title, Technique: one.Technique,
		Object: one.Object, Key: one.Key, Count: one.Count, Events: one.Events, PID: one.Process.PID, Executable: one.Process.Executable, Explanation: one.Explanation,
	}
}

func (s alertSearch) print(a *app, out *bufio.Writer, rows []listedAlert) error {
	for _, one := range rows {
		if s.json {
			if err := command.WriteJSONLine(out, one); err != nil {
				return err
			}
			continue
		}
		if s.all {
			fmt.Fprintf(out, "%s  ", text.Line(one.Session))
		}
		out.WriteString(a.alertText(one))
	}
	return nil
}

// alertText is one alert for people.
func (a *app) alertText(one listedAlert) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s  %s: %s\n", one.Time.Local().Format("2006-01-02 15:04:05"), a.severityText(one.Severity), text.Line(one.Rule), text.Line(one.Title))
	about := one.Object
	if about == "" || one.Rule == detect.FirstSeen {
		about = words.ShortHash(one.Key)
	}
	var more []string
	if about != "" {
		more = append(more, text.Word(about))
	}
	if one.Executable != "" {
		more = append(more, "by "+text.Word(one.Executable))
	}
	if one.Count > 1 {
		more = append(more, "at least "+words.Plural(one.Count, "time", "times"))
	}
	if len(one.Events) > 0 {
		shown := one.Events[:min(6, len(one.Events))]
		more = append(more, "records "+strings.Trim(strings.ReplaceAll(fmt.Sprint(shown), " ", ", "), "[]"))
	}
	if len(one.Technique) > 0 {
		more = append(more, text.Line(strings.Join(one.Technique, " ")))
	}
	if len(more) > 0 {
		fmt.Fprintf(&b, "    %s\n", strings.Join(more, "; "))
	}
	return b.String()
}

func (a *app) severityText(s detect.Severity) string {
	colour := command.Grey
	switch s {
	case detect.Critical, detect.High:
		colour = command.Red
	case detect.Medium:
		colour = command.Yellow
	}
	return a.Tint(colour, text.Line(fmt.Sprintf("%-8s", s)))
}
