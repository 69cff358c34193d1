package reviews

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"holdfast.dev/holdfast/internal/cli/screen"
	"holdfast.dev/holdfast/internal/cli/words"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/review"
)

// decideFlags is what accept, reject and undo have in common.
type decideFlags struct {
	session string
	hunks   []string
	git     []string
	flagged bool
	stdin   bool
}

func newReviewDecide(a *app, d review.Decision) *cobra.Command {
	var o decideFlags
	c := &cobra.Command{
		Use:     "accept [flags] PATH...",
		Short:   "Accept changes; 'review apply' applies them",
		Example: "  holdfast review accept src/ README.md\n  holdfast review accept --hunk src/main.go:1,3\n  holdfast review accept --flagged Makefile",
		Long: `Accept changes; a directory means all changes in it. This writes nothing to the
workspace: 'holdfast review apply' does. A flagged change is only accepted with
--flagged, even when it is named.`,
	}
	switch d {
	case review.Reject:
		c.Use, c.Short = "reject [flags] PATH...", "Reject changes: they never reach the workspace"
		c.Long = "Reject changes; a directory means all changes in it. They stay where they are until\nthe review is dropped."
		c.Example = "  holdfast review reject scripts/\n  holdfast review reject --hunk src/main.go:2"
	case review.Undecided:
		c.Use, c.Short = "undo [flags] PATH...", "Undo decisions about changes that are not applied"
		c.Long, c.Example = "", "  holdfast review undo src/main.go"
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(o.git) > 0 {
			if len(args)+len(o.hunks) > 0 || o.stdin {
				return command.Usage(errors.New("--git is about settings of git alone"), "decide about files with a command of its own")
			}
			return a.decideGit(o.git, d)
		}
		if o.stdin {
			more, err := a.namesFromInput()
			if err != nil {
				return err
			}
			args = append(args, more...)
		}
		if len(args)+len(o.hunks) == 0 {
			return command.Usage(errors.New("no path given"), "name files, or . for all")
		}
		return a.withReview(c, o.session, func(_ context.Context, v *openedReview) error { return v.decide(args, o, d) })
	}
	bindSession(c, &o.session)
	c.Flags().BoolVarP(&o.stdin, "nul", "z", false, "read names from standard input, a NUL after each")
	if d != review.Undecided {
		c.Flags().StringArrayVar(&o.hunks, "hunk", nil, "hunks of a file, as `PATH:1,3-5`; may be given several times")
		c.Flags().StringSliceVar(&o.git, "git", nil, "settings of git by their `ID` (holdfast review), taken over at once")
	}
	if d == review.Accept {
		c.Flags().BoolVar(&o.flagged, "flagged", false, "accept flagged changes too: you have looked at them")
	}
	return c
}

// maxInput is how much of standard input is taken for names, in bytes.
const maxInput = 64 << 20

