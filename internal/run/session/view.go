//go:build linux

package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/boundary/workspace"
	"holdfast.dev/holdfast/internal/floor/paths"
	"holdfast.dev/holdfast/internal/policy"
)

// Viewed is what became of a run in review mode.
type Viewed struct {
	Session string
	Dir     string // with what waits for a decision; "" when nothing was changed
	Mode    policy.View
	Why     string   // the workspace was copied; "" where it was not
	Left    []string // what the copy left out
	Waiting int      // reviews of this workspace that are not decided, this one among them
}

// view is the storage of a run in review mode. Its name is the session's: while a
// supervisor has the lock of that, the review is active.
type view struct {
	dir    string
	record workspace.Review
	spec   *boundary.Review
	why    string
	began  time.Time
	facts  chan error // of the walk; nil when none is under way
	stop   context.CancelFunc
}

// reviewOf is where the review of a session is.
func reviewOf(session string) string {
	return filepath.Join(reviewsBeside(session), filepath.Base(session))
}

// openView makes the storage, and begins to note what the workspace looks like.
func (s *Session) openView(ctx context.Context, plan policy.Plan) (*view, error) {
	var st syscall.Stat_t
	if err := syscall.Stat(plan.Workspace, &st); err != nil {
		return nil, fmt.Errorf("reading the workspace: %w", err)
	}
	v := &view{dir: reviewOf(s.dir), began: time.Now()}
	if err := v.make(st); err != nil {
		v.drop()
		return nil, fmt.Errorf("making the storage of the review: %w", err)
	}
	v.record = workspace.Review{
		Session: filepath.Base(s.dir), Workspace: workspace.Name(plan.Workspace), Dev: st.Dev, Ino: st.Ino,
		Mode: workspace.ReviewOverlay, State: workspace.ReviewRunning, Begun: v.began.UTC(),
	}
	v.noteMounts(plan)
	if err := v.record.Begin(v.dir); err != nil {
		v.drop()
		return nil, err
	}
	other, err := workspace.OtherOwner(ctx, plan.Workspace, ownersOf(st))
	if err != nil {
		v.drop()
		return nil, err
	}
	v.spec = &boundary.Review{Dir: v.dir, Other: string(other), Copy: func(ctx context.Context, why string) error { return v.copy(ctx, plan, why) }}
	v.list(ctx, plan.Workspace)
	return v, nil
}

