//go:build linux

package session

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
	"holdfast.dev/holdfast/internal/floor/sys"
	"holdfast.dev/holdfast/internal/policy"
)

// Files of a session's directory.
const (
	lockFile    = "lock"
	journals    = "tree-*.json" // one a tree that was scanned
	scannedMark = "scanned"     // the journals are whole
)

// Session is the directory of one run: it exists while the run does, so that after a
// sudden death another process can settle the workspace.
type Session struct {
	NothingHidden bool // nothing inside could hide a change; see workspace.Snapshot

	state     string // directory of all state; "" of one that is taken over
	dir       string
	lock      *os.File
	snapshots []*workspace.Snapshot // of the workspace, then of the other writable trees
	view      *view                 // of the workspace, in review mode; nil otherwise, and after a sudden death
	review    *Viewed               // what became of it, once settled
	adopted   bool                  // the supervisor of it died
	company   bool                  // there were other runs when it began; see alone
	listed    int                   // changes in the writable trees, once settled
	held      int                   // of what was quarantined, by 'holdfast review', once settled
	failed    bool                  // to settle: everything stays for the next attempt
	keep      bool                  // for what is in the quarantine

	notes                []string                 // for the user, before the command begins
	copies               []gitCopy                // of configurations of git, for the launch
	inside               *os.File                 // the directory inside with the copies; nil before the command begins
	insideUID, insideGID int                      // of everything inside, as the host sees them
	gitChanges           []workspace.ConfigChange // in the copies; known when everything inside has ended
}

func sessionsDir(state string) string { return filepath.Join(state, "sessions") }

// Warm compiles the built-in rules of the workspace.
func Warm() { workspace.DefaultRules() }

// Open makes the session's directory below a state directory, locks it, and tells other runs
// of it.
func Open(state string) (*Session, error) {
	all := sessionsDir(state)
	if err := os.MkdirAll(all, 0o700); err != nil {
		return nil, &policy.StateError{Dir: state, Err: err}
	}
	// The plan keeps the state out of view by its path.
	if st, err := os.Lstat(all); err != nil || !st.IsDir() {
		return nil, &policy.StateError{Dir: state, Err: cmp.Or(err, fmt.Errorf("%s is a symbolic link", all))}
	}
	id := make([]byte, 6)
	rand.Read(id)
	dir := filepath.Join(all, time.Now().UTC().Format("20060102T150405")+"-"+hex.EncodeToString(id))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the session's directory: %w", err)
	}
	// The lock gets its name only when it is held: a process that sees the
	// name and gets the lock knows that the session has no supervisor.
	unnamed := filepath.Join(dir, lockFile+".new")
	lock, err := lockSession(unnamed, os.O_CREATE|os.O_EXCL, 0)
	if err == nil {
		err = os.Rename(unnamed, filepath.Join(dir, lockFile))
	}
	if err != nil {
		os.RemoveAll(dir)
		return nil, fmt.Errorf("making the session's lock: %w", err)
	}
	s := &Session{state: state, dir: dir, lock: lock}
	if err := s.noteCompany(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Dir is the session's directory.
func (s *Session) Dir() string { return s.dir }

// Name is that of the session, which sorts by the time at which it began.
func (s *Session) Name() string { return filepath.Base(s.dir) }

// lockSession takes the lock that says that a session is being looked after. The error
// is context.DeadlineExceeded if another process had it for as long as wait.
func lockSession(path string, flags int, wait time.Duration) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_NOFOLLOW|flags, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking the session: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), wait)
	defer cancel()
	if err := sys.WaitLock(ctx, f); err != nil {
		f.Close()
		return nil, fmt.Errorf("locking the session: %w", err)
	}
	return f, nil
}

// Prepare makes the outputs that the plan names, notes which directories of the host a
// run could write to, and scans the trees of the plan.
func (s *Session) Prepare(ctx context.Context, plan *policy.Plan) error {
	if err := workspace.MakeOutputs(*plan); err != nil {
		return err
	}
	if err := policy.RecordExposed(s.state, workspace.WritableTrees(*plan)); err != nil {
		return err
	}
	return s.scan(ctx, plan)
}

