package reviews

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"holdfast.dev/holdfast/internal/boundary/workspace"
	"holdfast.dev/holdfast/internal/cli/words"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/paths"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/review"
)

func newReviewDiff(a *app) *cobra.Command {
	var session string
	var asJSON, names, nul bool
	c := &cobra.Command{
		Use:   "diff [flags] [PATH...]",
		Short: "Show what would change, line by line",
		Long: `Show the changes of a run as a diff, those that are flagged first, nothing cut
short. Characters that act on a terminal, hide or reorder text are shown as
escapes. For binary and large files size and hash are shown.`,
		Example: "  holdfast review diff\n  holdfast review diff src/main.go\n  holdfast review diff --name-only -z",
		RunE: func(c *cobra.Command, args []string) error {
			return a.withReview(c, session, func(_ context.Context, v *openedReview) error {
				list, err := v.pick(args)
				switch {
				case err != nil:
					return err
				case nul && !names:
					return command.Usage(errors.New("-z is only for names"), "give it with --name-only")
				case names:
					return a.printNames(list, nul)
				case v.listOnly():
					return command.Usage(errDirect, "see what git knows of it: git diff")
				case asJSON:
					return v.diffJSON(list)
				}
				return v.diff(list)
			})
		},
	}
	bindSession(c, &session)
	c.Flags().BoolVar(&asJSON, "json", false, "show as JSON")
	c.Flags().BoolVar(&names, "name-only", false, "print names alone")
	c.Flags().BoolVarP(&nul, "nul", "z", false, "with --name-only: bytes as they are, a NUL after each")
	c.MarkFlagsMutuallyExclusive("json", "name-only")
	return c
}

func bindSession(c *cobra.Command, session *string) {
	c.Flags().StringVarP(session, "session", "s", "", "the run `SESSION`, or the beginning of its name")
}

// printNames prints the names of changes from the workspace.
func (a *app) printNames(list []*review.Change, nul bool) error {
	w := bufio.NewWriter(a.Stdout)
	for _, c := range list {
		if nul {
			w.WriteString(string(c.Path) + "\x00")
		} else {
			fmt.Fprintln(w, fileName(string(c.Path)))
		}
	}
	return w.Flush()
}

// pick finds the changes that paths name, in the order of the review; all for no
// paths. A directory names all that is in it.
func (v *openedReview) pick(args []string) ([]*review.Change, error) {
	if len(args) == 0 {
		return v.set.Changes, nil
	}
	var picked []string
	for _, arg := range args {
		p, err := v.fromWorkspace(arg)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(v.set.Changes, func(c *review.Change) bool { return matchesPath(c, p) }) {
			return nil, v.unchanged(arg)
		}
		picked = append(picked, p)
	}
	var out []*review.Change
	for _, c := range v.set.Changes {
		if slices.ContainsFunc(picked, func(p string) bool { return matchesPath(c, p) }) {
			out = append(out, c)
		}
	}
	return out, nil
}

// findChange finds the change of the file that an argument names.
func (v *openedReview) findChange(arg string) (*review.Change, error) {
	p, err := v.fromWorkspace(arg)
	if err != nil {
		return nil, err
	}
	c := v.set.Find(p)
	if c == nil {
		return nil, v.unchanged(arg)
	}
	return c, nil
}

func (v *openedReview) unchanged(arg string) error {
	if p, err := v.fromWorkspace(arg); err == nil && v.listed != nil && v.listed.Find(p) != nil {
		return command.Usage(errDirect, "see what git knows of it: git diff")
	}
	return command.Usage(fmt.Errorf("nothing changed at %s", text.Word(arg)), "see what did with: holdfast review "+v.Session)
}

// matchesPath reports whether p is the path of a change, or a directory that it is in.
func matchesPath(c *review.Change, p string) bool {
	is := func(name workspace.Name) bool {
		return p == "" || paths.Within(p, string(name))
	}
	return is(c.Path) || c.From != "" && is(c.From)
}

// fromWorkspace is an argument as a path from the workspace: "" for all of it.
// It is taken from where the user is, if that is in the workspace.
func (v *openedReview) fromWorkspace(arg string) (string, error) {
	root := string(v.Workspace)
	p := arg
	if p == "" {
		return "", command.Usage(errors.New("a path is empty"), "name a file, or . for all")
	}
	if !filepath.IsAbs(p) {
		p = path.Join(root, v.here, p)
	} else {
		p = path.Clean(p)
	}
	if p == root {
		return "", nil
	}
	if rel, in := paths.Rel(root, p); in {
		return rel, nil
	}
	if v.Direct() && filepath.IsAbs(arg) {
		return p, nil // of another tree that the run could write to
	}
	return "", command.Usage(fmt.Errorf("%s is outside the workspace %s", text.Word(arg), text.Word(root)), "give a path in it")
}

// diff prints changes. For one that cannot be read it prints a message instead.
func (v *openedReview) diff(list []*review.Change) error {
	w := bufio.NewWriter(v.a.Stdout)
	for _, c := range list {
		if c.Type == review.Dir && c.OldType == review.Dir && c.Mode == c.OldMode {
			continue
		}
		d, err := v.set.Diff(c)
		if err != nil {
			fmt.Fprintf(w, "%s\n%s\n", v.line(c, string(c.Path)), v.a.Tint(command.Red, "it cannot be shown: "+text.Line(err.Error())))
			continue
		}
		v.writeDiff(w, c, d)
	}
	return w.Flush()
}