// ownersOf are the ids that a command has on the host: root's commands have those
// of the workspace, an ordinary user's those of the user.
func ownersOf(workspaceOf syscall.Stat_t) workspace.Owners {
	if os.Geteuid() == 0 {
		return workspace.Owners{UID: workspaceOf.Uid, GID: workspaceOf.Gid}
	}
	o := workspace.Owners{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
	groups, err := os.Getgroups()
	for _, g := range groups {
		if err == nil {
			o.Groups = append(o.Groups, uint32(g))
		}
	}
	return o
}

// make makes the directories. The layers belong to the owner of the workspace, with its
// mode, because the upper one gives the view its root.
func (v *view) make(st syscall.Stat_t) error {
	if err := os.MkdirAll(filepath.Dir(v.dir), 0o700); err != nil {
		return err
	}
	// The task passes through it on the way to its layers; what is above is closed.
	if err := os.Mkdir(v.dir, 0o711); err != nil {
		return err
	}
	for _, name := range []string{workspace.UpperDir, workspace.WorkDir} {
		dir := filepath.Join(v.dir, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		if os.Geteuid() == 0 {
			if err := os.Chown(dir, int(st.Uid), int(st.Gid)); err != nil {
				return err
			}
		}
	}
	upper := filepath.Join(v.dir, workspace.UpperDir)
	if err := syscall.Chmod(upper, st.Mode&0o7777); err != nil {
		return err
	}
	return os.Chtimes(upper, time.Time{}, time.Unix(st.Mtim.Unix()))
}

// noteMounts notes the paths of the workspace over which something else is mounted.
func (v *view) noteMounts(plan policy.Plan) {
	note := func(path string) {
		if rel, below := paths.Rel(plan.Workspace, path); below {
			v.record.Apart = append(v.record.Apart, workspace.Name(rel))
		}
	}
	for _, r := range plan.Paths {
		note(r.Path)
		if r.Access == policy.Write {
			v.record.Written = append(v.record.Written, workspace.Name(r.Path))
		}
	}
	for _, r := range plan.Hidden {
		note(plan.Within(r))
	}
}

// list walks the workspace beside the launch.
func (v *view) list(ctx context.Context, root string) {
	ctx, v.stop = context.WithCancel(ctx)
	v.facts = make(chan error, 1)
	go func() { v.facts <- writeFacts(ctx, root, v.began, filepath.Join(v.dir, workspace.StartFile)) }()
}

func writeFacts(ctx context.Context, root string, began time.Time, path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return fmt.Errorf("listing the workspace: %w", err)
	}
	return errors.Join(workspace.WriteFacts(ctx, root, began.UnixNano(), f), f.Close())
}

// copy fills the upper directory with a copy of the workspace.
func (v *view) copy(ctx context.Context, plan policy.Plan, why string) error {
	upper := filepath.Join(v.dir, workspace.UpperDir)
	report, err := workspace.CopyTree(ctx, plan.Workspace, upper, plan.Limits.Disk)
	if err != nil {
		return err
	}
	if _, err := workspace.ConfirmTree(plan, plan.Workspace, report.From); err != nil {
		return err
	}
	v.why = why
	v.record.Mode, v.record.Left = workspace.ReviewCopy, report.Left
	if err := writeFacts(ctx, upper, time.Now(), filepath.Join(v.dir, workspace.CopyFile)); err != nil {
		return err
	}
	return v.record.Begin(v.dir)
}

// Ready waits until everything is noted that is needed to find later what was changed.
// Nothing was executed yet.
func (s *Session) Ready() error {
	v := s.view
	if v == nil || v.facts == nil {
		return nil
	}
	err := <-v.facts
	v.facts = nil
	v.stop()
	return err
}

// View is how the command sees the workspace; "" for the workspace itself.
func (s *Session) View() policy.View {
	if s.view == nil {
		return ""
	}
	return s.view.spec.Mode
}

// AddTo adds to a launch what the run has on the host's disk other than the workspace, and
// what git inside is given.
func (s *Session) AddTo(ctx context.Context, spec *boundary.Spec) (err error) {
	s.view = nil
	if err := s.addGit(spec); err != nil {
		return err
	}
	if spec.Scratch, err = s.makeScratch(spec.Plan); err != nil || !spec.Plan.Review {
		return err
	}
	if s.view, err = s.openView(ctx, spec.Plan); err == nil {
		spec.Review = s.view.spec
	}
	return err
}

// Drop removes what a launch that failed has on the disk.
func (s *Session) Drop() { s.view.drop() }

func (v *view) drop() {
	if v == nil {
		return
	}
	if v.facts != nil {
		v.stop()
		<-v.facts
		v.facts = nil
	}
	workspace.RemoveTree(v.dir) // what stays is removed by the next sweep
}

// endView finishes the storage, and returns the outcome.
func (s *Session) endView(ctx context.Context) (*Viewed, error) {
	dir := reviewOf(s.dir)
	kept, err := workspace.EndReview(ctx, dir, s.adopted)
	if errors.Is(err, fs.ErrNotExist) && s.view == nil {
		return nil, nil // not in review mode
	}
	r := &Viewed{Session: filepath.Base(s.dir)}
	if kept {
		r.Dir = dir
	}
	if v := s.view; v != nil {
		r.Mode, r.Why, r.Waiting = v.spec.Mode, v.why, countWaiting(filepath.Dir(dir), string(v.record.Workspace))
		for _, l := range v.record.Left {
			r.Left = append(r.Left, string(l))
		}
	}
	return r, err
}

// countWaiting counts the reviews of a workspace that are not decided.
func countWaiting(reviews, root string) int {
	all, err := workspace.Reviews(filepath.Dir(reviews))
	if err != nil {
		return 0 // 'holdfast review' says what is wrong with them
	}
	n := 0
	for _, r := range all {
		if r.Of(root) && (r.State == workspace.ReviewWaiting || r.State == workspace.ReviewPartly) {
			n++
		}
	}
	return n
}

// sweepReviews finishes reviews whose session has no supervisor any more. A
// directory without a review in it was being made, and nothing was executed.
func sweepReviews(ctx context.Context, state string) {
	reviews := workspace.ReviewsDir(state)
	entries, err := os.ReadDir(reviews)
	if err != nil {
		return
	}
	for _, e := range entries {
		dir := filepath.Join(reviews, e.Name())
		r, err := workspace.ReadReview(dir)
		made := err == nil && r.State == workspace.ReviewRunning
		if !made && !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if _, err := os.Lstat(filepath.Join(sessionsDir(state), e.Name(), lockFile)); err == nil {
			continue // it is looked after, or will be by way of its session
		}
		if made {
			workspace.EndReview(ctx, dir, true) // an error leaves it as it is, for the next time
			continue
		}
		if left, err := os.ReadDir(filepath.Join(dir, workspace.UpperDir)); err != nil || len(left) == 0 {
			workspace.RemoveTree(dir)
		}
	}
}

// warning returns what a person must know about a copy; "" for nothing.
func (r *Viewed) warning() string {
	if r == nil || r.Why == asked && len(r.Left) == 0 {
		return ""
	}
	var b strings.Builder
	if r.Why != "" {
		fmt.Fprintf(&b, "the command worked on a copy of the workspace: %s", r.Why)
	}
	if len(r.Left) > 0 {
		fmt.Fprintf(&b, "; the copy lacks %s", strings.Join(r.Left[:min(len(r.Left), 5)], ", "))
		if more := len(r.Left) - 5; more > 0 {
			fmt.Fprintf(&b, " and %d more", more)
		}
	}
	return b.String()
}

// asked is why a copy was made that the policy asks for.
const asked = "the policy asks for it"
