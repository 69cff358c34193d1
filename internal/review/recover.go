//go:build linux

package review

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary/workspace"
)

// recover ends what an apply began that died: each path becomes the old or the
// new one, and what was prepared for it goes.
func (a *applier) recover() error {
	s, err := readJournal(a.Source.Dir)
	if s == nil || err != nil {
		return err
	}
	for _, in := range s.steps {
		a.step = max(a.step, in.Step)
		did, ended := s.ended[in.Step]
		if !ended {
			if did, err = a.recoverStep(s, in); err != nil {
				return fmt.Errorf("finishing what an earlier apply began with %q: %w", in.Path, err)
			}
		}
		if did && in.Was.Type == None && in.Act == put {
			e := a.saved.entry(&Change{Path: in.Change})
			e.Made = append(e.Made, in.Path)
		}
		if did && in.Last && in.Done != nil {
			if l, ok := s.left[in.Step]; ok {
				in.Done.Left = l
			}
			a.saved.entry(&Change{Path: in.Change}).Done = in.Done
		}
	}
	for _, lock := range s.locks {
		if err := a.unlock(string(lock)); err != nil {
			return err
		}
	}
	if err := a.saved.write(); err != nil {
		return err
	}
	if a.index != nil {
		a.saved.restore(a.Set)
	}
	return a.d.do("journal", func() error { return os.Remove(a.Source.Dir + "/journal") })
}

func (a *applier) noteRecovered(in *intent, format string, args ...any) {
	a.rep.Recovered = append(a.rep.Recovered, Problem{in.Path, fmt.Sprintf(format, args...)})
}

// recoverStep ends one step; did means that it is carried out.
func (a *applier) recoverStep(s *journalState, in *intent) (did bool, err error) {
	at, name := cut(string(in.Path))
	if in.Temp == "" {
		return false, nil // one call, which happened or did not
	}
	dir, err := workspace.OpenBeneath(a.trees.tree, at, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		if absent(err) || errors.Is(err, unix.ELOOP) {
			did = in.Act == remove && absent(err) // the directory is gone with all that was in it
			return did, a.clearReady(in)
		}
		return false, err
	}
	defer unix.Close(dir)
	room := a.tempDir(dir, in)
	if above, e := workspace.OpenBeneath(a.trees.base, at, unix.O_RDONLY|unix.O_DIRECTORY); e == nil {
		a.d.unlink(above, in.Temp) // a copy that was not finished
		unix.Close(above)
	}
	var temp unix.Stat_t
	err = unix.Fstatat(room, in.Temp, &temp, unix.AT_SYMLINK_NOFOLLOW)
	if err != nil && !absent(err) {
		return false, err
	}
	ours, made := s.made[in.Step]
	if absent(err) {
		return a.recoverBare(s, dir, name, in)
	}
	isOurs := temp.Ino == ours.Ino && temp.Dev == ours.Dev
	if in.Act == put && (!made || isOurs) {
		a.noteRecovered(in, "it had not been changed yet; what was prepared for it is removed")
		return false, a.clear(room, in.Temp, &temp)
	}
	ok, err := in.Was.matches(room, in.Temp, true)
	if err != nil {
		return false, err
	}
	if ok {
		if err = a.keepReplaced(room, in.Temp, string(in.Path)); err == nil {
			a.noteRecovered(in, "it had been changed; what it was before is kept in the review")
			return true, nil
		}
		if !errors.Is(err, unix.ENOTEMPTY) {
			return false, err
		}
	}
	return false, a.recoverBack(room, dir, name, in, ours)
}

// clearReady ends what is in the review's own directory for a place that is gone:
// what was prepared goes, and what was taken out of the workspace is kept.
func (a *applier) clearReady(in *intent) error {
	var st unix.Stat_t
	if !in.Ready || unix.Fstatat(a.trees.ready, in.Temp, &st, unix.AT_SYMLINK_NOFOLLOW) != nil {
		return nil
	}
	if in.Act == remove {
		return a.keepReplaced(a.trees.ready, in.Temp, string(in.Path))
	}
	return a.clear(a.trees.ready, in.Temp, &st)
}

// clear removes what Apply had made and not used.
func (a *applier) clear(dir int, temp string, st *unix.Stat_t) error {
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return a.d.rmdir(dir, temp)
	}
	return a.d.unlink(dir, temp)
}

// recoverBare ends a step whose private name is not there: it was not begun, or
// was as good as over. What is in the place counts if it is what was prepared, the
// same file with the same content.
func (a *applier) recoverBare(s *journalState, dir int, name string, in *intent) (bool, error) {
	var st unix.Stat_t
	err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if err != nil && !absent(err) {
		return false, err
	}
	if in.Act == remove {
		return absent(err), nil
	}
	ours, made := s.made[in.Step]
	if err != nil || !made || st.Ino != ours.Ino || st.Dev != ours.Dev {
		return false, nil
	}
	left, known := s.left[in.Step]
	if !known || left.Type != File || left.SHA256 == "" {
		return true, nil
	}
	ok, err := targetState{State: left}.matches(dir, name, true)
	if err == nil && !ok {
		a.noteRecovered(in, "it was changed as soon as it was applied; look at it")
	}
	return ok, err
}

// recoverBack gives a file its name back that was not what was expected.
func (a *applier) recoverBack(room, dir int, name string, in *intent, ours tempInode) error {
	var err error
	if in.Act == put {
		if err = a.swapBack(room, dir, in.Temp, name, ours); err == nil {
			err = a.d.unlink(room, in.Temp)
			if errors.Is(err, unix.EISDIR) || errors.Is(err, unix.EPERM) {
				err = a.d.rmdir(room, in.Temp)
			}
			if absent(err) {
				err = nil
			}
		}
	} else if err = a.d.rename(room, in.Temp, dir, name, unix.RENAME_NOREPLACE); errors.Is(err, unix.EEXIST) {
		err = &strayError{in.Temp}
	}
	var stray *strayError
	if errors.As(err, &stray) {
		a.noteRecovered(in, "%v", err)
		return nil
	}
	if err == nil {
		a.noteRecovered(in, "another process had changed it, and that version is back in place")
	}
	return err
}

// unlock removes a lock of git that an apply made, or its temporary file.
func (a *applier) unlock(path string) error {
	at, name := cut(path)
	if strings.HasPrefix(name, tempPrefix) && a.trees.ready >= 0 {
		if err := a.d.unlink(a.trees.ready, name); err != nil && !absent(err) {
			return fmt.Errorf("removing an unfinished lock: %w", err)
		}
	}
	dir, err := workspace.OpenBeneath(a.trees.tree, at, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil // the repository is gone, and with it the lock
	}
	defer unix.Close(dir)
	b, err := readAt(dir, name, false)
	if err != nil || string(b.data) != lockText && !strings.HasPrefix(name, tempPrefix) {
		return nil // it is not there, or not ours
	}
	if err := a.d.unlink(dir, name); err != nil && !absent(err) {
		return fmt.Errorf("removing the lock %q, which apply made: %w", path, err)
	}
	return nil
}

// lockText is what Apply writes into a lock of git, to know it again.
const lockText = "held by holdfast review\n"
