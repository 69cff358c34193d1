//go:build linux

package run

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/boundary/workspace"
	"holdfast.dev/holdfast/internal/policy"
)

// Files of a session's directory.
const (
	lockFile = "lock"
	journals = "tree-*.json" // one a tree that was scanned
)

// session is the record of one run on disk: it exists while the run does, so
// that whoever comes after a sudden death can settle the workspace.
type session struct {
	dir       string
	lock      *os.File
	snapshots []*workspace.Snapshot // of the workspace, then of the other writable trees
	view      *reviewed             // of the workspace, in review mode; nil otherwise, and after a sudden death
	review    *Viewed               // what became of it, once settled
	adopted   bool                  // the supervisor of it died
	listed    int                   // changes in the writable trees, once settled
	failed    bool                  // to settle: everything stays for the next attempt
	keep      bool                  // for what was quarantined
	budget    *workspace.Budget     // of settling; nil for one of its own
}

func (t *Task) sessions() string { return filepath.Join(t.State, "sessions") }

// open makes the session's directory and locks it.
func (t *Task) open() (*session, error) {
	if err := os.MkdirAll(t.sessions(), 0o700); err != nil {
		return nil, &policy.StateError{Dir: t.State, Err: err}
	}
	// The plan keeps the state out of view by where it stands.
	if st, err := os.Lstat(t.sessions()); err != nil || !st.IsDir() {
		return nil, &policy.StateError{Dir: t.State, Err: cmp.Or(err, fmt.Errorf("%s is a link", t.sessions()))}
	}
	id := make([]byte, 6)
	rand.Read(id)
	dir := filepath.Join(t.sessions(), time.Now().UTC().Format("20060102T150405")+"-"+hex.EncodeToString(id))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the session's directory: %w", err)
	}
	// The lock gets its name only when it is held: whoever sees the name and
	// gets the lock knows that nobody looks after the session.
	unnamed := filepath.Join(dir, lockFile+".new")
	lock, err := lockSession(unnamed, os.O_CREATE|os.O_EXCL)
	if err == nil {
		err = os.Rename(unnamed, filepath.Join(dir, lockFile))
	}
	if err != nil {
		os.RemoveAll(dir)
		return nil, fmt.Errorf("making the session's lock: %w", err)
	}
	return &session{dir: dir, lock: lock}, nil
}

// lockSession takes the lock that says that a session is being looked after.
func lockSession(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_NOFOLLOW|flags, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the session: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, fmt.Errorf("locking the session: %w", err)
	}
	return f, nil
}

// Inspect looks at the workspace and the other writable trees of a plan and puts
// into the plan what it found: protected paths, secrets, hard links, and git
// directories outside.
func Inspect(ctx context.Context, plan *policy.Plan, more ...workspace.Option) ([]*workspace.Snapshot, error) {
	rules, err := Rules(*plan)
	if err != nil {
		return nil, err
	}
	if err := checkOutputs(*plan); err != nil {
		return nil, err
	}
	var out []*workspace.Snapshot
	options := append(workspace.HostSettings(plan.Identity.Home), workspace.Fixed(readOnly(*plan)...), workspace.Spending(workspace.NewBudget()))
	for i, root := range writableTrees(*plan) {
		if i > 0 || !plan.Review { // in review mode nothing in the workspace is to be settled
			options = append(options[:len(options):len(options)], more...)
		}
		own := options[:len(options):len(options)]
		if i > 0 {
			if rule := out[0].Leads(root); rule != nil && slices.Contains(plan.Outputs, root) {
				return nil, &ListedOutputError{Dir: root, Rule: *rule}
			}
			own = append(own, workspace.LedFrom(out[0]))
		}
		if plan.Agent != nil && slices.Contains(plan.Agent.Keeps, root) {
			own = append(own, workspace.Enclosed())
		}
		snap, err := workspace.Scan(ctx, root, rules, own...)
		var limit *workspace.LimitError
		if errors.As(err, &limit) && limit.Lifted != "" && plan.Accepts(limit.Lifted) {
			err = nil // the snapshot is whole all the same
		}
		viewed := plan.Review && i == 0
		if limit != nil && viewed && len(snap.Hidden()) <= workspace.MaxProtected {
			err = nil // of the rest nothing is mounted over
		}
		if err != nil {
			return nil, err
		}
		out = append(out, snap)
		if *plan, err = scanned(*plan, root, snap.File()); err != nil {
			return nil, err
		}
		if *plan, err = plan.With(found(*plan, snap, root, viewed)); err != nil {
			return nil, err
		}
	}
	hidden, err := hideInReadable(ctx, *plan, rules)
	if err == nil {
		*plan, err = plan.With(policy.Additions{Hidden: hidden})
	}
	return out, err
}

