//go:build linux

package review

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
	"holdfast.dev/holdfast/internal/floor/paths"
	floortext "holdfast.dev/holdfast/internal/floor/text"
)

// ChangeList is what a run changed that worked on the workspace itself: a list, kept to
// be shown later. Changes of the user's other programs at that time are in it too:
// times of change say when, not by which program.
type ChangeList struct {
	Version   int                    `json:"version"`
	Session   string                 `json:"session"`
	Workspace workspace.Name         `json:"workspace"`
	Roots     []workspace.Name       `json:"roots"` // of the trees that the run could write to, the workspace first
	Begun     time.Time              `json:"begun"`
	Ended     time.Time              `json:"ended"`
	Changes   []workspace.Difference `json:"changes"`          // what is flagged first, then what is gone, then by path
	Cut       int                    `json:"cut,omitempty"`    // how many more there were
	Unsure    string                 `json:"unsure,omitempty"` // why something may be missing

	Git []workspace.ConfigChange `json:"git,omitempty"` // settings of git that the run changed in its copies; those that are not refused wait
}

// Limits of the lists that are kept. A list is for review after the run; the record
// knows for longer which program wrote what.
const (
	maxListed     = 20_000              // changes of one run
	maxDirect     = 50                  // runs
	maxDirectTime = 30 * 24 * time.Hour // since the end of a run
)

// listFile is what a review of a run in direct mode has in addition to review.json.
const listFile = "changes.json"

// Keep writes the list into dir, the directory of the run's review, sorted and cut to
// what may be kept, and removes older lists beside it.
func (l ChangeList) Keep(dir string) error {
	l.Changes = inOrder(l.Changes)
	if l.Cut = max(0, len(l.Changes)-maxListed); l.Cut > 0 {
		l.Changes = l.Changes[:maxListed]
	}
	if err := l.save(dir); err != nil {
		return fmt.Errorf("saving the list of changes: %w", err)
	}
	if err := prune(filepath.Dir(dir), l.Ended); err != nil {
		return fmt.Errorf("removing old lists of changes: %w", err)
	}
	return nil
}

// inOrder sorts changes of several trees: what is flagged first, then what is gone,
// which only the list shows.
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
func (l ChangeList) save(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	data, err := json.Marshal(l)
	if err == nil {
		err = workspace.ReplaceFile(filepath.Join(dir, listFile), append(data, '\n'), false)
	}
	if err != nil {
		return err
	}
	if _, err := os.Lstat(filepath.Join(dir, workspace.ReviewFile)); err == nil {
		return nil // of the same run
	}
	about := workspace.Review{Session: l.Session, Workspace: l.Workspace, Mode: workspace.ReviewDirect, State: workspace.ReviewApplied, Begun: l.Begun, Ended: l.Ended}
	return about.Begin(dir) // a list is not worth waiting for the disk
}

// prune removes lists that are too old or too many. What waits for a decision is none of
// those, and nor are lists with settings of git that wait.
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
		if r := (Reviewed{dir, about}); err != nil || !r.Direct() || r.Waits() {
			continue
		}
		if kept++; kept > maxDirect || now.Sub(about.Ended) > maxDirectTime {
			if l, err := ReadChangeList(dir); err == nil && len(GroupGit(l.Git)) > 0 {
				continue
			}
			errs = append(errs, workspace.RemoveTree(dir))
		}
	}
	return errors.Join(errs...)
}

// ReadChangeList reads the list of a run from the directory of its review.
func ReadChangeList(dir string) (*ChangeList, error) {
	data, err := os.ReadFile(filepath.Join(dir, listFile))
	if err != nil {
		return nil, fmt.Errorf("reading the list of changes: %w", err)
	}
	var d ChangeList
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, fmt.Errorf("reading the list of changes in %s: %w", dir, err)
	}
	if d.Version != 1 {
		return nil, fmt.Errorf("reading the list of changes in %s: version %d is not known", dir, d.Version)
	}
	return &d, nil
}

// Without returns the list without what is held in a directory.
func (l *ChangeList) Without(dir string) *ChangeList {
	rest := *l
	rest.Changes = slices.DeleteFunc(slices.Clone(l.Changes), func(d workspace.Difference) bool { return paths.Below(dir, string(d.Held)) })
	return &rest
}

// Set returns the changes of a list as those of a review, to be shown and not to be
// applied. A path is from the workspace, or absolute in another tree.
func (l *ChangeList) Set() *Set {
	s := &Set{Mode: Direct, Root: l.Workspace}
	root := string(l.Workspace) + "/"
	rel := func(n workspace.Name) workspace.Name { return workspace.Name(strings.TrimPrefix(string(n), root)) }
	for _, d := range l.Changes {
		c := &Change{Path: rel(d.Path), From: rel(d.From), Mode: d.Mode, OldMode: d.OldMode, Size: d.Size, Applied: true}
		if c.Kind.UnmarshalText([]byte(d.Kind)) != nil {
			c.Kind = Modified
		}
		if c.Type.UnmarshalText([]byte(d.Type)) != nil {
			c.Type = File
		}
		switch c.OldType = c.Type; c.Kind {
		case Added:
			c.OldType = None
		case Deleted:
			c.Type = None
		}
		if d.Flag != nil {
			c.Flags = []Flag{{d.Flag.Rule, d.Flag.Reason}}
		}
		if d.Files == 1 {
			c.note("1 file in it changed")
		} else if d.Files > 0 {
			c.note(fmt.Sprintf("%d files in it changed", d.Files))
		}
		if d.Held != "" {
			c.note("moved out of the workspace, to " + floortext.Word(string(d.Held)))
		}
		c.judge(string(l.Workspace))
		c.Cannot = ""
		s.Changes = append(s.Changes, c)
	}
	s.order()
	return s
}
