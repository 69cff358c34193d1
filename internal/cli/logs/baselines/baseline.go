// Package baselines is log baseline: what is normal in a workspace, learnt from runs
// and forgotten again. [Command] is the way in. What counts as new is
// detect/baseline's to say.
package baselines

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/internal/cli/archive"
	"holdfast.dev/holdfast/internal/cli/words"
	"holdfast.dev/holdfast/internal/detect/baseline"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/record/audit"
)

// app is the world of these verbs.
type app struct{ *command.App }

// Command makes the verb holdfast log baseline.
func Command(world *command.App) *cobra.Command {
	a := &app{world}
	var w workspaceFlag
	var asJSON bool
	c := &cobra.Command{
		Use:   "baseline",
		Short: "Show what is normal in a workspace, and learn it from runs",
		Long: `Show what is normal in the workspace: the programs, hosts, directories and tools of
the runs that it was learnt from. From then on a run reports what is new. Nothing is
learnt automatically, and in a workspace without a baseline nothing counts as new.`,
		Example: `  holdfast log baseline learn
  holdfast log baseline
  holdfast log baseline forget 20261126T131819`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.showBaseline(w, asJSON) },
	}
	c.PersistentFlags().Var((*command.TextFlag)(&w.dir), "workspace", "DIR that the baseline is of (default: the workspace of a run here)")
	c.Flags().BoolVar(&asJSON, "json", false, "show as JSON, with the runs that each thing is known from")
	c.AddCommand(newBaselineLearn(a, &w), newBaselineForget(a, &w))
	return c
}

func newBaselineLearn(a *app, w *workspaceFlag) *cobra.Command {
	var l learnFlags
	c := &cobra.Command{
		Use:   "learn [SESSION...]",
		Short: "Learn from runs of the workspace",
		Long: `Learn from the named runs, or from the newest of the workspace. Nothing is learnt
from a run that raised an alert above low, or whose record is incomplete or altered,
unless you give --anyway, which the baseline notes.`,
		Example: `  holdfast log baseline learn
  holdfast log baseline learn --all --dry-run
  holdfast log baseline learn 20261126T131819 --anyway`,
		ValidArgsFunction: a.someSessions(),
		RunE: func(c *cobra.Command, args []string) error {
			ctx, stop := command.Interruptible(c)
			defer stop()
			return a.learnNormal(ctx, *w, l, args)
		},
	}
	c.Flags().BoolVar(&l.all, "all", false, fmt.Sprintf("learn from the last %d runs of the workspace that can be learnt from", baseline.MaxRuns))
	c.Flags().BoolVar(&l.anyway, "anyway", false, "also learn from runs with serious alerts or doubtful records: you looked at them")
	c.Flags().BoolVar(&l.dry, "dry-run", false, "say what would be new to the baseline, and learn nothing")
	return c
}

func newBaselineForget(a *app, w *workspaceFlag) *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:   "forget SESSION...",
		Short: "Forget what was learnt from runs",
		Long: `Forget what was learnt from these runs and from no other. Their records need not
exist any more. With --all the workspace has no baseline any more, and nothing counts
as new.`,
		Example: "  holdfast log baseline forget 20261126T131819\n  holdfast log baseline forget --all",
		RunE:    func(_ *cobra.Command, args []string) error { return a.forgetNormal(*w, args, all) },
	}
	c.Flags().BoolVar(&all, "all", false, "forget the whole baseline of the workspace")
	return c
}

// someSessions completes the names of any number of sessions.
func (a *app) someSessions() cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, begin string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return archive.CompleteSessions(a.App, len(args))(c, args, begin)
	}
}

// workspaceFlag selects the workspace of a baseline.
type workspaceFlag struct {
	dir string // "" for that of a run here
}

// openedBaseline is a baseline with its file and workspace.
type openedBaseline struct {
	*baseline.Baseline
	file      string
	workspace string // absolute, without links where it is there
	archive   archive.Archive
}

func (a *app) openBaseline(w workspaceFlag) (openedBaseline, error) {
	o, err := a.locateBaseline(w)
	if err != nil {
		return o, err
	}
	if o.Baseline, err = baseline.ReadFile(o.file); err != nil {
		return o, &damagedBaseline{err}
	}
	return o, nil
}

func (a *app) locateBaseline(w workspaceFlag) (openedBaseline, error) {
	r, err := archive.Open(a.App)
	if err != nil {
		return openedBaseline{}, err
	}
	dir := w.dir
	if dir == "" {
		host, err := policy.ThisHost(a.Env, a.Dir)
		if err != nil {
			return openedBaseline{}, err
		}
		dir = policy.WorkspaceAt(host)
	}
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(a.Dir, dir)
	}
	if found, err := filepath.EvalSymlinks(dir); err == nil { // one that is gone had this name
		dir = found
	}
	dir = filepath.Clean(dir)
	return openedBaseline{file: baseline.File(filepath.Dir(r.Logs), dir), workspace: dir, archive: r}, nil
}

// damagedBaseline is a baseline that cannot be read.
type damagedBaseline struct{ err error }

func (e *damagedBaseline) Error() string { return e.err.Error() }
func (e *damagedBaseline) Unwrap() error { return e.err }
func (e *damagedBaseline) Hint() string {
	return "remove it and learn again: holdfast log baseline forget --all"
}