// scanned checks that the directory that was scanned is the one that was judged, and
// has the backend mount that one. A directory that was made meanwhile is judged by
// the scan.
func scanned(plan policy.Plan, root string, is policy.FileID) (policy.Plan, error) {
	plan, err := plan.With(policy.Additions{Files: map[string]policy.FileID{root: is}})
	var replaced *policy.ReplacedError
	if errors.As(err, &replaced) {
		err = &boundary.PostureError{Diff: []string{replaced.Error()}}
	}
	return plan, err
}

// hideInReadable finds the secrets and sockets in the directories that the policy
// shows without letting them be changed.
func hideInReadable(ctx context.Context, plan policy.Plan, rules workspace.Rules) (out []policy.Protected, err error) {
	for _, r := range readOnly(plan) {
		named := r.Origin.Line > 0 || strings.HasPrefix(r.Origin.File, "--") // toolchains that were found hold neither
		if !named || r.Access == policy.Hidden {
			continue
		}
		if st, err := os.Lstat(r.Path); err != nil || !st.IsDir() {
			continue
		}
		hidden, err := workspace.Unreadable(ctx, r.Path, rules)
		if err != nil {
			return nil, err
		}
		out = append(out, hidden...)
	}
	return out, nil
}

// found is what a scan found. Of a workspace that the command sees a view of, only
// secrets and sockets of the host matter: what a host would execute may be changed
// there, for it reaches no host before a human has seen it.
func found(plan policy.Plan, snap *workspace.Snapshot, root string, viewed bool) policy.Additions {
	if root == plan.Workspace {
		root = ""
	}
	out := policy.Additions{Hidden: under(root, snap.Hidden()), Paths: snap.External()}
	if viewed {
		for i := range out.Paths { // what is written to them is not handed over
			out.Paths[i].Access = policy.Copy
			out.Notes = append(out.Notes, "the repository of this worktree, "+out.Paths[i].Path+", is a private copy: commits and branches made there are gone at the end")
		}
		return out
	}
	out.Protect = under(root, snap.Protected())
	if !plan.Accepts(policy.HardLinks) {
		out.HardLinks = under(root, snap.HardLinks())
	}
	return out
}

// scan is Inspect, with journals for whoever comes after a sudden death.
func (s *session) scan(ctx context.Context, plan *policy.Plan) error {
	snapshots, err := Inspect(ctx, plan, workspace.Remember())
	if err != nil {
		return err
	}
	if plan.Review { // nothing can be changed in the workspace itself
		snapshots = snapshots[1:]
	}
	s.release()
	s.snapshots = snapshots
	for i, snap := range snapshots {
		if err := snap.Hold(); err != nil {
			return err
		}
		if err := s.write(i, snap); err != nil {
			return err
		}
	}
	return nil
}

// writableTrees are the directories of the host that the command may change:
// the workspace first.
func writableTrees(plan policy.Plan) []string {
	out := []string{plan.Workspace}
	for _, r := range plan.Paths {
		st, err := os.Stat(r.Path)
		if err != nil || !st.IsDir() || r.Access != policy.Write {
			continue
		}
		if inside := slices.ContainsFunc(out, func(root string) bool {
			viewed := plan.Review && root == plan.Workspace // and what is in it is not
			return r.Path == root || !viewed && strings.HasPrefix(r.Path, root+"/")
		}); !inside {
			out = append(out, r.Path)
		}
	}
	return out
}

// readOnly are the paths that a plan shows without letting them be changed.
func readOnly(plan policy.Plan) []policy.PathRule {
	return slices.DeleteFunc(slices.Clone(plan.Paths), func(r policy.PathRule) bool { return r.Access == policy.Write })
}

