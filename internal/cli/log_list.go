package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/internal/cli/words"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/record/audit"
)

// listedLog is a record as list shows it.
type listedLog struct {
	Session   string    `json:"session"`
	Path      string    `json:"path"`
	Begin     time.Time `json:"begin"`
	Last      time.Time `json:"last,omitzero"` // of the last record that could be read
	Size      int64     `json:"size"`
	State     string    `json:"state"` // running, ended or broken off
	Status    string    `json:"status,omitempty"`
	Workspace string    `json:"workspace,omitempty"`
	Command   []string  `json:"command,omitempty"`
	HeldBack  int       `json:"held_back,omitempty"` // files, when the supervisor was killed and the run settled afterwards
}

func newLogList(a *app) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "list",
		Short:   "List the recorded runs, the newest first",
		Example: "  holdfast log list\n  holdfast log list --json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			r, err := openArchive(a.App)
			if err != nil {
				return err
			}
			infos, err := audit.List(r.logs)
			if err != nil {
				return err
			}
			rows := make([]listedLog, len(infos))
			for i, info := range infos {
				rows[i] = peek(info)
				if after := r.settledOf(info.Session); after != nil {
					rows[i].HeldBack = len(after.Quarantined)
				}
			}
			if asJSON {
				err = command.WriteJSON(a.Stdout, rows)
			} else {
				err = a.printLogs(rows)
			}
			return errors.Join(err, a.warnGone(r))
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "show as JSON")
	return c
}

// peekBytes is how much of the beginning and the end of a log list reads.
const peekBytes = 64 << 10

// peek says what the beginning and the end of a log do. What cannot be read is
// left out: log verify is the place for that.
func peek(info audit.Info) listedLog {
	l := listedLog{Session: info.Session, Path: info.Path, Begin: info.Start.UTC(), Size: info.Size, State: "broken off"}
	if info.Open {
		l.State = "running"
	}
	f, err := os.Open(info.Path)
	if err != nil {
		return l
	}
	defer f.Close()
	for _, from := range []int64{0, max(0, info.Size-peekBytes)} {
		part, err := io.ReadAll(io.NewSectionReader(f, from, peekBytes))
		if err != nil {
			return l
		}
		for line := range bytes.Lines(part) {
			l.take(line)
		}
	}
	return l
}

func (l *listedLog) take(line []byte) {
	var r struct {
		Time    time.Time
		Action  string
		Object  string
		Process struct{ Argv []string }
		Detail  map[string]string
	}
	if json.Unmarshal(line, &r) != nil { // the first of the end is not whole
		return
	}
	if r.Time.After(l.Last) {
		l.Last = r.Time
	}
	switch r.Action {
	case event.SessionStart:
		l.Workspace = r.Object
	case event.ProcExec:
		if l.Command == nil {
			l.Command = r.Process.Argv
		}
	case event.SessionEnd:
		l.State, l.Status = "ended", r.Detail["status"]
	}
}

func (a *app) printLogs(rows []listedLog) error {
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
that are older than DURATION. The last signed checkpoint of each is kept, so that
it can be seen later that there was one. Every run removes what is above ` + fmt.Sprint(audit.MaxRuns) + `
runs or ` + words.Size(int64(audit.MaxTotal)) + ` by itself.`,
		Example: "  holdfast log prune --keep 20\n  holdfast log prune --older 30d --dry-run",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if keep < 0 && older < 0 {
				return command.Usage(errors.New("nothing says which records to remove"), "give --keep N or --older DURATION")
			}
			return a.prune(keep, time.Duration(older), dry)
		},
	}
	c.Flags().Var((*countFlag)(&keep), "keep", "keep the newest N")
	c.Flags().Var(&older, "older", "remove what began longer ago than DURATION, such as 30d or 12h")
	c.Flags().BoolVar(&dry, "dry-run", false, "say what would be removed, and remove nothing")
	return c
}

// countFlag is a number that is not negative.
type countFlag int

func (f *countFlag) String() string { return "" }

func (f *countFlag) Type() string { return "N" }

func (f *countFlag) Set(s string) error {
	var n int
	if _, err := fmt.Sscanf(s, "%d", &n); err != nil || fmt.Sprint(n) != s || n < 0 || n > math.MaxInt32 {
		return errors.New("it is no number from 0")
	}
	*f = countFlag(n)
	return nil
}

func (a *app) prune(keep int, older time.Duration, dry bool) error {
	r, err := openArchive(a.App)
	if err != nil {
		return err
	}
	infos, err := audit.List(r.logs)
	if err != nil {
		return err
	}
	removed, freed := 0, int64(0)
	for i, info := range infos {
		old := older >= 0 && time.Since(info.Start) > older
		if info.Open || !old && (keep < 0 || i < keep) {
			continue
		}
		if !dry {
			if err := audit.Remove(info, r.heads); err != nil {
				return fmt.Errorf("removing an old record: %w", err)
			}
		}
		fmt.Fprintf(a.Stdout, "%s  %s  %s\n", info.Session, words.Moment(info.Start), words.Size(info.Size))
		removed++
		freed += info.Size
	}
	if !dry {
		if err := policy.PruneExposed(filepath.Dir(r.logs), policy.MaxExposed); err != nil {
			return err
		}
	}
	word := "removed"
	if dry {
		word = "would be removed"
	}
	fmt.Fprintf(a.Stdout, "%s %s, %s\n", words.Plural(removed, "record", "records"), word, words.Size(freed))
	return nil
}
