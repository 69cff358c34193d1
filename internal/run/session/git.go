//go:build linux

package session

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/boundary/workspace"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/paths"
	"holdfast.dev/holdfast/internal/floor/sys"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/policy"
)

// gitCopy is a run's copy of the configuration of a repository.
type gitCopy struct {
	file   string // on the host
	inside string // absolute path inside
	given  []byte
}

// maxCopiesRead bounds what is read of copies that were changed, in bytes, and maxGitChanges
// after how many settings none is compared.
const (
	maxCopiesRead = 4 << 20
	maxGitChanges = 1000
)

// notInReview is why nothing is offered of a run in review mode: only what it changed in the
// workspace waits.
const notInReview = "in a review settings of other repositories are not kept: change them in a run there, without --review"

// gitHeader is the first lines of the user's configuration inside.
const gitHeader = "# Made by Holdfast from your own configuration of git, without what executes,\n# includes or leads elsewhere. It is private to this run.\n"

// addGit gives git the user's harmless settings, and a copy of the configuration of each
// repository in view.
func (s *Session) addGit(spec *boundary.Spec) error {
	home := spec.Plan.Identity.Home
	user := workspace.ReadUserGit(home, workspace.WritableTrees(spec.Plan))
	s.notes = nil
	said := slices.ContainsFunc(spec.Plan.Env, func(e policy.Env) bool { return e.Name == "GIT_AUTHOR_EMAIL" })
	if user.Undecided != "" && !said {
		s.notes = []string{"an identity " + user.Undecided + " is not taken over: --env GIT_AUTHOR_EMAIL=…"}
	}
	if os.Geteuid() == 0 { // the user inside is another one in each run, whom an index does not know
		user.Config = append(user.Config, "[core]\n\tcheckStat = minimal\n"...)
	}
	for _, f := range []boundary.File{
		{Path: filepath.Join(home, ".gitconfig"), Content: append([]byte(gitHeader), user.Config...), Mode: 0o600},
		{Path: filepath.Join(home, ".config/git/ignore"), Content: user.Ignore, Mode: 0o600},
	} {
		shown := slices.ContainsFunc(spec.Plan.Paths, func(r policy.PathRule) bool {
			return paths.Within(r.Path, f.Path) || r.At != "" && paths.Within(r.At, f.Path)
		})
		if !shown && len(f.Content) > 0 {
			spec.Files = append(spec.Files, f)
		}
	}
	s.copies = nil
	for _, r := range spec.Plan.Protect {
		if r.Copy == "" {
			continue
		}
		data, err := workspace.ReadConfig(spec.Plan, r)
		if err != nil {
			return err
		}
		s.copies = append(s.copies, gitCopy{spec.Plan.Within(r), r.Copy, data})
		spec.Files = append(spec.Files, boundary.File{Path: r.Copy, Content: data, Mode: 0o600})
	}
	return nil
}

// OpenView opens the directory of the copies before the command is executed. They are read
// through it when everything inside has ended, whatever was mounted or linked there since.
func (s *Session) OpenView(w boundary.Watch) error {
	if len(s.copies) == 0 {
		return nil
	}
	return sys.AsTask(w.UID, w.GID, func() error {
		dir, err := os.Open(filepath.Join(fmt.Sprintf("/proc/%d/root", w.First), event.KeptConfigs))
		if err != nil {
			return fmt.Errorf("opening the copies of git configurations: %w", err)
		}
		s.closeCopies()
		s.inside, s.insideUID, s.insideGID = dir, w.UID, w.GID
		return nil
	})
}

func (s *Session) closeCopies() {
	if s.inside != nil {
		s.inside.Close()
		s.inside = nil
	}
}

// CollectGit lists what the run changed in its copies. Everything inside has ended, and
// the view is still served.
func (s *Session) CollectGit() error {
	if s.inside == nil {
		return nil
	}
	defer s.closeCopies()
	return sys.AsTask(s.insideUID, s.insideGID, func() error {
		left := maxCopiesRead
		for _, c := range s.copies {
			after, err := s.readCopy(c)
			if err == nil && bytes.Equal(after, c.given) {
				continue
			}
			var changes []workspace.ConfigChange
			if left -= len(after); left < 0 || len(s.gitChanges) >= maxGitChanges {
				return errors.New("what git changed for other repositories in this run is not taken over: it is too much")
			}
			if err == nil {
				changes, err = workspace.CompareConfigs(c.file, c.given, after)
			}
			if err != nil {
				return fmt.Errorf("what git changed for %s, and for any after it, in this run is not taken over: %w", text.Word(c.file), err)
			}
			for i := range changes {
				if s.view != nil {
					changes[i].Refuse(notInReview)
				}
			}
			s.gitChanges = append(s.gitChanges, changes...)
		}
		return nil
	})
}

func (s *Session) readCopy(c gitCopy) ([]byte, error) {
	rel, err := filepath.Rel(event.KeptConfigs, c.inside)
	if err != nil {
		return nil, err
	}
	fd, err := unix.Openat2(int(s.inside.Fd()), rel, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_NONBLOCK | unix.O_NOCTTY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_XDEV,
	})
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: c.inside, Err: err}
	}
	f := os.NewFile(uintptr(fd), c.inside)
	defer f.Close()
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		return nil, errors.Join(err, fmt.Errorf("%s is not a regular file", c.inside))
	}
	return io.ReadAll(io.LimitReader(f, workspace.MaxConfig+1))
}
