//go:build linux

package review

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"holdfast.dev/holdfast/internal/boundary/workspace"
)

// Reviewed is a run whose changes are kept for a human: they wait for a decision,
// or, of a run in direct mode, are listed.
type Reviewed struct {
	Dir string `json:"-"` // STATE/reviews/SESSION
	workspace.Review
}

// Direct reports whether the changes are in the workspace already, except what was held
// back at the end.
func (r Reviewed) Direct() bool { return r.Mode == workspace.ReviewDirect }

// Running reports whether the run is not over.
func (r Reviewed) Running() bool { return r.State == workspace.ReviewRunning }

// Waits reports whether there is something to decide or to apply.
func (r Reviewed) Waits() bool {
	return r.State == workspace.ReviewWaiting || r.State == workspace.ReviewPartly
}

// Holds reports whether something of a run in direct mode was held back.
func (r Reviewed) Holds() bool {
	st, err := os.Lstat(filepath.Join(r.Dir, workspace.UpperDir))
	return r.Direct() && err == nil && st.IsDir()
}

// Reviews lists the runs whose changes are kept, the newest first. What cannot be
// understood is named in the error, and the others are still listed.
func Reviews(state string) ([]Reviewed, error) {
	found, err := workspace.Reviews(state)
	all := make([]Reviewed, len(found))
	for i, r := range found {
		all[i] = Reviewed{Dir: filepath.Join(workspace.ReviewsDir(state), r.Session), Review: r}
	}
	slices.Reverse(all)
	return all, err
}

// Forget removes what is kept of a run. It records that first, so that what a sudden
// death leaves is not taken for a review.
func (r Reviewed) Forget() error {
	r.State = workspace.ReviewDropped
	if err := r.Write(r.Dir); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("dropping the review: %w", err)
	}
	if err := workspace.RemoveTree(r.Dir); err != nil {
		return fmt.Errorf("dropping the review: %w", err)
	}
	return nil
}

// SetState sets how far the review is.
func (r *Reviewed) SetState(state workspace.ReviewState) error {
	if r.State == state {
		return nil
	}
	r.State = state
	return r.Write(r.Dir)
}
