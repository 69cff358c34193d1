//go:build linux

package review

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary/workspace"
)

// sameState reports whether both are one state of one file. The change time also
// moves when another name is given to the file, as a rename does to what it
// moves; where it must not count, moved is true.
func sameState(a, b workspace.Identity, moved bool) bool {
	if moved {
		a.Ctime, b.Ctime = 0, 0
	}
	return a == b
}

// readFacts calls f for each file of a list that was written when the run began. A
// missing list is not an error, and returns false.
func readFacts(name string, f func(path string, i workspace.Identity)) (began int64, listed bool, err error) {
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	defer file.Close()
	h, err := workspace.ReadFacts(file, func(x workspace.Fact) error {
		f(x.Path, x.Identity)
		return nil
	})
	if err != nil {
		return 0, false, fmt.Errorf("reading %s: %w", name, err)
	}
	return h.Began, true, nil
}

// readReview takes from review.json what the source does not say.
func (s *Set) readReview() error {
	src := &s.Source
	r, err := workspace.ReadReview(src.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if src.Mode == "" {
		src.Mode = Mode(r.Mode)
	}
	if src.Workspace == "" {
		src.Workspace = string(r.Workspace)
	}
	if src.Began.IsZero() {
		src.Began = r.Begun
	}
	s.running = r.State == workspace.ReviewRunning
	s.apart = map[string]bool{}
	for _, a := range r.Apart {
		s.apart[string(a)] = true
	}
	s.dev, s.ino = r.Dev, r.Ino
	if r.Died {
		s.Notes = append(s.Notes, "the supervisor of the run died: what was being written then may be unfinished")
	}
	for _, w := range r.Written {
		s.Notes = append(s.Notes, fmt.Sprintf("the run could write to %q at once: nothing of that is here", string(w)))
	}
	for _, l := range r.Left {
		s.Notes = append(s.Notes, fmt.Sprintf("not in the copy that the run worked on: %q", string(l)))
	}
	return nil
}

// modes reads the modes that kept files had: the copies of them have another.
func (s *Set) modes(ctx context.Context) error {
	s.trees.modes = map[string]uint32{}
	if s.trees.base < 0 {
		return nil
	}
	top := filepath.Join(s.Source.Dir, workspace.BaseDir)
	err := filepath.WalkDir(top, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			s.trees.modes[p[len(top)+1:]] = 0
		}
		return errors.Join(err, ctx.Err())
	})
	if err != nil {
		return fmt.Errorf("listing the saved start state: %w", err)
	}
	_, _, err = readFacts(filepath.Join(s.Source.Dir, workspace.StartFile), func(path string, i workspace.Identity) {
		if _, ok := s.trees.modes[path]; ok {
			s.trees.modes[path] = i.Mode
		}
	})
	return err
}

// mode is the mode with type of a kept file: as it was at the start where that
// is known.
func (t *trees) mode(path string, st uint16) uint16 {
	if m := t.modes[path]; m != 0 && m&unix.S_IFMT == uint32(st)&unix.S_IFMT {
		return uint16(m)
	}
	return st
}

// readStart reads what the changed files were when the run began.
func (s *Set) readStart(began int64) error {
	s.began = began
	s.start = map[string]workspace.Identity{}
	wanted := map[string]bool{} // beside the paths of the changes themselves
	for _, c := range s.Changes {
		if c.From != "" {
			wanted[string(c.From)] = true
		}
		for _, p := range c.parts {
			wanted[string(p.Path)] = true
		}
	}
	head, listed, err := readFacts(filepath.Join(s.Source.Dir, workspace.StartFile), func(path string, i workspace.Identity) {
		if wanted[path] || s.index[path] != nil {
			s.start[path] = i
		}
	})
	s.listed = listed
	if s.began == 0 {
		s.began = head
	}
	return err
}
