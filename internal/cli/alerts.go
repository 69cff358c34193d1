package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/internal/detect"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/record/audit"
)

func newAlertsCommand(a *app) *cobra.Command {
	var s alertSearch
	c := &cobra.Command{
		Use:   "alerts [SESSION]",
		Short: "Show what looked like an escape attempt, and why",
		Long: `Show the alerts that a run raised. SESSION is the name of a run, or the beginning of
it; without one the newest is meant. An alert refuses nothing: what it is about was
refused or permitted before. The rules are explained by: holdfast reference rules`,
		Example: `  holdfast alerts
  holdfast alerts --severity high --all
  holdfast alerts rules credential-denied
  holdfast alerts test rules.yaml`,
		Annotations:       map[string]string{ownArguments: "a session"},
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.sessions(0),
		RunE: func(c *cobra.Command, args []string) error {
			ctx, stop := interruptible(c)
			defer stop()
			return a.alerts(ctx, s, args)
		},
	}
	c.Flags().BoolVar(&s.all, "all", false, "the alerts of all runs, the oldest first")
	c.Flags().BoolVar(&s.json, "json", false, "show as JSON, one alert a line")
	c.Flags().Var((*severityFlag)(&s.least), "severity", "only of this SEVERITY and above: info, low, medium, high, critical")
	c.RegisterFlagCompletionFunc("severity", cobra.FixedCompletions(severityWords(), cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveKeepOrder))
	c.AddCommand(newAlertsRules(a), newAlertsTest(a))
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
		return fmt.Errorf("it is none of %s", strings.Join(severityWords(), ", "))
	}
	*f = severityFlag(s)
	return nil
}

// alertSearch is which alerts are wanted, and how.
type alertSearch struct {
	all, json bool
	least     detect.Severity // "" for all
}

// listedAlert is an alert as it stands in a record.
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
	r, err := a.archive()
	if err != nil {
		return err
	}
	infos, err := r.findAll(args, s.all)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(a.Stdout)
	bad, found := false, 0
	for _, info := range infos {
		var rows []listedAlert
		err = a.damaged(info, s.log(ctx, info, &rows), &bad)
		if err == nil {
			found += len(rows)
			err = s.print(a, out, rows)
		}
		if err != nil {
			break
		}
	}
	if err == nil && found == 0 && !s.json {
		a.note(cyan, "note", "there is no such alert")
	}
	if err = errors.Join(err, out.Flush()); err == nil && bad {
		err = &exitError{exitFailed}
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
		one := alertOf(e)
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

func alertOf(e event.Event) listedAlert {
	d := e.Detail
	one := listedAlert{
		Session: e.Session, Seq: e.Seq, Time: e.Time.UTC(), Rule: e.Object, Severity: detect.Severity(d["severity"]), Title: d["title"],
		Object: d["object"], Key: d["key"], PID: e.Process.PID, Executable: e.Process.Executable, Explanation: d["explanation"],
	}
	if d["technique"] != "" {
		one.Technique = strings.Split(d["technique"], ",")
	}
	one.Count, _ = strconv.Atoi(d["count"])
	one.Count = max(1, one.Count)
	for s := range strings.SplitSeq(d["events"], ",") {
		if n, err := strconv.ParseUint(s, 10, 64); err == nil {
			one.Events = append(one.Events, n)
		}
	}
	return one
}

func (s alertSearch) print(a *app, out *bufio.Writer, rows []listedAlert) error {
	for _, one := range rows {
		if s.json {
			if err := writeJSONLine(out, one); err != nil {
				return err
			}
			continue
		}
		if s.all {
			fmt.Fprintf(out, "%s  ", oneLine(one.Session))
		}
		out.WriteString(a.alertText(one))
	}
	return nil
}

// alertText is one alert for people.
func (a *app) alertText(one listedAlert) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s  %s: %s\n", one.Time.Local().Format("2006-01-02 15:04:05"), a.severityText(one.Severity), oneLine(one.Rule), oneLine(one.Title))
	about := one.Object
	if about == "" || one.Rule == detect.FirstSeen {
		about = shortHash(one.Key)
	}
	var more []string
	if about != "" {
		more = append(more, quoted(about))
	}
	if one.Executable != "" {
		more = append(more, "by "+quoted(one.Executable))
	}
	if one.Count > 1 {
		more = append(more, "at least "+plural(one.Count, "time", "times"))
	}
	if len(one.Events) > 0 {
		shown := one.Events[:min(6, len(one.Events))]
		more = append(more, "records "+strings.Trim(strings.ReplaceAll(fmt.Sprint(shown), " ", ", "), "[]"))
	}
	more = append(more, oneLine(strings.Join(one.Technique, " ")))
	fmt.Fprintf(&b, "    %s\n", strings.Join(more, "; "))
	return b.String()
}

func (a *app) severityText(s detect.Severity) string {
	colour := grey
	switch s {
	case detect.Critical, detect.High:
		colour = red
	case detect.Medium:
		colour = yellow
	}
	return a.tint(colour, oneLine(fmt.Sprintf("%-8s", s)))
}
