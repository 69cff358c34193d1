//go:build linux

package review

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary/workspace"
)

// State is what a path of the workspace must be, or became.
type State struct {
	Type   Type           `json:"type"`
	Mode   uint32         `json:"mode"` // 0777
	Size   int64          `json:"size"`
	SHA256 string         `json:"sha256,omitempty"` // "" where the file is larger than MaxSum
	Target workspace.Name `json:"target,omitempty"`
}

func (s Side) state() State {
	return State{Type: s.Type, Mode: s.Mode & 0o777, Size: s.Size, SHA256: s.SHA256, Target: workspace.Name(s.Target)}
}

// targetState is what a path must be for a change to be carried out on it.
type targetState struct {
	State
	ID *workspace.Identity `json:"id,omitempty"` // of the file itself; nil: any file of that state
}

// matches reports whether what is at name in dir is as expected. moved means that Apply
// gave it the name, which moves its change time.
func (e targetState) matches(dir int, name string, moved bool) (bool, error) {
	var st unix.Statx_t
	err := status(dir, name, &st)
	if absent(err) {
		return e.Type == None, nil
	}
	if err != nil {
		return false, err
	}
	if typeOf(st.Mode) != e.Type || e.Type != Link && uint32(st.Mode)&0o777 != e.Mode {
		return false, nil
	}
	if e.ID != nil && e.Type != Dir && !sameState(*e.ID, workspace.IdentityOf(&st), moved) {
		return false, nil
	}
	switch e.Type {
	case Link:
		t, err := readLink(dir, name)
		return t == string(e.Target), err
	case File:
		if int64(st.Size) != e.Size {
			return false, nil
		}
		if e.SHA256 == "" {
			return e.ID != nil, nil
		}
		f, err := openFile(dir, name, false)
		if err != nil {
			return false, err
		}
		defer f.Close()
		return e.contentMatches(f)
	}
	return true, nil
}

// contentMatches reports whether a file has the content that is expected.
func (e targetState) contentMatches(f *os.File) (bool, error) {
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(f, e.Size+1))
	return err == nil && n == e.Size && hex.EncodeToString(h.Sum(nil)) == e.SHA256, err
}

// descriptorMatches reports whether an open file has the expected bits and content: a
// name that was checked may lead to another file by now.
func (e targetState) descriptorMatches(fd int, st *unix.Statx_t) (bool, error) {
	if uint32(st.Mode)&0o777 != e.Mode || e.Type == File && int64(st.Size) != e.Size {
		return false, nil
	}
	if e.Type != File || e.SHA256 == "" {
		return e.ID != nil, nil
	}
	again, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false, err
	}
	f := os.NewFile(uintptr(again), "file")
	defer f.Close()
	return e.contentMatches(f)
}

// readExpected reads what is at name in dir as something to be expected again.
func readExpected(dir int, name string) (targetState, error) {
	var e targetState
	side, err := readAt(dir, name, false)
	if err != nil || side.Type == None {
		return e, err
	}
	var st unix.Statx_t
	if err := status(dir, name, &st); err != nil {
		return e, err
	}
	id := workspace.IdentityOf(&st)
	e.State, e.ID = side.state(), &id
	return e, nil
}

// expectedNow finds what must be at the path of c for c to be carried out: what was there
// when the run began, or what Apply itself put there. known is false if neither is known.
func (s *Set) expectedNow(c *Change) (e targetState, known bool, err error) {
	path := string(c.Path)
	if done := s.saved.list[c.Path]; done != nil && done.Done != nil {
		return targetState{State: done.Done.Left}, true, nil
	}
	if c.OldType == None || c.Kind == Renamed {
		_, there := s.start[path]
		return e, !there, nil // if it was there, another program removed it
	}
	if s.trees.base >= 0 {
		side, err := readSide(s.trees.base, path, false)
		if err != nil {
			return e, false, err
		}
		if side.Type != None && side.Type != Dir && !s.trees.gone[path] {
			side.Mode = s.trees.sideMode(path, side.Mode)
			return targetState{State: side.state()}, true, nil
		}
	}
	dir, name := cut(path)
	d, err := workspace.OpenBeneath(s.trees.tree, dir, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		if absent(err) {
			err = nil
		}
		return e, false, err
	}
	defer unix.Close(d)
	if e, err = readExpected(d, name); err != nil || e.ID == nil {
		return e, false, err
	}
	if was, ok := s.start[path]; ok {
		return e, sameState(was, *e.ID, false) || e.Type == Dir && was.Mode == e.ID.Mode, nil
	}
	return e, !s.listed && s.began != 0 && (e.ID.Ctime < s.began || e.Type == Dir), nil
}

// conflict returns the three sides of a change that cannot be carried out.
func (s *Set) conflict(c *Change, path, why string) Conflict {
	k := Conflict{Change: c, Path: workspace.Name(path), Why: why}
	k.Base, k.Ours, _ = s.sides(c)
	k.Theirs, _ = readSide(s.trees.tree, path, false)
	if path != string(c.Path) {
		k.Ours = Side{Known: true} // the old name of a rename goes
	}
	kept := false
	if s.trees.base >= 0 {
		side, err := readSide(s.trees.base, path, false)
		kept = err == nil && side.Type != None
	}
	if !kept && !s.trees.gone[path] && c.OldType != None {
		// The old side that Collect read is the workspace itself, which has changed
		// since.
		k.Base = Side{Type: c.OldType}
	}
	return k
}

// Text returns the content of a side of a conflict or a diff, if it is a regular
// file of MaxText at most.
func (s Side) Text() []byte { return s.data }

func (c *Change) String() string { return fmt.Sprintf("%s %q", c.Kind, string(c.Path)) }
