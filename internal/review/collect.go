//go:build linux

package review

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary/workspace"
)

// Collect finds what the run of src changed, with the decisions that were already
// taken. It writes only the owner's permission on directories of the run that took it
// away, and what an interrupted apply had left to do.
func Collect(ctx context.Context, src Source) (*Set, error) {
	return collect(ctx, src, defaultLimits())
}

func collect(ctx context.Context, src Source, lim limits) (*Set, error) {
	s := &Set{Source: src}
	err := s.readReview()
	if err != nil {
		return nil, err
	}
	src = s.Source
	if src.Mode != Overlay && src.Mode != Copy && src.Mode != Held {
		return nil, fmt.Errorf("collecting changes of a run in mode %q: it has only a list of them", src.Mode)
	}
	s.Mode, s.Root = src.Mode, workspace.Name(src.Workspace)
	if s.saved, err = loadDecisions(src.Dir); err != nil {
		return nil, err
	}
	if s.trees, err = openTrees(src); err != nil {
		return nil, err
	}
	if err := s.settleDead(ctx); err != nil {
		s.Close()
		return nil, err
	}
	if err := s.checkWorkspace(); err != nil {
		s.Close()
		return nil, err
	}
	if err := s.fill(ctx, lim); err != nil {
		s.Close()
		return nil, fmt.Errorf("collecting changes: %w", err)
	}
	return s, nil
}

// settleDead ends what an interrupted apply began: until then some paths of the
// workspace have other names.
func (s *Set) settleDead(ctx context.Context) (err error) {
	if s.trees.gone, err = s.saved.createdPaths(); err != nil {
		return err
	}
	if _, err := os.Lstat(s.Source.Dir + "/journal"); err != nil {
		return nil
	}
	if err := s.saved.acquire(); err != nil {
		s.Notes = append(s.Notes, fmt.Sprintf("the changes shown are being applied, or an earlier apply could not be finished: %v", err))
		return nil
	}
	defer s.saved.release()
	if err := s.saved.read(); err != nil {
		return err
	}
	a := s.applier(ctx, Options{})
	if err := a.prepare(); err != nil {
		s.Notes = append(s.Notes, fmt.Sprintf("an apply that died left something behind: %v", err))
		return nil
	}
	s.recovered = a.rep.Recovered
	s.trees.gone, err = s.saved.createdPaths()
	return err
}

// checkWorkspace checks that the workspace is the directory that the run began with.
func (s *Set) checkWorkspace() error {
	var st unix.Stat_t
	if err := unix.Fstat(s.trees.tree, &st); err != nil {
		return fmt.Errorf("checking the workspace: %w", err)
	}
	if s.ino != 0 && (st.Ino != s.ino || st.Dev != s.dev) {
		return fmt.Errorf("the workspace %s is not the directory that the run started with", s.Source.Workspace)
	}
	return nil
}

func (s *Set) fill(ctx context.Context, lim limits) error {
	if err := s.modes(ctx); err != nil {
		return err
	}
	c := &collector{ctx: ctx, t: s.trees, mode: s.Mode, root: s.Source.Workspace, lim: lim, apart: s.apart, rules: &s.Source.Rules}
	if s.Mode == Copy {
		copied := map[string]workspace.Identity{}
		_, listed, err := readFacts(s.Source.Dir+"/"+workspace.CopyFile, func(path string, i workspace.Identity) { copied[path] = i })
		if err != nil {
			return err
		}
		if listed {
			c.copied = copied
		}
	}
	if !s.Source.Began.IsZero() {
		c.began = s.Source.Began.UnixNano()
	}
	if err := c.run(job{which: both, look: s.Source.Rules.Look()}); err != nil {
		return err
	}
	c.finish()
	s.Unseen = c.unseen
	slices.SortFunc(s.Unseen, func(a, b Unseen) int { return strings.Compare(string(a.Path), string(b.Path)) })
	byPath(c.changes)
	s.Changes = c.histories(c.changes)
	if err := s.renames(ctx, c); err != nil {
		return err
	}
	if err := s.obey(ctx); err != nil {
		return err
	}
	for _, c := range s.Changes {
		if s.Mode == Held && !c.Flagged() {
			c.raise("held", "it was moved out of the workspace with what a host executes or obeys")
		}
	}
	s.order()
	if err := s.readStart(c.began); err != nil {
		return err
	}
	s.saved.restore(s)
	return nil
}

func byPath(list []*Change) {
	slices.SortFunc(list, func(a, b *Change) int { return strings.Compare(string(a.Path), string(b.Path)) })
}

// order puts flagged changes first and fills the index.
func (s *Set) order() {
	slices.SortFunc(s.Changes, func(a, b *Change) int {
		if a.Flagged() != b.Flagged() {
			if a.Flagged() {
				return -1
			}
			return 1
		}
		return strings.Compare(string(a.Path), string(b.Path))
	})
	s.index = make(map[string]*Change, len(s.Changes))
	for _, c := range s.Changes {
		s.index[string(c.Path)] = c
	}
}

// Close gives up the lock and what Collect opened.
func (s *Set) Close() error {
	if s.trees != nil {
		s.trees.close()
	}
	if s.saved == nil {
		return nil
	}
	return s.saved.release()
}

// ErrChanged is a file of the run that is not what was looked at before.
var ErrChanged = errors.New("what the run left changed in the meantime: look again")
