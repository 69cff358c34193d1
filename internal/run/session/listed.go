//go:build linux

package session

import (
	"path/filepath"
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