// namesFromInput reads names, each with a NUL after it.
func (a *app) namesFromInput() ([]string, error) {
	data, err := io.ReadAll(io.LimitReader(a.Stdin, maxInput+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading names: %w", err)
	case len(data) > maxInput:
		return nil, errors.New("reading names: there are too many")
	case len(data) == 0:
		return nil, nil
	case data[len(data)-1] != 0:
		return nil, command.Usage(errors.New("the last name on standard input has no NUL after it"), "it may be cut off: give whole names")
	}
	var out []string
	for name := range bytes.SplitSeq(data[:len(data)-1], []byte{0}) {
		out = append(out, string(name))
	}
	return out, nil
}

// begin opens the record and locks the review, so that no other process decides.
func (v *openedReview) begin() error {
	if v.listOnly() {
		return command.Usage(errDirect, "undo it with git, or by hand")
	}
	if v.record != nil {
		return nil
	}
	if err := v.set.Hold(); err != nil {
		return err
	}
	r, err := review.OpenDecisions(filepath.Join(v.host.State, "log"), filepath.Join(v.host.State, "keys"), v.Reviewed)
	if err != nil {
		return err
	}
	v.record = r
	return nil
}

// decide records one decision for what is named. What is flagged and not wanted
// with --flagged is named, and stays undecided.
func (v *openedReview) decide(args []string, o decideFlags, d review.Decision) error {
	var list []*review.Change
	if len(args) > 0 {
		var err error
		if list, err = v.pick(args); err != nil {
			return err
		}
	}
	hunks, err := v.pickHunks(o.hunks)
	if err != nil {
		return err
	}
	if err := v.begin(); err != nil {
		return err
	}
	chosen, left := v.decidable(list, args, o, d)
	if err := v.decideAll(chosen, d); err != nil {
		return err
	}
	for _, h := range hunks {
		if kept, _ := v.decidable([]*review.Change{h.change}, nil, o, d); len(kept) == 0 {
			left = true
			continue
		}
		if err := v.decideHunks(h, d); err != nil {
			return err
		}
	}
	fmt.Fprintf(v.a.Stdout, "%s\n", v.countsText(v.set.Counts()))
	if left {
		if d == review.Accept && !o.flagged {
			v.a.Note(command.Cyan, "hint", "look at what is flagged with 'holdfast review diff PATH'; accept it with --flagged")
		}
		return command.Exit(command.ExitFailed)
	}
	return nil
}

// decidable returns the changes that d may be decided for. It prints why others are left.
func (v *openedReview) decidable(list []*review.Change, args []string, o decideFlags, d review.Decision) (chosen []*review.Change, left bool) {
	leave := func(c *review.Change, why string) {
		v.a.Note(command.Yellow, "left", "%s: %s", fileName(string(c.Path)), why)
		left = true
	}
	for _, c := range list {
		switch {
		case c.Applied && !isOpen(c):
			if v.names(args, c) { // and not a directory that it is in
				leave(c, "it is in the workspace already")
			}
		case c.Cannot != "" && d == review.Accept:
			leave(c, "it cannot be applied: "+c.Cannot)
		case c.Flagged() && d == review.Accept && !o.flagged:
			leave(c, "flagged: "+c.Flags[0].Reason)
		default:
			chosen = append(chosen, c)
		}
	}
	return chosen, left
}

// names reports whether one of the arguments is the path of a change.
func (v *openedReview) names(args []string, c *review.Change) bool {
	return slices.ContainsFunc(args, func(arg string) bool {
		p, err := v.fromWorkspace(arg)
		return err == nil && p == string(c.Path)
	})
}

// decideAll records a decision, in the log first.
func (v *openedReview) decideAll(list []*review.Change, d review.Decision) error {
	if len(list) == 0 {
		return nil
	}
	for _, c := range list {
		if err := v.recordDecision(c, d, ""); err != nil {
			return err
		}
	}
	return v.set.DecideAll(list, d)
}

// recordDecision records one decision.
func (v *openedReview) recordDecision(c *review.Change, d review.Decision, hunks string) error {
	e := event.Event{Action: event.ReviewAnswer, Object: filepath.Join(string(v.Workspace), string(c.Path)), Verdict: event.Denied,
		Detail: map[string]string{"by": v.by, "decision": d.String(), "kind": c.Kind.String(), "review": v.Session}}
	if d == review.Accept {
		e.Verdict = event.Allowed
	}
	if d == review.Undecided {
		e.Verdict = event.Unknown
	}
	if hunks != "" {
		e.Detail["hunks"] = hunks
	}
	if c.Flagged() {
		e.Detail["flag"] = c.Flags[0].Rule
	}
	return v.record.Put(e)
}

// pickedHunks are hunks of one file.
type pickedHunks struct {
	change *review.Change
	diff   *review.Diff
	which  []int // from 0
}

func (v *openedReview) pickHunks(args []string) ([]pickedHunks, error) {
	var out []pickedHunks
	for _, arg := range args {
		at := strings.LastIndexByte(arg, ':')
		if at < 0 {
			return nil, command.Usage(fmt.Errorf("%s names no hunk", text.Word(arg)), "write --hunk PATH:1,3")
		}
		c, err := v.findChange(arg[:at])
		if err != nil {
			return nil, err
		}
		if v.listOnly() {
			return nil, command.Usage(errDirect, "undo it with git, or by hand")
		}
		d, err := v.set.Diff(c)
		if err != nil {
			return nil, err
		}
		which, err := parseHunkNumbers(arg[at+1:], len(d.Hunks))
		if err != nil {
			return nil, command.Usage(fmt.Errorf("%s: %w", text.Word(arg), err), "see the numbers with: holdfast review diff "+fileName(string(c.Path)))
		}
		out = append(out, pickedHunks{c, d, which})
	}
	return out, nil
}

// parseHunkNumbers reads a list such as 1,3-5 of numbers up to most, and returns them
// from 0.
func parseHunkNumbers(s string, most int) ([]int, error) {
	var out []int
	for part := range strings.SplitSeq(s, ",") {
		from, to, span := strings.Cut(part, "-")
		if !span {
			to = from
		}
		a, err1 := strconv.ParseUint(from, 10, 31)
		b, err2 := strconv.ParseUint(to, 10, 31)
		if err1 != nil || err2 != nil || a < 1 || b < a {
			return nil, fmt.Errorf("%s is not the number of a hunk", text.Word(part))
		}
		if b > uint64(most) {
			return nil, fmt.Errorf("there is no hunk %d: it has %s", b, words.Plural(most, "hunk", "hunks"))
		}
		for n := a; n <= b; n++ {
			out = append(out, int(n-1))
		}
	}
	return out, nil
}

func (v *openedReview) decideHunks(h pickedHunks, d review.Decision) error {
	words := make([]string, len(h.which))
	for i, n := range h.which {
		words[i] = strconv.Itoa(n + 1)
	}
	if err := v.recordDecision(h.change, d, strings.Join(words, ",")+" of "+strconv.Itoa(len(h.diff.Hunks))); err != nil {
		return err
	}
	for _, n := range h.which {
		if err := v.set.DecideHunk(h.change, h.diff, n, d); err != nil {
			return err
		}
	}
	return nil
}

func newReviewDrop(a *app) *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use:     "drop [--yes] SESSION",
		Short:   "Forget the changes of a run that are not applied",
		Long:    "Remove what is kept of a run: the changes that are not in the workspace are lost.\nWhat was applied stays.",
		Example: "  holdfast review drop 20261122T1144",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			ctx, stop := command.Interruptible(c)
			defer stop()
			if args[0] == "" {
				return command.Usage(errors.New("the name of the session is empty"), "list the sessions with: holdfast review list")
			}
			return a.dropReview(ctx, args[0], yes)
		},
	}
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return c
}