// scan looks through the trees of the plan and puts into it what it found, as
// workspace.Inspect does, and writes journals for Recover.
func (s *Session) scan(ctx context.Context, plan *policy.Plan) error {
	scanned := filepath.Join(s.dir, scannedMark)
	if err := os.RemoveAll(scanned); err != nil {
		return err
	}
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
	return os.Mkdir(scanned, 0o700)
}

// write records a snapshot for the process that settles after a sudden death. It has to be
// whole before the launch, not to survive a crash of the machine: then the run
// is over too, and the next one scans afresh.
func (s *Session) write(i int, snap *workspace.Snapshot) error {
	f, err := os.OpenFile(filepath.Join(s.dir, strings.Replace(journals, "*", strconv.Itoa(i), 1)), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("writing the session's journal: %w", err)
	}
	return errors.Join(snap.Save(f), f.Close())
}

func (s *Session) quarantine() string { return filepath.Join(s.dir, "quarantine") }

// Warnings are those of the scan.
func (s *Session) Warnings() []string {
	var out []string
	for _, snap := range s.snapshots {
		out = append(out, snap.Warnings...)
	}
	return out
}

// Notes are what the user must know before the command begins.
func (s *Session) Notes() []string { return s.notes }

// Outcome is what became of the trees that a run could write to.
type Outcome struct {
	Settled workspace.Report // what was quarantined and what should be looked at
	Held    int              // of what was quarantined: 'holdfast review' takes it back
	Kept    string           // directory with the rest of it; "" when there is none
	Viewed  *Viewed          // what became of the view of the workspace; nil in direct mode
	Listed  int              // changes in the trees that the command could write to, by any process: 'holdfast review' shows them

	GitChanges []workspace.ConfigChange // that git inside made in its copies of configurations
}

// Settle settles the trees when everything inside is dead. The user is notified of what
// takes long, and may end it.
func (s *Session) Settle(ctx context.Context, u User) (Outcome, error) {
	report, err := s.settleFor(ctx, u)
	o := Outcome{Settled: report, Viewed: s.review, Listed: s.listed, Held: s.held, GitChanges: s.gitChanges}
	if s.keep {
		o.Kept = s.quarantine()
	}
	return o, err
}

func (s *Session) settleFor(ctx context.Context, u User) (workspace.Report, error) {
	budget := workspace.NewBudget()
	defer u.watch(budget)()
	return s.settle(ctx, budget)
}

// settle moves out of the writable trees what a host would execute and was not
// there before.
func (s *Session) settle(ctx context.Context, budget *workspace.Budget) (workspace.Report, error) {
	var all workspace.Report
	var errs []error
	patience, alone := s.patience(), s.alone()
	for _, snap := range s.snapshots {
		budget.Expect(snap.Roots()...)
	}
	for _, snap := range s.snapshots {
		snap.Patience, snap.Budget, snap.NothingHidden = patience, budget, s.NothingHidden && alone
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
	held, herr := s.holdForReview(all)
	if herr != nil {
		all.Warnings = append(all.Warnings, herr.Error())
	}
	var lerr error
	if s.listed, lerr = s.list(all.Differences, all.Unsure); lerr != nil {
		all.Warnings = append(all.Warnings, lerr.Error())
	}
	left, _ := os.ReadDir(s.quarantine()) // none was made, or it is empty
	s.failed, s.held, s.keep = len(errs) > 0, held, len(left) > 0
	return all, errors.Join(errs...)
}

// Close removes the session's directory, or what of it need not be kept.
func (s *Session) Close() {
	s.release()
	workspace.RemoveTree(filepath.Join(s.dir, scratchDir)) // what cannot be removed is left to the next sweep
	switch {
	case s.failed:
	case s.keep:
		for _, f := range s.journals() {
			os.Remove(f)
		}
		os.Remove(filepath.Join(s.dir, lockFile))
		os.Remove(filepath.Join(s.dir, scannedMark))
	default:
		os.RemoveAll(s.dir)
	}
	s.lock.Close()
}

// release releases the trees of the last scan.
func (s *Session) release() {
	s.closeCopies()
	for _, snap := range s.snapshots {
		snap.Release()
	}
}

func (s *Session) journals() []string {
	files, err := filepath.Glob(filepath.Join(s.dir, journals))
	if err != nil {
		return nil // the pattern is a constant
	}
	return files
}