// shownBaseline is a baseline as data.
type shownBaseline struct {
	Workspace string            `json:"workspace"`
	Runs      []baseline.Run    `json:"runs"`
	Things    []shownThing      `json:"things"`
	Most      map[string]uint64 `json:"most"` // of any run: events by action, refusals, and bytes that left
}

type shownThing struct {
	Kind string   `json:"kind"`
	Name string   `json:"name"`
	Runs []string `json:"runs"` // that had to do with it
}

func (a *app) showBaseline(w workspaceFlag, asJSON bool) error {
	b, err := a.openBaseline(w)
	if err != nil {
		return err
	}
	if asJSON {
		out := shownBaseline{Workspace: b.workspace, Runs: append([]baseline.Run{}, b.Runs...), Things: []shownThing{}, Most: b.Most()}
		for _, k := range baseline.Kinds() {
			for _, one := range b.Known(k) {
				out.Things = append(out.Things, shownThing{k.String(), one.Name, one.Runs})
			}
		}
		return command.WriteJSON(a.Stdout, out)
	}
	if len(b.Runs) == 0 {
		a.Note(command.Cyan, "note", "there is no baseline of %s: learn what is normal there with 'holdfast log baseline learn'", text.Word(b.workspace))
		return nil
	}
	_, err = io.WriteString(a.Stdout, a.baselineText(b))
	return err
}

// headings are the kinds of things for people.
var headings = map[baseline.Kind]string{
	baseline.Program: "PROGRAMS", baseline.Host: "HOSTS", baseline.RefusedHost: "HOSTS THAT WERE REFUSED", baseline.Method: "REQUESTS",
	baseline.Read: "DIRECTORIES READ", baseline.RefusedRead: "DIRECTORIES WHOSE READING WAS REFUSED", baseline.Write: "DIRECTORIES WRITTEN TO",
	baseline.RefusedWrite: "DIRECTORIES WHERE WRITING WAS REFUSED", baseline.Tool: "TOOLS",
}

func (a *app) baselineText(b openedBaseline) string {
	var t strings.Builder
	fmt.Fprintf(&t, "Normal in %s: learnt from %s, the first of %s\n", text.Word(b.workspace), words.Plural(len(b.Runs), "run", "runs"), words.Moment(firstStart(b.Runs)))
	for _, r := range b.Runs {
		fmt.Fprintf(&t, "  %s  began %s, learnt %s\n", text.Line(r.Session), words.Moment(r.Start), words.Moment(r.Learnt))
		for _, why := range r.Anyway {
			fmt.Fprintf(&t, "    %s %s\n", a.Tint(command.Yellow, "learnt anyway:"), text.Line(why))
		}
	}
	for _, k := range baseline.Kinds() {
		known := b.Known(k)
		if len(known) == 0 {
			continue
		}
		fmt.Fprintf(&t, "%s\n", a.Tint(command.Bold, headings[k]))
		for _, one := range known {
			fmt.Fprintf(&t, "  %s%s\n", text.Word(words.ShortHash(one.Name)), a.Tint(command.Grey, fmt.Sprintf("  (%s)", learntFromText(one.Runs, len(b.Runs)))))
		}
	}
	fmt.Fprintf(&t, "%s\n", a.Tint(command.Bold, "AT MOST, IN ONE RUN"))
	most := b.Most()
	for _, name := range slices.Sorted(maps.Keys(most)) {
		fmt.Fprintf(&t, "  %s %d\n", name, most[name])
	}
	return t.String()
}

func firstStart(runs []baseline.Run) time.Time {
	first := runs[0].Start
	for _, r := range runs {
		if r.Start.Before(first) {
			first = r.Start
		}
	}
	return first
}

// learntFromText names the one run that something was learnt from, or how many there are.
func learntFromText(sessions []string, total int) string {
	if len(sessions) == 1 {
		return text.Line(sessions[0]) + " alone"
	}
	return fmt.Sprintf("%d of %d runs", len(sessions), total)
}

// forgetNormal takes back what runs taught.
func (a *app) forgetNormal(w workspaceFlag, args []string, all bool) error {
	switch {
	case all && len(args) > 0:
		return command.Usage(errors.New("both a session and --all are given"), "leave one of them out")
	case all:
		b, err := a.locateBaseline(w) // also one that cannot be read
		if err == nil {
			err = baseline.Remove(b.file)
		}
		return err
	case len(args) == 0:
		return command.Usage(errors.New("no run given to forget"), "name one that 'holdfast log baseline' lists, or give --all")
	}
	b, err := a.openBaseline(w)
	if err != nil {
		return err
	}
	for _, name := range args {
		session, err := findLearntSession(b.Runs, name)
		if err != nil {
			return err
		}
		b.Forget(session)
	}
	return b.Write(b.file)
}

// findLearntSession returns the session that a name, or the beginning of it, selects.
func findLearntSession(runs []baseline.Run, name string) (string, error) {
	var found []string
	for _, r := range runs {
		if r.Session == name {
			return name, nil
		}
		if name != "" && strings.HasPrefix(r.Session, name) {
			found = append(found, r.Session)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return "", command.Usage(fmt.Errorf("the baseline was not learnt from a run %s", text.Word(name)), "list its runs with: holdfast log baseline")
	}
	return "", &archive.MissingError{Err: &audit.FindError{Session: name, Several: found}}
}