func (a *app) dropReview(ctx context.Context, name string, yes bool) error {
	all, host, err := a.reviews()
	if err != nil {
		return err
	}
	r, err := choose(all, name, "")
	if err != nil {
		return err
	}
	if r.Running() {
		return command.Usage(fmt.Errorf("the run %s has not ended", r.Session), "drop it when it has ended")
	}
	v := &openedReview{a: a, Reviewed: r, host: host, by: host.Name}
	lost := "its changes"
	if err := v.read(ctx); err == nil {
		defer v.set.Close()
		n := v.set.Counts()
		lost = words.Plural(n.Changes-n.Applied, "change", "changes")
		if v.listOnly() {
			lost = "the list of " + words.Plural(n.Changes, "change", "changes") + ", which stay in the workspace"
		}
	}
	lost += a.lostGit(r)
	if !yes && !a.confirm(fmt.Sprintf("forget %s of %s in %s?", lost, text.Line(r.Session), text.Word(string(r.Workspace)))) {
		return command.Usage(errors.New("nothing was dropped"), "give --yes where there is no terminal to ask on")
	}
	if v.set != nil && !v.listOnly() {
		if err := v.begin(); err != nil {
			return err
		}
		err := v.record.Put(event.Event{Action: event.ReviewAnswer, Object: string(r.Workspace), Verdict: event.Denied,
			Detail: map[string]string{"by": v.by, "decision": "drop", "review": r.Session}})
		if err != nil {
			return err
		}
		defer v.record.Close(true)
	}
	return r.Forget()
}

// confirm asks on the terminal for the word yes.
func (a *app) confirm(question string) bool {
	in, ok := a.Stdin.(*os.File)
	if !ok || !screen.IsTerminal(in) {
		return false
	}
	line, err := screen.Ask(in, a.Stderr, question+" type yes:")
	return err == nil && line == "yes"
}