// writeDiff prints one change: why it is flagged, what git would print above it,
// and its lines.
func (v *openedReview) writeDiff(w io.Writer, c *review.Change, d *review.Diff) {
	for _, f := range c.Flags {
		fmt.Fprintln(w, v.a.Tint(command.Yellow, "! "+fileName(string(c.Path))+": "+text.Line(f.Reason)))
	}
	for _, line := range v.set.Header(c, d) {
		fmt.Fprintln(w, v.a.Tint(command.Bold, text.Line(line)))
	}
	for _, line := range v.aboutHistory(c) {
		fmt.Fprintln(w, line)
	}
	for i := range d.Hunks {
		v.writeHunk(w, d, i, 0)
	}
}

// writeHunk prints one hunk, with its number for decisions about it. With a limit above
// 0 no more lines than that are printed.
func (v *openedReview) writeHunk(w io.Writer, d *review.Diff, i, limit int) {
	h := d.Hunks[i]
	number := fmt.Sprintf(" hunk %d of %d", i+1, len(d.Hunks))
	if h.Decision != review.Undecided {
		number += fmt.Sprintf(" [%sed]", h.Decision)
	}
	fmt.Fprintln(w, v.a.Tint(command.Cyan, fmt.Sprintf("@@ -%d,%d +%d,%d @@%s", h.OldStart, h.OldLines, h.NewStart, h.NewLines, number)))
	for n, l := range h.Lines {
		if limit > 0 && n >= limit {
			fmt.Fprintln(w, v.a.Tint(command.Yellow, fmt.Sprintf("… %d more lines of this hunk are not shown here", len(h.Lines)-n)))
			return
		}
		colour := ""
		switch l.Op {
		case '-':
			colour = command.Red
		case '+':
			colour = command.Green
		}
		fmt.Fprintln(w, v.codeLine(colour, string(l.Op), l.Text))
		if l.NoEOL {
			fmt.Fprintln(w, `\ No newline at end of file`)
		}
	}
}

// codeLine is a line of a file in which everything shows: a tab stays, what
// acts, hides or reorders is an escape, set off where there are colours.
func (v *openedReview) codeLine(colour, op string, line []byte) string {
	var b strings.Builder
	b.WriteString(op)
	plain := 0 // what of b is tinted already
	done := ""
	flush := func() {
		done += v.a.Tint(colour, b.String()[plain:])
		plain = b.Len()
	}
	for i := 0; i < len(line); {
		_, n := utf8.DecodeRune(line[i:])
		if shown := text.Safe(string(line[i : i+n])); len(shown) == n {
			b.WriteString(shown)
		} else {
			flush()
			done += v.a.Tint(command.Yellow+";7", shown)
		}
		i += n
	}
	flush()
	return done
}

// aboutHistory describes what a run did in a repository.
func (v *openedReview) aboutHistory(c *review.Change) []string {
	h := c.History
	if h == nil {
		return nil
	}
	out := []string{fmt.Sprintf("history of the repository: %s, %s, branch %s", words.Plural(h.Objects, "new object", "new objects"), words.Plural(h.Packs, "new pack", "new packs"), text.Word(h.Branch))}
	for _, commit := range h.Commits {
		out = append(out, fmt.Sprintf("  commit %s %s  %s", text.Line(commit.ID), text.Word(commit.Author), text.Word(commit.Subject)))
	}
	if h.More {
		out = append(out, "  and more, that could not be read")
	}
	for _, r := range h.Refs {
		out = append(out, fmt.Sprintf("  ref %s: %s → %s", text.Word(r.Name), cut12(r.Old), cut12(r.New)))
	}
	for _, left := range h.Left {
		out = append(out, "  left: "+text.Line(left))
	}
	return out
}

func cut12(id string) string {
	if id == "" {
		return "none"
	}
	return text.Line(id[:min(12, len(id))])
}

// shownDiff is a change with its lines as --json shows it. Text is encoded as names
// are: a backslash is doubled, a byte that is not UTF-8 is \xNN.
type shownDiff struct {
	*review.Change
	Old   review.Side `json:"old"`
	New   review.Side `json:"new"`
	Hunks []shownHunk `json:"hunks,omitempty"`
	Error string      `json:"error,omitempty"`
}

type shownHunk struct {
	ID       string          `json:"id"`
	OldStart int             `json:"old_start"`
	OldLines int             `json:"old_lines"`
	NewStart int             `json:"new_start"`
	NewLines int             `json:"new_lines"`
	Decision review.Decision `json:"decision"`
	Lines    []shownLine     `json:"lines"`
}

type shownLine struct {
	Op    string         `json:"op"`
	Text  workspace.Name `json:"text"`
	NoEOL bool           `json:"no_eol,omitempty"`
}

func (v *openedReview) diffJSON(list []*review.Change) error {
	out := make([]shownDiff, 0, len(list))
	for _, c := range list {
		one := shownDiff{Change: c}
		d, err := v.set.Diff(c)
		if err != nil {
			one.Error = err.Error()
			out = append(out, one)
			continue
		}
		one.Old, one.New = d.Old, d.New
		for _, h := range d.Hunks {
			s := shownHunk{ID: h.ID, OldStart: h.OldStart, OldLines: h.OldLines, NewStart: h.NewStart, NewLines: h.NewLines, Decision: h.Decision}
			for _, l := range h.Lines {
				s.Lines = append(s.Lines, shownLine{string(l.Op), workspace.Name(l.Text), l.NoEOL})
			}
			one.Hunks = append(one.Hunks, s)
		}
		out = append(out, one)
	}
	return command.WriteJSON(v.a.Stdout, out)
}
