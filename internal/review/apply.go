//go:build linux

package review

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary/workspace"
)

// Options say what Apply carries over.
type Options struct {
	// Safe accepts all that is undecided and has no flag; never a link, a
	// history, or what lies below a flagged directory.
	Safe bool
	hook func(op string, done bool) error // tests break system calls with it
}

// Conflict is an accepted change whose target is no longer what the run began
// with. Nothing of it was written.
type Conflict struct {
	Change *Change        `json:"-"`
	Path   workspace.Name `json:"path"` // of a history: the member that is in the way
	Why    string         `json:"why"`
	Base   Side           `json:"base"`   // at the start
	Theirs Side           `json:"theirs"` // in the workspace now
	Ours   Side           `json:"ours"`   // as the run left it
}

// Problem is a path that could not be carried over, or needs a look.
type Problem struct {
	Path workspace.Name `json:"path"`
	Why  string         `json:"why"`
}

// Report is what Apply did.
type Report struct {
	Applied   []workspace.Name `json:"applied"`
	Conflicts []Conflict       `json:"conflicts,omitempty"`
	Refused   []Problem        `json:"refused,omitempty"`   // accepted, and not carried over
	Left      []Problem        `json:"left,omitempty"`      // of Safe: undecided still, and why
	Recovered []Problem        `json:"recovered,omitempty"` // what an apply that died had left, and what was done about it
	Settled   bool             `json:"settled"`             // nothing is left to decide or to apply
}

// batch is how many changes are prepared before the first of them takes its
// place: a sync for all of them costs little more than one for each.
const batch = 256

// applier carries changes out.
type applier struct {
	*Set
	ctx  context.Context
	o    Options
	d    *disk
	j    *journal
	rep  Report
	step int
	dirs map[string]int // of the workspace, to be synced; open

	crossMount bool // nothing can be renamed from the review's directory into the workspace
}

// Apply carries the accepted changes into the workspace. It may be ended at any
// point, and called again. The error is about the whole: what could not be done
// for one path is in the report.
func (s *Set) Apply(ctx context.Context, o Options) (Report, error) {
	if err := s.Hold(); err != nil {
		return Report{}, err
	}
	a := s.applier(ctx, o)
	a.rep.Recovered, s.recovered = s.recovered, nil
	if err := a.prepare(); err != nil {
		return a.rep, fmt.Errorf("applying: %w", err)
	}
	err := a.run()
	a.closeDirs()
	a.rep.Settled = err == nil && s.Settled()
	if err != nil {
		return a.rep, fmt.Errorf("applying: %w", err)
	}
	return a.rep, nil
}

func (s *Set) applier(ctx context.Context, o Options) *applier {
	return &applier{Set: s, ctx: ctx, o: o, d: &disk{hook: o.hook, uid: -1, gid: -1}, dirs: map[string]int{}}
}

// prepare makes the places that Apply needs and ends what a dead one began.
func (a *applier) prepare() error {
	if os.Geteuid() == 0 {
		var st unix.Stat_t
		if err := unix.Fstat(a.trees.tree, &st); err != nil {
			return err
		}
		a.d.uid, a.d.gid = int(st.Uid), int(st.Gid)
	}
	for _, name := range []string{"/base", "/ready"} {
		if err := os.Mkdir(a.Source.Dir+name, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	if err := errors.Join(a.trees.openBase(a.Source.Dir), a.trees.openReady(a.Source.Dir)); err != nil {
		return err
	}
	return a.recover()
}

func (a *applier) run() error {
	if a.o.Safe {
		if err := a.acceptSafe(); err != nil {
			return err
		}
	}
	var list []*Change
	for _, c := range a.Changes {
		if a.wanted(c) {
			list = append(list, c)
		}
	}
	if len(list) == 0 {
		return nil
	}
	var err error
	if a.j, err = openJournal(a.d, a.Source.Dir); err != nil {
		return err
	}
	err = a.phases(list)
	// What was done is written down even where the rest could not be.
	if e := a.saved.write(); e != nil {
		return errors.Join(err, e, a.j.f.Close())
	}
	if err != nil {
		return errors.Join(err, a.j.f.Close())
	}
	return a.j.close()
}

// wanted reports whether there is something to do for c.
func (a *applier) wanted(c *Change) bool {
	if c.Applied || c.Cannot != "" {
		return false
	}
	if c.hunks != nil {
		e := a.saved.list[c.Path]
		for _, d := range c.hunks.by {
			if d == Accept {
				return true
			}
		}
		return e != nil && e.Done != nil && c.Decision != Undecided
	}
	return c.Decision == Accept
}

// acceptSafe accepts the changes that need no review.
func (a *applier) acceptSafe() error {
	var list []*Change
	for _, c := range a.Changes {
		if c.Decision != Undecided || c.Applied {
			continue
		}
		if why := a.unsafeReason(c); why != "" {
			a.rep.Left = append(a.rep.Left, Problem{c.Path, why})
			continue
		}
		list = append(list, c)
	}
	return a.DecideAll(list, Accept)
}

// unsafeReason says why c is not applied without being looked at; "" if it can be.
func (a *applier) unsafeReason(c *Change) string {
	switch {
	case c.Cannot != "":
		return c.Cannot
	case c.Flagged():
		return c.Flags[0].Reason
	case c.Type == Link || c.OldType == Link:
		return "it is a link, or was one"
	case c.Kind == History || c.Kind == TypeChanged:
		return "it needs a decision of its own"
	case c.hunks != nil:
		return "it was decided in part only"
	}
	for _, p := range []string{string(c.Path), string(c.From)} {
		for i := range len(p) {
			if p[i] != '/' {
				continue
			}
			if above := a.index[p[:i]]; above != nil && (above.Flagged() || above.Type == Link || above.OldType == Link) {
				return fmt.Sprintf("it lies below %q, which needs a decision first", p[:i])
			}
		}
	}
	return ""
}

// phases carries changes out in an order in which what is needed is there, and nothing
// is removed before its replacement is in place.
func (a *applier) phases(list []*Change) error {
	byPath(list)
	var dirs, puts, removes, last, repos []*Change
	for _, c := range list {
		switch {
		case c.Kind == TypeChanged && c.Type == Dir:
			dirs = append(dirs, c) // before what is in it
		case c.Kind == History:
			repos = append(repos, c)
		case c.Kind == Deleted:
			removes = append(removes, c)
		case c.Kind == TypeChanged && c.OldType == Dir:
			last = append(last, c) // when all below it has gone
		default:
			puts = append(puts, c)
		}
	}
	slices.SortFunc(removes, func(x, y *Change) int { return strings.Compare(string(y.Path), string(x.Path)) })
	for _, phase := range [][]*Change{dirs, puts, removes, last} {
		for part := range slices.Chunk(phase, batch) {
			if err := a.batch(part); err != nil {
				return err
			}
		}
	}
	for _, c := range repos {
		if err := a.history(c); err != nil {
			return err
		}
	}
	return nil
}

func (a *applier) refuse(path workspace.Name, format string, args ...any) {
	a.rep.Refused = append(a.rep.Refused, Problem{path, fmt.Sprintf(format, args...)})
}

// markApplied notes that all of c is in the workspace.
func (a *applier) markApplied(c *Change, d *appliedState) {
	c.Applied = true
	a.saved.entry(c).Done = d
	a.rep.Applied = append(a.rep.Applied, c.Path)
}
