//go:build linux

package workspace

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Files of a review's directory; see docs/formats/review.md.
const (
	ReviewFile = "review.json"
	UpperDir   = "upper"
	WorkDir    = "work"
	BaseDir    = "base"
	StartFile  = "start.json"
	CopyFile   = "copy.json"
)

// ReviewMode is how a run came to see the workspace.
type ReviewMode string

// The modes. Of a run in ReviewDirect there is a list of changes and no copy.
const (
	ReviewOverlay ReviewMode = "overlay"
	ReviewCopy    ReviewMode = "copy"
	ReviewDirect  ReviewMode = "direct"
)

// ReviewState is how far a review has come.
type ReviewState string

// The states.
const (
	ReviewRunning ReviewState = "running" // the run is still active, or died and was not looked after yet
	ReviewWaiting ReviewState = "waiting" // nothing was decided
	ReviewPartly  ReviewState = "partly"
	ReviewApplied ReviewState = "applied"
	ReviewDropped ReviewState = "dropped"
)

// Review is review.json.
type Review struct {
	Version   int         `json:"version"`
	Session   string      `json:"session"`
	Workspace Name        `json:"workspace"` // absolute
	Dev       uint64      `json:"dev"`       // of the directory that was the workspace
	Ino       uint64      `json:"ino"`
	Mode      ReviewMode  `json:"mode"`
	State     ReviewState `json:"state"`
	Begun     time.Time   `json:"begun"`
	Ended     time.Time   `json:"ended,omitzero"`
	Apart     []Name      `json:"apart,omitempty"`   // relative paths over which something else was mounted
	Written   []Name      `json:"written,omitempty"` // directories that the run could change on the host at once
	Left      []Name      `json:"left,omitempty"`    // what a copy left out, and why
	Died      bool        `json:"died,omitempty"`    // the supervisor died
}

const reviewVersion = 1

// ReviewsDir is where the reviews of a state directory are, a directory each.
func ReviewsDir(state string) string { return filepath.Join(state, "reviews") }

// ReadReview reads review.json of a review's directory.
func ReadReview(dir string) (Review, error) {
	var r Review
	f, err := os.OpenFile(filepath.Join(dir, ReviewFile), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return r, fmt.Errorf("reading the review: %w", err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, 64<<20))
	if err == nil {
		err = json.Unmarshal(raw, &r)
	}
	if err != nil {
		return r, fmt.Errorf("reading the review %s: %w", dir, err)
	}
	if r.Version != reviewVersion {
		return r, fmt.Errorf("reading the review %s: unknown version %d", dir, r.Version)
	}
	return r, nil
}

// Begin writes review.json of a run that begins. It has to outlive this process
// and not a crash of the machine, before which nothing was done.
func (r Review) Begin(dir string) error { return r.write(dir, false) }

// Write replaces review.json at once: a reader finds the old one or the new one, even
// after a crash.
func (r Review) Write(dir string) error { return r.write(dir, true) }

func (r Review) write(dir string, durable bool) error {
	r.Version = reviewVersion
	raw, err := json.Marshal(r)
	if err == nil {
		err = ReplaceFile(filepath.Join(dir, ReviewFile), append(raw, '\n'), durable)
	}
	if err != nil {
		return fmt.Errorf("writing the review: %w", err)
	}
	return nil
}

// ReplaceFile writes a file beside path and renames it to path, so that a reader finds
// the old one or the new one. With durable set the new one also outlives a crash of the
// machine.
func ReplaceFile(path string, content []byte, durable bool) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(content)
	if durable {
		err = errors.Join(err, f.Sync())
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil || !durable {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// Reviews lists the reviews of a state directory, the oldest first. What cannot
// be read is not among them, and is part of the error.
func Reviews(state string) ([]Review, error) {
	entries, err := os.ReadDir(ReviewsDir(state))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing reviews: %w", err)
	}
	var out []Review
	var errs []error
	for _, e := range entries {
		r, err := ReadReview(filepath.Join(ReviewsDir(state), e.Name()))
		switch {
		case errors.Is(err, fs.ErrNotExist): // it is just being made, or removed
		case err != nil:
			errs = append(errs, err)
		case r.Session != e.Name():
			errs = append(errs, fmt.Errorf("the review %s names the session %q", e.Name(), r.Session))
		default:
			out = append(out, r)
		}
	}
	slices.SortStableFunc(out, func(a, b Review) int { return a.Begun.Compare(b.Begun) })
	return out, errors.Join(errs...)
}

// Of reports whether the review is of a workspace.
func (r Review) Of(workspace string) bool { return string(r.Workspace) == workspace }
