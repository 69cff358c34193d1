//go:build linux

package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"holdfast.dev/holdfast/internal/boundary/workspace"
)

// Direct is what a run changed that worked on the workspace itself: a list, kept
// to be shown later. What other programs of the user changed meanwhile is in it
// too: times of change say when, not who.
type Direct struct {
	Version   int                    `json:"version"`
	Session   string                 `json:"session"`
	Workspace workspace.Name         `json:"workspace"`
	Roots     []workspace.Name       `json:"roots"` // of the trees that the run could write to, the workspace first
	Begun     time.Time              `json:"begun"`
	Ended     time.Time              `json:"ended"`
	Changes   []workspace.Difference `json:"changes"`          // what is flagged first, then what is gone, then by path
	Cut       int                    `json:"cut,omitempty"`    // how many more there were
	Unsure    string                 `json:"unsure,omitempty"` // why something may be missing
}

// Bounds of the lists that are kept. A list is for looking at after the run; the
// record has who wrote what for longer.
const (
	maxListed     = 20_000              // changes of one run
	maxDirect     = 50                  // runs
	maxDirectTime = 30 * 24 * time.Hour // since the end of a run
)

// listFile is what a review of a run in direct mode has besides review.json.
const listFile = "changes.json"

// reviewsBeside is where the reviews are, for the directory of a session.
func reviewsBeside(session string) string {
	return filepath.Join(filepath.Dir(filepath.Dir(session)), "reviews")
}

// list keeps what changed in the writable trees, and says how much that was. A
// review of the same run that waits is not touched: what waits there has not
// changed anything yet.
func (s *session) list(all []workspace.Difference, unsure string) (int, error) {
	if len(all) == 0 || len(s.snapshots) == 0 {
		return 0, nil
	}
	d := Direct{
		Version: 1, Session: filepath.Base(s.dir), Workspace: s.workspace(),
		Begun: s.snapshots[0].Began().UTC(), Ended: time.Now().UTC(), Changes: inOrder(all), Unsure: unsure,
	}
	for _, snap := range s.snapshots {
		d.Roots = append(d.Roots, workspace.Name(snap.Root))
	}
	if d.Cut = len(all) - maxListed; d.Cut > 0 {
		d.Changes = d.Changes[:maxListed]
	} else {
		d.Cut = 0
	}
	reviews := reviewsBeside(s.dir)
	if err := d.save(reviewOf(s.dir)); err != nil {
		return len(all), fmt.Errorf("keeping the list of what changed: %w", err)
	}
	if err := prune(reviews, d.Ended); err != nil {
		return len(all), fmt.Errorf("removing old lists of what changed: %w", err)
	}
	return len(all), nil
}

// workspace is that of the run: in review mode it is not among the trees that the
// run could write to.
func (s *session) workspace() workspace.Name {
	if s.view != nil {
		return s.view.record.Workspace
	}
	if r, err := workspace.ReadReview(reviewOf(s.dir)); err == nil { // taken over from a supervisor that died
		return r.Workspace
	}
	return workspace.Name(s.snapshots[0].Root)
}

// inOrder sorts changes of several trees: what is flagged first, then what is
// gone, which nothing but the list tells of.
func inOrder(all []workspace.Difference) []workspace.Difference {
	rank := func(d workspace.Difference) int {
		switch {
		case d.Flag != nil:
			return 0
		case d.Kind == workspace.KindDeleted:
			return 1
		}
		return 2
	}
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b workspace.Difference) int { return rank(a) - rank(b) })
	return all
}

// save writes the list, and then that there is one.
func (d Direct) save(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := writeWhole(filepath.Join(dir, listFile), d); err != nil {
		return err
	}
	if _, err := os.Lstat(filepath.Join(dir, workspace.ReviewFile)); err == nil {
		return nil // of the same run
	}
	about := workspace.Review{Session: d.Session, Workspace: d.Workspace, Mode: workspace.ReviewDirect, State: workspace.ReviewApplied, Begun: d.Begun, Ended: d.Ended}
	return about.Begin(dir) // a list is not worth waiting for the disk
}

// writeWhole writes a file that is there as a whole or not at all.
func writeWhole(path string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", append(data, '\n'), 0o600); err != nil {
		os.Remove(path + ".new")
		return err
	}
	return os.Rename(path+".new", path)
}

// prune removes lists that are too old or too many. What waits for a decision is
// none of those.
func prune(reviews string, now time.Time) error {
	entries, err := os.ReadDir(reviews)
	if err != nil {
		return err
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return strings.Compare(b.Name(), a.Name()) })
	var errs []error
	for kept, i := 0, 0; i < len(entries); i++ {
		dir := filepath.Join(reviews, entries[i].Name())
		about, err := workspace.ReadReview(dir)
		if err != nil || about.Mode != workspace.ReviewDirect {
			continue
		}
		if kept++; kept > maxDirect || now.Sub(about.Ended) > maxDirectTime {
			errs = append(errs, os.RemoveAll(dir))
		}
	}
	return errors.Join(errs...)
}

// ReadDirect reads the list of a run from the directory of its review.
func ReadDirect(dir string) (*Direct, error) {
	data, err := os.ReadFile(filepath.Join(dir, listFile))
	if err != nil {
		return nil, fmt.Errorf("reading the list of what changed: %w", err)
	}
	var d Direct
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, fmt.Errorf("reading the list of what changed in %s: %w", dir, err)
	}
	if d.Version != 1 {
		return nil, fmt.Errorf("reading the list of what changed in %s: version %d is not known", dir, d.Version)
	}
	return &d, nil
}
