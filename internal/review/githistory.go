//go:build linux

package review

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary/workspace"
)

// history carries over what a run did in a repository, or nothing of it: all
// targets are looked at before the first is written, with git's own lock held.
func (a *applier) history(c *Change) (err error) {
	digest, err := a.digest(c)
	if err != nil || digest != c.digest {
		a.reportChange(c, string(c.Path), errors.Join(err, ErrChanged))
		return nil
	}
	free, err := a.lockGit(string(c.Path))
	if err != nil {
		a.reportChange(c, string(c.Path), err)
		return nil
	}
	defer func() { err = errors.Join(err, free()) }()
	var steps []*work
	for _, p := range c.parts {
		list, err := a.planPart(c, p)
		if err != nil {
			a.reportPart(p, err)
			return a.closeDirs()
		}
		steps = append(steps, list...)
	}
	d := &appliedState{Digest: digest}
	if len(steps) == 0 {
		a.markApplied(c, d)
		return a.closeDirs()
	}
	for _, w := range steps {
		w.in.Done = d
	}
	steps[len(steps)-1].in.Last = true
	for part := range slices.Chunk(steps, batch) {
		if err := a.carry(part); err != nil {
			return err
		}
		if slices.ContainsFunc(part, func(w *work) bool { return w.failed }) {
			break // what comes next leans on it
		}
	}
	return a.closeDirs()
}

// reportPart puts into the report what is in the way of one file of a history.
func (a *applier) reportPart(p *Change, err error) {
	var k *conflictError
	if errors.As(err, &k) {
		a.rep.Conflicts = append(a.rep.Conflicts, a.conflict(p, string(p.Path), k.why))
		return
	}
	a.refuse(p.Path, "%v", err)
}

// planPart plans one file of a history.
func (a *applier) planPart(c, p *Change) ([]*work, error) {
	var steps []*work
	var err error
	switch class := classOf(p); {
	case p.Kind == Deleted:
		steps, err = a.planRemove(p, string(p.Path))
	case class == gitObject || class == gitPack || class == gitPackIndex:
		steps, err = a.planObject(p, class)
	default:
		plain := *p
		plain.Mode = p.Mode&0o666 | 0o600 // none of these is a program
		steps, err = a.planPut(&plain, &appliedState{})
	}
	for _, w := range steps {
		w.c, w.part, w.in.Change = c, p, c.Path
	}
	return steps, err
}

// planObject plans a new object. One of that name that is there already is the
// same, or is not to be replaced.
func (a *applier) planObject(p *Change, class gitClass) ([]*work, error) {
	at, name := cut(string(p.Path))
	dir, err := a.dir(at)
	if err != nil {
		return nil, err
	}
	var st unix.Statx_t
	if status(dir, name, &st) == nil {
		return nil, nil
	}
	if class == gitObject {
		f, err := openFile(a.trees.upper, string(p.Path), true)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		_, rel, _ := repositoryOf(string(p.Path))
		if err := checkObject(f, strings.ReplaceAll(strings.TrimPrefix(rel, "objects/"), "/", "")); err != nil {
			return nil, err
		}
	}
	w := a.work(p, put, string(p.Path), dir)
	w.ours, w.whole = State{Type: File, Mode: 0o444}, true
	return []*work{w}, nil
}

// lockGit takes the lock that git itself takes before it writes the index, so
// that no command of the user runs into the middle of this.
func (a *applier) lockGit(repo string) (free func() error, err error) {
	free = func() error { return nil }
	d, err := workspace.OpenBeneath(a.trees.tree, repo, unix.O_PATH|unix.O_DIRECTORY)
	if errors.Is(err, unix.ENOENT) {
		return free, nil // a new repository
	}
	if err != nil {
		return nil, unreachable(repo, err)
	}
	unix.Close(d)
	dir, err := a.dir(repo)
	if err != nil {
		return nil, err
	}
	path, temp := repo+"/index.lock", tempName()
	if err := a.j.appendNotes(true, note{Locks: []workspace.Name{workspace.Name(path), workspace.Name(repo + "/" + temp)}}); err != nil {
		return nil, err
	}
	lock, err := a.takeLock(dir, temp)
	if errors.Is(err, unix.EEXIST) {
		err = &conflictError{"git is at work there, or was killed: index.lock exists"}
	} else if err != nil {
		err = errors.Join(fmt.Errorf("locking the repository: %w", err), a.unlock(path))
	}
	if err != nil {
		return nil, errors.Join(err, a.unlock(repo+"/"+temp))
	}
	return func() error {
		defer lock.Close()
		d, err := workspace.OpenBeneath(a.trees.tree, repo, unix.O_PATH|unix.O_DIRECTORY)
		if err != nil {
			return nil // the repository is gone, and with it the lock
		}
		defer unix.Close(d)
		if !isLock(d, lock) {
			return nil // it was removed, and what is there is another's
		}
		return a.unlock(path)
	}, nil
}

// takeLock makes the lock in one step, with the text that identifies it: an empty one
// could be any program's, and would never be removed after a kill. It is made where no
// run can write, if possible; what was put into place is compared with what was made.
//
// The file stays open, so that no other gets its number. After an error the caller
// removes temp.
func (a *applier) takeLock(dir int, temp string) (*os.File, error) {
	room := dir
	if a.sameMount(dir) {
		room = a.trees.ready
	}
	f, err := a.d.create(room, temp)
	if err != nil {
		return nil, err
	}
	err = a.d.write(f, []byte(lockText))
	if err == nil {
		err = a.d.rename(room, temp, dir, "index.lock", unix.RENAME_NOREPLACE)
	}
	if err == nil && !isLock(dir, f) {
		return nil, errors.Join(&conflictError{"a program exchanged index.lock while it was made: end what runs there, and apply again"}, f.Close())
	}
	if err == nil {
		return f, nil
	}
	err = errors.Join(err, f.Close())
	if errors.Is(err, unix.EXDEV) && room != dir {
		a.crossMount = true // see retryBeside
		if err := a.d.unlink(room, temp); err != nil {
			return nil, err
		}
		return a.takeLock(dir, temp)
	}
	return nil, err
}

// isLock reports whether the lock of the repository dir is the file f.
func isLock(dir int, f *os.File) bool {
	var at, made unix.Stat_t
	return unix.Fstatat(dir, "index.lock", &at, unix.AT_SYMLINK_NOFOLLOW) == nil && unix.Fstat(int(f.Fd()), &made) == nil && at.Ino == made.Ino && at.Dev == made.Dev
}
