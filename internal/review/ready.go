//go:build linux

package review

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary/workspace"
)

// sameMount reports whether what is prepared in the review's own directory can be
// renamed into dir: both are on one mount of one file system. Beside dir it would
// be prepared where a run that is alive may exchange it.
func (a *applier) sameMount(dir int) bool {
	var here, there unix.Statx_t
	const mask = unix.STATX_MNT_ID
	for fd, st := range map[int]*unix.Statx_t{a.trees.ready: &here, dir: &there} {
		if unix.Statx(fd, "", unix.AT_EMPTY_PATH, mask, st) != nil || st.Mask&mask == 0 {
			return false
		}
	}
	return here.Mnt_id == there.Mnt_id && here.Dev_major == there.Dev_major && here.Dev_minor == there.Dev_minor && !a.crossMount
}

// tempDir is the directory in which the private name of a step is.
func (a *applier) tempDir(dir int, in *intent) int {
	if in.Ready {
		return a.trees.ready
	}
	return dir
}

// group is the group that what w makes would have, had it been made in its place:
// that of the directory where that hands on its group, with the bit by which a new
// directory does so too. What replaces a file of the same owner has its group. -1 is
// none of these.
func (a *applier) group(w *work) (gid int, inherit uint32) {
	var dir, old unix.Stat_t
	gid = -1
	if unix.Fstat(w.dir, &dir) == nil && dir.Mode&unix.S_ISGID != 0 {
		gid, inherit = int(dir.Gid), unix.S_ISGID
	}
	if w.in.Was.Type != None && unix.Fstatat(w.dir, w.name, &old, unix.AT_SYMLINK_NOFOLLOW) == nil && (a.d.uid < 0 || int(old.Uid) == a.d.uid) {
		gid = int(old.Gid)
	}
	return gid, inherit
}

// tamperedError is a file that is not what was reviewed once it is in its place.
type tamperedError struct{ why string }

func (e *tamperedError) Error() string { return e.why }

// Hint names what to do about a run that is alive.
func (e *tamperedError) Hint() string {
	return "end the runs that work in the workspace, and apply again"
}

// checkPlaced returns nil if what is at the path now is what was prepared: the same file
// with the same content.
func (a *applier) checkPlaced(w *work) error {
	replaced := &tamperedError{"something else was in its place as soon as it was applied: a program is at work in the workspace"}
	fd, err := unix.Openat(w.dir, w.name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if absent(err) {
		return replaced
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Statx_t
	if err := statusOf(fd, &st); err != nil {
		return err
	}
	if st.Ino != w.ino.Ino || unix.Mkdev(st.Dev_major, st.Dev_minor) != w.ino.Dev {
		return replaced
	}
	if w.temp == nil {
		return nil // the text of a link cannot be changed, and a directory is listed by what is in it
	}
	same := int64(st.Size) == w.ours.Size && uint32(st.Mode)&0o777 == w.ours.Mode
	if same && w.ours.SHA256 != "" {
		sum, err := sumFile(w.temp)
		if err != nil {
			return err
		}
		same = sum == w.ours.SHA256
	} else if same {
		if same, err = a.sameAsRun(w); err != nil {
			return err
		}
	}
	if !same {
		return &tamperedError{"it was changed as soon as it was applied: a program is at work in the workspace"}
	}
	return nil
}

// sameAsRun compares a file that is too large to be hashed with the run's.
func (a *applier) sameAsRun(w *work) (bool, error) {
	from, err := openFile(a.trees.upper, string(w.in.Path), true)
	if err != nil {
		return false, err
	}
	defer from.Close()
	return workspace.SameContent(int(w.temp.Fd()), int(from.Fd()), w.ours.Size), nil
}

// takeOut removes what was put into place and is not ours, so that what was there, or
// nothing, is there again. It can only have come under the private name beside the path:
// from the review's own directory nothing else can, and what replaced it later belongs
// to its author.
func (a *applier) takeOut(w *work) error {
	if w.in.Ready {
		if w.in.Was.Type == None {
			return nil
		}
		return a.keepReplaced(w.tempDir, w.in.Temp, string(w.in.Path))
	}
	if w.in.Was.Type != None {
		if err := a.d.rename(w.tempDir, w.in.Temp, w.dir, w.name, unix.RENAME_EXCHANGE); err != nil {
			return fmt.Errorf("putting it back (it is named %q now): %w", w.in.Temp, err)
		}
		if ok, err := w.in.Was.matches(w.dir, w.name, true); ok || err != nil {
			return errors.Join(err, a.clearBeside(w, w.in.Temp))
		}
		// What was there before was taken from under its private name too: its
		// author can have neither in its place.
	}
	away := tempName()
	if err := a.d.rename(w.dir, w.name, w.tempDir, away, unix.RENAME_NOREPLACE); err != nil {
		return fmt.Errorf("removing it again: %w", err)
	}
	return errors.Join(a.clearBeside(w, away), a.clearBeside(w, w.in.Temp))
}

// clearBeside removes what has a private name, if anything has it.
func (a *applier) clearBeside(w *work, temp string) error {
	var st unix.Stat_t
	if err := unix.Fstatat(w.tempDir, temp, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return nil
	}
	return a.clear(w.tempDir, temp, &st)
}

// retryBeside carries a step out that cannot be renamed from the review's directory,
// although both seemed to be in one place: with quotas by project, or encryption.
func (a *applier) retryBeside(w *work) error {
	a.crossMount = true
	if w.in.Act == put {
		a.removeTemp(w)
	} else {
		a.endStep(w, false)
	}
	a.step++
	w.in.Step, w.in.Ready, w.tempDir = a.step, false, w.dir
	if err := a.j.appendNotes(true, note{Intent: &w.in}); err != nil {
		return err
	}
	a.j.open++
	if err := a.prepareAll([]*work{w}); err != nil || w.failed {
		return errors.Join(err, errors.New("it could not be prepared next to its target"))
	}
	return a.carryOne(w)
}
