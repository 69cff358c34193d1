package reviews

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"holdfast.dev/holdfast/internal/boundary/workspace"
	"holdfast.dev/holdfast/internal/cli/plans"
	"holdfast.dev/holdfast/internal/floor/command"
	"holdfast.dev/holdfast/internal/floor/paths"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/review"
)

// app is the world of these verbs.
type app struct{ *command.App }

// showFlags is how the verb itself is used.
type showFlags struct{ json, all, safe, interactive, exitCode bool }

// Command makes the verb holdfast review.
func Command(world *command.App) *cobra.Command {
	a := &app{world}
	var o showFlags
	c := &cobra.Command{
		Use:   "review [flags] [SESSION]",
		Short: "See what a run changed, and decide what of it reaches your files",
		Long: `After a run with workspace.mode: review, what it changed waits here. Files that
this machine would later execute or obey come first, with the reason; nothing
reaches the workspace before you accept it. SESSION is the name of the run, or the
beginning of it; the default is the run that waits, or of several the one in
whose workspace you are. Of a run that worked on the workspace itself only what was
held back at the end waits; the other changes are listed, for they are there already.

PATH is a file or a directory, relative to where you are. A directory never
accepts what is flagged in it unless you give --flagged.`,
		Example: `  holdfast review
  holdfast review diff src/
  holdfast review accept --hunk src/main.go:1,3
  holdfast review apply
  holdfast review --apply-all-safe`,
		Args:        cobra.MaximumNArgs(1),
		Annotations: map[string]string{command.OwnArguments: "true"},
		RunE: func(c *cobra.Command, args []string) error {
			ctx, stop := command.Interruptible(c)
			defer stop()
			return a.review(ctx, firstArgument(args), o)
		},
	}
	c.Flags().BoolVar(&o.json, "json", false, "show as JSON")
	c.Flags().BoolVar(&o.all, "all", false, "name every file of directories that are new")
	c.Flags().BoolVar(&o.safe, "apply-all-safe", false, "accept and apply everything that has no flag")
	c.Flags().BoolVarP(&o.interactive, "interactive", "i", false, "go through the changes one by one")
	c.Flags().BoolVar(&o.exitCode, "exit-code", false, "exit with 1 when something waits")
	c.MarkFlagsMutuallyExclusive("json", "apply-all-safe", "interactive", "all")
	c.MarkFlagsMutuallyExclusive("exit-code", "apply-all-safe", "interactive")
	c.AddCommand(newReviewList(a), newReviewDiff(a), newReviewCat(a), newReviewDecide(a, review.Accept), newReviewDecide(a, review.Reject),
		newReviewDecide(a, review.Undecided), newReviewApply(a), newReviewDrop(a))
	return c
}

func (a *app) review(ctx context.Context, name string, o showFlags) error {
	v, err := a.openReview(ctx, name)
	if none := (*missingError)(nil); errors.As(err, &none) && name == "" && !o.safe && !o.interactive {
		return a.listReviews(ctx, o.json)
	}
	if err != nil {
		return err
	}
	defer v.close()
	switch {
	case o.safe:
		return v.apply(ctx, review.Options{Safe: true})
	case o.interactive:
		return v.interact(ctx)
	case o.json:
		var shown shownReview
		if shown, err = v.asJSON(); err == nil {
			err = command.WriteJSON(a.Stdout, shown)
		}
	default:
		err = v.show(o.all)
	}
	if err == nil && o.exitCode && v.needsDecision() {
		return command.Exit(command.ExitFailed)
	}
	return err
}

