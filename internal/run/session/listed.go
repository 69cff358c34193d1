//go:build linux

package session

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"holdfast.dev/holdfast/internal/boundary/workspace"
	"holdfast.dev/holdfast/internal/review"
)

// reviewsBeside is the directory of the reviews, for the directory of a session.
func reviewsBeside(session string) string {
	return filepath.Join(filepath.Dir(filepath.Dir(session)), "reviews")
}

// list keeps what changed in the writable trees, and returns how many changes that
// is. A review of the same run that waits is not touched: what waits there has not
// changed anything yet.
func (s *Session) list(all []workspace.Difference, unsure string) (int, error) {
	if len(all)+len(s.gitChanges) == 0 || len(s.snapshots) == 0 {
		return 0, nil
	}
	d := review.ChangeList{
		Version: 1, Session: filepath.Base(s.dir), Workspace: s.workspace(),
		Begun: s.snapshots[0].Began().UTC(), Ended: time.Now().UTC(), Changes: all, Unsure: unsure, Git: s.gitChanges,
	}
	for _, snap := range s.snapshots {
		d.Roots = append(d.Roots, workspace.Name(snap.Root))
	}
	return len(all), d.Keep(reviewOf(s.dir))
}

// holdForReview gives what was moved out of the workspace to a review that waits, and
// returns how much that is. In review mode nothing was: what the run made there waits
// already.
func (s *Session) holdForReview(r workspace.Report) (held int, err error) {
	dir := reviewOf(s.dir)
	if len(r.Quarantined) == 0 || s.view != nil {
		return 0, nil
	}
	earlier, err := workspace.ReadReview(dir) // of a supervisor that died
	fresh := errors.Is(err, fs.ErrNotExist)
	if !fresh && earlier.Mode != workspace.ReviewDirect {
		return 0, err
	}
	snap := s.snapshots[0]
	about := workspace.Review{
		Session: filepath.Base(s.dir), Workspace: workspace.Name(snap.Root), Mode: workspace.ReviewDirect, State: workspace.ReviewWaiting,
		Begun: snap.Began().UTC(), Ended: time.Now().UTC(), Died: s.adopted,
	}
	about.Dev, about.Ino = snap.Directory()
	upper := filepath.Join(dir, workspace.UpperDir)
	if err := os.MkdirAll(upper, 0o700); err != nil {
		return 0, fmt.Errorf("making the storage of the review: %w", err)
	}
	if err := about.Begin(dir); err != nil {
		return 0, err
	}
	was := slices.Clone(r.Quarantined)
	err = snap.HoldForReview(r.Quarantined, upper)
	moved := map[workspace.Name]workspace.Name{}
	for i, q := range r.Quarantined {
		if q.Held != was[i].Held {
			moved[was[i].Held] = q.Held
		}
	}
	for i := range r.Differences {
		if now, is := moved[r.Differences[i].Held]; is {
			r.Differences[i].Held = now
		}
	}
	if held = len(moved); held == 0 && fresh {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	return held, err
}

// workspace is that of the run: in review mode it is not among the trees that the
// run could write to.
func (s *Session) workspace() workspace.Name {
	if s.view != nil {
		return s.view.record.Workspace
	}
	if r, err := workspace.ReadReview(reviewOf(s.dir)); err == nil { // taken over from a supervisor that died
		return r.Workspace
	}
	return workspace.Name(s.snapshots[0].Root)
}