// under says of rows which tree they belong to; "" is the workspace.
func under(root string, rows []policy.Protected) []policy.Protected {
	for i := range rows {
		if rows[i].Root == "" {
			rows[i].Root = root
		}
	}
	return rows
}

// write records a snapshot for whoever comes after a sudden death. It has to be
// whole before the launch, not to survive a crash of the machine: then the run
// is over too, and the next one scans afresh.
func (s *session) write(i int, snap *workspace.Snapshot) error {
	f, err := os.OpenFile(filepath.Join(s.dir, strings.Replace(journals, "*", strconv.Itoa(i), 1)), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("writing the session's journal: %w", err)
	}
	return errors.Join(snap.Save(f), f.Close())
}

// Rules are the protected names and the names of secrets under a plan.
func Rules(plan policy.Plan) (workspace.Rules, error) {
	texts := func(ps []policy.Pattern) []string {
		out := make([]string, len(ps))
		for i, p := range ps {
			out[i] = p.Text
		}
		return out
	}
	return workspace.RulesWith(workspace.Changes{
		Protect: texts(plan.ProtectMore), Unprotect: texts(plan.ProtectLess),
		Hide: texts(plan.HideMore), Show: texts(plan.HideLess),
	})
}

func (s *session) quarantine() string { return filepath.Join(s.dir, "quarantine") }

func (s *session) warnings() []string {
	var out []string
	for _, snap := range s.snapshots {
		out = append(out, snap.Warnings...)
	}
	return out
}

// settleWatched is settle, with a user who is told what takes long and may end it.
func (s *session) settleWatched(ctx context.Context, t *Task) (workspace.Report, error) {
	s.budget = workspace.NewBudget()
	defer t.watchSettling(s.budget)()
	return s.settle(ctx)
}

// settle moves out of the writable trees what a host would execute and was not
// there before.
func (s *session) settle(ctx context.Context) (workspace.Report, error) {
	var all workspace.Report
	var errs []error
	patience := s.patience()
	if s.budget == nil {
		s.budget = workspace.NewBudget()
	}
	for _, snap := range s.snapshots {
		s.budget.Expect(snap.Roots()...)
	}
	for _, snap := range s.snapshots {
		snap.Patience, snap.Budget = patience, s.budget
		report, err := snap.Settle(context.WithoutCancel(ctx), s.dir)
		if err != nil {
			errs = append(errs, fmt.Errorf("settling %s: %w", snap.Root, err))
		}
		all.Quarantined = append(all.Quarantined, report.Quarantined...)
		all.Flagged = append(all.Flagged, report.Flagged...)
		all.Warnings = append(all.Warnings, report.Warnings...)
		all.Differences = append(all.Differences, report.Differences...)
		all.Unsure = cmp.Or(all.Unsure, report.Unsure)
	}
	review, rerr := s.endView(context.WithoutCancel(ctx))
	if s.review = review; rerr != nil {
		errs = append(errs, rerr)
	}
	if w := review.warning(); w != "" {
		all.Warnings = append(all.Warnings, w)
	}
	var lerr error
	if s.listed, lerr = s.list(all.Differences, all.Unsure); lerr != nil {
		all.Warnings = append(all.Warnings, lerr.Error())
	}
	s.failed, s.keep = len(errs) > 0, len(all.Quarantined) > 0
	return all, errors.Join(errs...)
}

// close removes the session's directory, or what of it need not be kept.
func (s *session) close() {
	s.release()
	workspace.RemoveTree(filepath.Join(s.dir, scratchDir)) // what cannot be removed is left to the next sweep
	switch {
	case s.failed:
	case s.keep:
		for _, f := range s.journals() {
			os.Remove(f)
		}
		os.Remove(filepath.Join(s.dir, lockFile))
	default:
		os.RemoveAll(s.dir)
	}
	s.lock.Close()
}

// release lets go of the trees of the last scan.
func (s *session) release() {
	for _, snap := range s.snapshots {
		snap.Release()
	}
}

func (s *session) journals() []string {
	files, err := filepath.Glob(filepath.Join(s.dir, journals))
	if err != nil {
		return nil // the pattern is a constant
	}
	return files
}
