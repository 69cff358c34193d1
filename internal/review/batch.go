//go:build linux

package review

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary/workspace"
)

func sumFile(f *os.File) (string, error) {
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// batch carries out some changes. The error ends Apply; what concerns one change
// alone goes into the report.
func (a *applier) batch(part []*Change) error {
	var steps []*work
	for _, c := range part {
		if err := a.ctx.Err(); err != nil {
			return err
		}
		list, err := a.plan(c)
		if err != nil {
			a.reportChange(c, string(c.Path), err)
			continue
		}
		steps = append(steps, list...)
		if len(a.dirs) < maxOpen {
			continue
		}
		if err := errors.Join(a.carry(steps), a.closeDirs()); err != nil {
			return err
		}
		steps = nil
	}
	return errors.Join(a.carry(steps), a.closeDirs())
}

// maxOpen is how many directories are held open before what is planned in them
// is carried out: the limit of descriptors may be 1024.
const maxOpen = 400

// reportChange puts what went wrong with c into the report.
func (a *applier) reportChange(c *Change, path string, err error) {
	var k *conflictError
	if errors.As(err, &k) {
		a.rep.Conflicts = append(a.rep.Conflicts, a.conflict(c, path, k.why))
		return
	}
	a.refuse(workspace.Name(path), "%v", err)
}

// carry makes all that is new, then lets each thing take its place.
func (a *applier) carry(steps []*work) error {
	if len(steps) == 0 {
		return nil
	}
	defer func() {
		for _, w := range steps {
			if w.temp != nil {
				w.temp.Close()
			}
		}
	}()
	var notes []note
	for _, w := range steps {
		notes = append(notes, note{Intent: &w.in})
	}
	if err := a.j.appendNotes(true, notes...); err != nil {
		return err
	}
	a.j.open += len(steps)
	err := a.prepareAll(steps)
	broken := map[*Change]bool{}
	for _, w := range steps {
		if err == nil {
			err = a.ctx.Err()
		}
		if w.failed || broken[w.c] || err != nil {
			broken[w.c] = true
			if !w.failed {
				a.removeTemp(w)
			}
			w.failed = true
			continue
		}
		err := a.carryOne(w)
		if errors.Is(err, unix.EXDEV) && w.in.Ready {
			err = a.retryBeside(w)
		}
		if err != nil {
			broken[w.c], w.failed = true, true
			a.reportStep(w, err)
			continue
		}
		a.markMade(w)
		if w.in.Last {
			a.markApplied(w.c, w.in.Done)
		}
	}
	return err
}

// reportStep is failed for a step.
func (a *applier) reportStep(w *work, err error) {
	if w.part != nil {
		a.reportPart(w.part, err)
		return
	}
	a.reportChange(w.c, string(w.in.Path), err)
}

// markMade notes that nothing was at the path of a step before.
func (a *applier) markMade(w *work) {
	if w.in.Was.Type != None || w.in.Act != put {
		return
	}
	e := a.saved.entry(w.c)
	e.Made = append(e.Made, w.in.Path)
	a.trees.gone[string(w.in.Path)] = true
}

// prepareAll makes the temporaries, and has them on disk with a note that identifies
// them before any of them is put into place.
func (a *applier) prepareAll(steps []*work) error {
	note := note{}
	for _, w := range steps {
		if w.in.Act != put {
			continue
		}
		if err := a.ctx.Err(); err != nil {
			return err
		}
		if err := a.make(w); err != nil {
			w.failed = true
			a.reportStep(w, err)
			a.removeTemp(w)
		}
	}
	for _, w := range steps {
		if w.in.Act != put || w.failed {
			continue
		}
		if w.temp != nil {
			if err := a.d.sync(int(w.temp.Fd())); err != nil {
				w.failed = true
				a.reportStep(w, err)
				a.removeTemp(w)
				continue
			}
		}
		w.in.Done.Left = w.ours
		note.Made = append(note.Made, w.ino)
		note.Lefts = append(note.Lefts, stepResult{w.in.Step, w.ours})
	}
	if len(note.Made) == 0 {
		return nil
	}
	return a.j.appendNotes(true, note)
}

// removeTemp removes a temporary that will not be used.
func (a *applier) removeTemp(w *work) {
	if w.temp != nil { // its space is free only then
		w.temp.Close()
		w.temp = nil
	}
	var err error
	switch {
	case w.in.Act != put:
	case w.ours.Type == Dir:
		err = a.d.rmdir(w.tempDir, w.in.Temp)
	default:
		err = a.d.unlink(w.tempDir, w.in.Temp)
	}
	if err == nil || absent(err) {
		a.endStep(w, false)
	}
}

// endStep writes into the journal that a step is over, with nothing left to remove.
func (a *applier) endStep(w *work, did bool) {
	if a.j.appendNotes(false, note{End: w.in.Step, Did: did}) == nil {
		a.j.open--
	}
}

// carryOne lets one step happen.
func (a *applier) carryOne(w *work) error {
	do := map[act]func(*work) error{put: a.swap, remove: a.takeAway, rmdir: a.rmdirStep, chmod: a.chmodStep}
	err := do[w.in.Act](w)
	if err == nil {
		a.endStep(w, true)
		return nil
	}
	if errors.Is(err, unix.EXDEV) && w.in.Ready {
		return err // nothing happened: retryBeside tries another way
	}
	var tampered *tamperedError
	if errors.As(err, &tampered) {
		a.endStep(w, false)
		return err
	}
	var stray *strayError
	if w.in.Act == put && !errors.As(err, &stray) && a.isOurs(w) {
		a.removeTemp(w)
	}
	var k *conflictError
	if w.in.Temp == "" || w.in.Act == remove && errors.As(err, &k) {
		a.endStep(w, false)
	}
	return err
}

// isOurs reports whether the private name refers to what was prepared.
func (a *applier) isOurs(w *work) bool {
	var st unix.Stat_t
	err := unix.Fstatat(w.tempDir, w.in.Temp, &st, unix.AT_SYMLINK_NOFOLLOW)
	return err == nil && st.Ino == w.ino.Ino && st.Dev == w.ino.Dev
}

// takeAway removes a file or a link that is what it should be.
func (a *applier) takeAway(w *work) error {
	if !a.isInPlace(w.at) {
		return &conflictError{fmt.Sprintf("directory %q was moved away in the meantime", w.at)}
	}
	err := a.d.rename(w.dir, w.name, w.tempDir, w.in.Temp, unix.RENAME_NOREPLACE)
	if absent(err) {
		return nil // another process was faster
	}
	if err != nil {
		return err
	}
	ok, err := w.in.Was.matches(w.tempDir, w.in.Temp, true)
	if ok && err == nil {
		return a.keepReplaced(w.tempDir, w.in.Temp, string(w.in.Path))
	}
	if e := a.d.rename(w.tempDir, w.in.Temp, w.dir, w.name, unix.RENAME_NOREPLACE); e != nil {
		return errors.Join(err, fmt.Errorf("putting it back (it is named %q now): %w", w.in.Temp, e))
	}
	return &conflictError{"it was changed in the meantime"}
}