func firstArgument(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// openedReview is one review at hand.
type openedReview struct {
	a *app
	review.Reviewed
	set     *review.Set
	direct  *review.ChangeList // of a run in direct mode: the list as it was kept
	listed  *review.Set        // the changes of that list beside those of set; nil where set is the list
	record  *review.Decisions  // nil until something is decided
	json    bool               // what is done is reported as JSON
	missing map[string]bool    // directories that are not in the workspace, as far as it was asked
	host    policy.Host
	by      string
	here    string // working directory from the workspace; "" at its top, or outside
	others  int    // of the same workspace, how many wait besides
}

// missingError means that no review matches, or that several do.
type missingError struct {
	name    string
	several []string
}

func (e *missingError) Error() string {
	switch {
	case e.name != "" && len(e.several) > 0:
		return fmt.Sprintf("%s is the beginning of several reviews", text.Word(e.name))
	case e.name != "":
		return fmt.Sprintf("there is no review of a run %s", text.Word(e.name))
	case len(e.several) > 0:
		return "the changes of several runs wait"
	}
	return "nothing waits for review"
}

// Hint names what there is.
func (e *missingError) Hint() string {
	if len(e.several) > 0 {
		return "name one: " + strings.Join(e.several[:min(4, len(e.several))], ", ")
	}
	return "list them with: holdfast review list"
}

// choose finds the review that name means, which may be "".
func choose(all []review.Reviewed, name, dir string) (review.Reviewed, error) {
	var found, waitHere, directHere []review.Reviewed
	for _, r := range all {
		switch {
		case name != "" && r.Session == name:
			return r, nil
		case name != "" && strings.HasPrefix(r.Session, name), name == "" && r.Waits():
			found = append(found, r)
		}
		if in := name == "" && paths.Within(string(r.Workspace), dir); in && r.Waits() {
			waitHere = append(waitHere, r)
		} else if in && r.Direct() {
			directHere = append(directHere, r)
		}
	}
	switch {
	case len(waitHere) == 0 && len(directHere) > 0 && !slices.ContainsFunc(found, inCopy):
		return directHere[0], nil // the last run here is meant, and not what was held back elsewhere
	case len(found) == 1:
		return found[0], nil
	case len(waitHere) == 1, len(waitHere) > 0 && !slices.ContainsFunc(waitHere, inCopy):
		return waitHere[0], nil // of several that only held something back, the newest
	}
	e := &missingError{name: name}
	for _, r := range found {
		e.several = append(e.several, r.Session)
	}
	return review.Reviewed{}, e
}

// inCopy reports whether a run was in review mode.
func inCopy(r review.Reviewed) bool { return !r.Direct() }

// reviews are all reviews of this user. One that cannot be read is a warning.
func (a *app) reviews() ([]review.Reviewed, policy.Host, error) {
	host, err := policy.ThisHost(a.Env, a.Dir)
	if err != nil {
		return nil, host, err
	}
	all, err := review.Reviews(host.State)
	if err != nil && len(all) == 0 {
		return nil, host, err
	}
	if err != nil {
		a.Note(command.Yellow, "warning", "%v", err)
	}
	return all, host, nil
}

// withReview calls f with the review that name means.
func (a *app) withReview(c *cobra.Command, name string, f func(context.Context, *openedReview) error) error {
	ctx, stop := command.Interruptible(c)
	defer stop()
	v, err := a.openReview(ctx, name)
	if err != nil {
		return err
	}
	defer v.close()
	return f(ctx, v)
}

// openReview reads the review that name means.
func (a *app) openReview(ctx context.Context, name string) (*openedReview, error) {
	all, host, err := a.reviews()
	if err != nil {
		return nil, err
	}
	dir := a.Dir
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	r, err := choose(all, name, dir)
	if err != nil {
		return nil, err
	}
	if r.Running() {
		return nil, command.Usage(fmt.Errorf("the run %s has not ended", r.Session), "review it when it has ended")
	}
	v := &openedReview{a: a, Reviewed: r, host: host, by: host.Name, missing: map[string]bool{}}
	if paths.Within(string(r.Workspace), dir) {
		v.here = strings.TrimPrefix(strings.TrimPrefix(dir, string(r.Workspace)), "/")
	}
	for _, other := range all {
		if other.Waits() && other.Workspace == r.Workspace && other.Session != r.Session {
			v.others++
		}
	}
	return v, v.read(ctx)
}

func (v *openedReview) read(ctx context.Context) error {
	mode := review.Mode(v.Mode)
	if v.Direct() {
		d, err := review.ReadChangeList(v.Dir)
		if err != nil {
			return err
		}
		if v.direct, v.set = d, d.Set(); !v.Holds() {
			return nil
		}
		v.listed, mode = d.Without(filepath.Join(v.Dir, workspace.UpperDir)).Set(), review.Held
	}
	set, err := review.Collect(ctx, review.Source{
		Workspace: string(v.Workspace), Dir: v.Dir, Mode: mode, Rules: v.rules(), Obey: workspace.HostSettings(v.host.Home),
	})
	if err != nil {
		return fmt.Errorf("reading what the run %s changed: %w", v.Session, err)
	}
	v.set = set
	return nil
}

// rules are the names that are flagged: those of the workspace's policy, as a run
// in it would have them.
func (v *openedReview) rules() workspace.Rules {
	_, plan, err := plans.Compile(policy.Options{Host: v.host, Workspace: string(v.Workspace)})
	if err == nil {
		var rules workspace.Rules
		if rules, err = workspace.RulesOf(plan); err == nil {
			return rules
		}
	}
	v.a.Note(command.Yellow, "warning", "the policy of %s cannot be read, so that names it protects besides the built-in list are not flagged: %v", text.Word(string(v.Workspace)), err)
	return workspace.DefaultRules()
}

// close ends the review; what was decided is kept.
func (v *openedReview) close() {
	if v.record != nil {
		if err := v.record.Close(false); err != nil {
			v.a.Note(command.Yellow, "warning", "%v", err)
		}
	}
	v.set.Close() // nothing is written by it
}

// listOnly reports whether nothing of the review can be applied: the changes are in the
// workspace already.
func (v *openedReview) listOnly() bool { return v.set.Mode == review.Direct }

// needsDecision reports whether something must be decided or applied.
func (v *openedReview) needsDecision() bool {
	if waiting, _, err := v.waitingGit(); err != nil || len(waiting) > 0 {
		return true
	}
	return !v.listOnly() && (!v.set.Settled() || slices.ContainsFunc(v.set.Changes, isOpen))
}
