package logs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/internal/cli/archive"
	"holdfast.dev/holdfast/internal/cli/words"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/record/audit"
)

func newLogVerify(a *app) *cobra.Command {
	var v verifyFlags
	c := &cobra.Command{
		Use:   "verify [SESSION|FILE]",
		Short: "Check that a record is complete and as it was written",
		Long: `Check the chain of a record, its signatures, the count of every sensor, and the
checkpoints that were kept elsewhere. The answer is a word, and the first records
that do not fit:

  COMPLETE      every sensor watched for the whole run, and every event that one saw
                is in the record, as it was written
  PARTIAL       likewise, but something could not be observed on this host: what, and
                since when
  GAPS          what is in the record is as it was written, but some of it is missing
  TAMPERED      something was altered, removed, added or moved
  UNVERIFIABLE  nothing vouches for it: the key is not known, or it cannot be read

The exit status is 0 when all is COMPLETE, else 1; with --allow-partial it is 0 for
PARTIAL too.`,
		Example: `  holdfast log verify
  holdfast log verify --all
  holdfast log verify --key holdfast.pub copy.jsonl`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: archive.CompleteSessions(a.App, 0),
		RunE: func(c *cobra.Command, args []string) error {
			ctx, stop := command.Interruptible(c)
			defer stop()
			return a.verify(ctx, v, args)
		},
	}
	c.Flags().BoolVar(&v.all, "all", false, "check the records of all runs")
	c.Flags().BoolVar(&v.partial, "allow-partial", false, "exit with 0 for PARTIAL too, on hosts where not everything can be observed")
	c.Flags().BoolVar(&v.json, "json", false, "show as JSON")
	c.Flags().Var((*command.TextFlag)(&v.key), "key", "FILE of public keys to verify with, instead of those of this user")
	c.Flags().Var((*command.TextFlag)(&v.anchor), "anchor", "FILE of checkpoints that a file anchor kept")
	return c
}

// verifyFlags is what is verified against what.
type verifyFlags struct {
	all, json   bool
	partial     bool // PARTIAL is good enough
	key, anchor string
}

func (a *app) verify(ctx context.Context, v verifyFlags, args []string) error {
	r, err := archive.Open(a.App)
	if err != nil {
		return err
	}
	options, err := v.options(r)
	if err != nil {
		return err
	}
	infos, err := a.logsToVerify(r, args, v.all)
	gone, err := v.removedSessions(r, args, infos, err)
	if err != nil {
		return err
	}
	results := a.removedReports(r, gone, v.json)
	good := len(gone) == 0
	for _, info := range infos {
		if options.Anchored = v.anchor != ""; options.Anchored {
			if options.Notes, err = audit.AnchoredNotes(v.anchor, info.Session); err != nil {
				return err
			}
		}
		options.Session = r.ExpectedSession(info)
		report, err := audit.Verify(ctx, info.Path, options)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("verifying %s: %w", text.Word(info.Path), err)
		}
		good = good && (report.Verdict == audit.Complete || v.partial && report.Verdict == audit.Partial)
		report.Session = cmp.Or(report.Session, info.Session)
		results = append(results, report)
		if v.json {
			continue
		}
		if err := a.printVerdict(report); err != nil {
			return fmt.Errorf("printing the verdict: %w", err)
		}
	}
	if v.json {
		if err := command.WriteJSON(a.Stdout, results); err != nil {
			return err
		}
	}
	if !good {
		return command.Exit(command.ExitFailed)
	}
	return nil
}

// options reads what the record is verified against. A given key replaces all others:
// anyone with access to this user's files could have put theirs there.
func (v verifyFlags) options(r archive.Archive) (audit.VerifyOptions, error) {
	o := audit.VerifyOptions{Keys: r.Keys, Heads: r.Heads}
	if v.key != "" {
		key, err := os.ReadFile(v.key)
		if err != nil {
			return o, fmt.Errorf("reading the public keys: %w", err)
		}
		o.Keys = filepath.Join(r.Keys, "none")
		for line := range strings.Lines(string(key)) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				o.Trust = append(o.Trust, line)
			}
		}
		if len(o.Trust) == 0 {
			return o, command.Usage(fmt.Errorf("there is no key in %s", text.Word(v.key)), "print one with: holdfast log key show")
		}
	}
	return o, nil
}

// logsToVerify returns the session that args name, or else the file.
func (a *app) logsToVerify(r archive.Archive, args []string, all bool) ([]audit.Info, error) {
	infos, err := r.FindAll(args, all)
	var missing *archive.MissingError
	if len(args) == 0 || err == nil || !errors.As(err, &missing) {
		return infos, err
	}
	path := args[0]
	if !filepath.IsAbs(path) {
		path = filepath.Join(a.Dir, path)
	}
	st, statErr := os.Stat(path)
	switch {
	case errors.Is(statErr, fs.ErrNotExist) && !strings.Contains(args[0], "/"):
		return nil, err
	case statErr != nil:
		return nil, fmt.Errorf("reading a record: %w", statErr)
	case !st.Mode().IsRegular():
		return nil, command.Usage(fmt.Errorf("%s is not a file", text.Word(args[0])), "records are files; see: holdfast log list --json")
	}
	return []audit.Info{{Session: strings.TrimSuffix(filepath.Base(path), ".jsonl"), Path: path, Start: st.ModTime(), Size: st.Size()}}, nil
}

// signers names the keys of a record.
func signers(hashes []string) string {
	if len(hashes) == 0 {
		return "no key"
	}
	return "key " + text.Line(strings.Join(hashes[:min(few, len(hashes))], ", "))
}

// few is how many keys are named.
const few = 4

// maxProblems is how many problems of a record are printed.
const maxProblems = 20

func (a *app) printVerdict(report audit.Report) error {
	colour := map[audit.Verdict]string{audit.Complete: command.Green, audit.Partial: command.Yellow, audit.Gaps: command.Yellow}[report.Verdict]
	if colour == "" {
		colour = command.Red
	}
	var b strings.Builder
	running := ""
	if report.Open {
		running = "  (running: what is written so far)"
	}
	fmt.Fprintf(&b, "%s  %s  %s, %s by %s%s\n", a.Tint(colour, fmt.Sprintf("%-12s", report.Verdict)), text.Line(report.Session),
		words.Plural(report.Lines, "line", "lines"), words.Plural(report.Checkpoints, "signature", "signatures"), signers(report.Keys), running)
	for _, p := range report.Problems[:min(maxProblems, len(report.Problems))] {
		fmt.Fprintf(&b, "  %s\n", text.Line(p.String()))
	}
	if more := len(report.Problems) + report.More - maxProblems; more > 0 {
		fmt.Fprintf(&b, "  … and %d more; see --json\n", more)
	}
	for _, n := range report.Notes {
		fmt.Fprintf(&b, "  note: %s\n", text.Line(n))
	}
	_, err := fmt.Fprint(a.Stdout, b.String())
	return err
}
