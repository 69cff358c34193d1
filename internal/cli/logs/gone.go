package logs

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"holdfast.dev/holdfast/internal/cli/archive"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/record/audit"
)

// removedSessions lists the sessions, of those that args or all ask for, whose whole
// record was removed; err is why none can be verified. Without args it lists those that
// are newer than the newest record.
func (v verifyFlags) removedSessions(r archive.Archive, args []string, infos []audit.Info, err error) ([]string, error) {
	var missing *archive.MissingError
	if err != nil && !errors.As(err, &missing) || missing != nil && len(missing.Err.Several) > 0 {
		return nil, err
	}
	lost, lerr := audit.Lost(r.Logs, r.Heads)
	if lerr != nil {
		return nil, lerr
	}
	switch {
	case v.all:
	case len(args) == 0:
		lost = slices.DeleteFunc(lost, func(s string) bool { return len(infos) > 0 && s < infos[0].Session })
	case missing == nil:
		lost = nil
	default:
		lost = slices.DeleteFunc(lost, func(s string) bool { return !strings.HasPrefix(s, args[0]) })
		if len(lost) == 0 && v.anchor != "" && audit.ValidSession(args[0]) {
			notes, nerr := audit.AnchoredNotes(v.anchor, args[0])
			if nerr != nil {
				return nil, nerr
			}
			if len(notes) > 0 {
				lost = []string{args[0]}
			}
		}
	}
	if len(lost) > 0 && missing != nil {
		return lost, nil
	}
	return lost, err
}

// removedReports makes the reports on removed records, and prints them unless json.
func (a *app) removedReports(r archive.Archive, gone []string, json bool) []audit.Report {
	out := make([]audit.Report, 0, len(gone))
	const problem = "the whole record is gone, and 'holdfast log prune' did not remove it: a signature of it was kept elsewhere"
	for _, s := range gone {
		out = append(out, audit.Report{Session: s, Path: filepath.Join(r.Logs, s+".jsonl"), Verdict: audit.Tampered, Problems: []audit.Problem{{Verdict: audit.Tampered, What: problem}}})
		if !json {
			fmt.Fprintf(a.Stdout, "%s  %s  no lines\n  %s\n", a.Tint(command.Red, fmt.Sprintf("%-12s", audit.Tampered)), text.Line(s), problem)
		}
	}
	return out
}

// warnRemoved warns of records that were removed, and not by prune.
func (a *app) warnRemoved(r archive.Archive) error {
	lost, err := audit.Lost(r.Logs, r.Heads)
	if err != nil {
		return err
	}
	for _, s := range lost {
		fmt.Fprintf(a.Stderr, "holdfast: warning: the record of %s is gone, and was not pruned; see: holdfast log verify %s\n", text.Line(s), text.Line(s))
	}
	return nil
}
