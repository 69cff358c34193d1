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
	"strconv"
	"strings"
	"syscall"
	"time"

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

// scan is Inspect, with journals for whoever comes after a sudden death.
func (s *session) scan(ctx context.Context, plan *policy.Plan) error {
	snapshots, err := workspace.Inspect(ctx, plan, workspace.Remember())
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
