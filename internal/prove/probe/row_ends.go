//go:build linux

package probe

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// launcherOrCommand returns the first process of the launcher, without its
// children, or without a launcher, the command.
func launcherOrCommand(w *World) []int {
	all := launchersOf(w)
	first := slices.DeleteFunc(slices.Clone(all), func(pid int) bool {
		p, ok := processOf(pid)
		return !ok || slices.Contains(all, p.parent)
	})
	if len(first) > 0 {
		return first
	}
	pids := runningProbers(filepath.Base(w.B) + "/")
	return pids[:min(1, len(pids))]
}

// signalled sends sig to the launcher when something runs inside, and reports
// whether there was a process to send it to.
func signalled(s *Session, sig syscall.Signal) bool {
	if !s.World.appears("W/beat") {
		s.Fail(errors.New("nothing ran that could be ended"))
		return false
	}
	time.Sleep(200 * time.Millisecond) // the last moment may be in no record
	sent := false
	for _, pid := range launcherOrCommand(s.World) {
		sent = syscall.Kill(pid, sig) == nil || sent
	}
	return sent
}

// terminated asks the launcher to end, waits longer than any usual grace period,
// and checks whether the command continues.
func terminated(s *Session) {
	w := s.World
	wait := s.Start(Command{})
	if signalled(s, syscall.SIGTERM) {
		goesOn := true
		for end := time.Now().Add(13 * time.Second); goesOn && time.Now().Before(end); {
			goesOn = stillBeating(w)
		}
		if goesOn {
			w.remembered = "the command goes on after the launcher was asked to end"
		}
	}
	if err := w.File("W/over", ""); err != nil {
		s.Fail(err)
	}
	wait()
	s.obs = s.obs[:len(s.obs)-1] // it was ended before it could finish
	s.Run(Command{Action: "nothing-denied"})
}

// killedAndAgain kills the launcher and starts others in the same workspace until
// one reports what was held back.
func killedAndAgain(s *Session) {
	w := s.World
	wait := s.Start(Command{})
	killed := signalled(s, syscall.SIGKILL)
	wait()
	s.obs = s.obs[:len(s.obs)-1]
	if !killed {
		s.Fail(errors.New("there was nothing to kill"))
		return
	}
	for end := time.Now().Add(5 * time.Second); exists(w.Path("W/.envrc")) && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
	}
	w.remembered = "what was planted is held back, and nothing says so"
	for tries := 0; tries < 4 && w.remembered != ""; tries++ {
		time.Sleep(500 * time.Millisecond) // what cleans up after a killed launcher may not be done
		if said := printedPaths(s.Run(Command{Action: "nothing-denied"}).Stderr); said[w.Path("W/.envrc")] {
			w.remembered = ""
		}
	}
}

// moved moves the workspace away while the command runs, puts another in its place,
// and uses it again afterwards.
func moved(s *Session) {
	w := s.World
	away := w.Path("S/moved")
	wait := s.Start(Command{})
	err := errors.New("nothing ran whose workspace could be moved")
	if w.appears("W/beat") {
		err = errors.Join(os.Rename(w.W, away), os.Mkdir(w.W, 0o755))
	}
	err = errors.Join(err, os.WriteFile(away+"/over", nil, 0o600))
	wait()
	if err = errors.Join(err, os.RemoveAll(w.W), os.Rename(away, w.W)); err != nil {
		s.Fail(err)
		return
	}
	if exists(w.Path("W/.envrc")) {
		w.remembered = "what was planted stays where the workspace was moved to"
	}
	if o := s.Run(Command{Action: "nothing-denied"}); o.Refused {
		w.remembered = "the workspace cannot be used any more: " + firstLine(o.Stderr)
	}
}
