//go:build linux

package probe

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// tokensInRecords looks for secrets in what the launcher has put aside.
func tokensInRecords(w *World, _ Observation) []string {
	var out []string
	_ = filepath.WalkDir(filepath.Join(w.H, ".local"), func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil
		}
		b, err := os.ReadFile(p)
		for name, token := range w.tokens {
			if err == nil && bytes.Contains(b, []byte(token)) {
				out = append(out, fmt.Sprintf("the token of %s was copied to %s", name, w.short(p)))
			}
		}
		return nil
	})
	return out
}

// Limits for a launcher that looks through what a run left. The rows leave
// something that used to take several times as much.
const (
	mostSettling  = 10 * time.Second // of processor time
	mostSettled   = 768 * mebi       // of memory
	mostInterrupt = 15 * time.Second // from an interrupt to the end
)

// cheap demands that the launcher used little to finish.
func cheap(_ *World, o Observation) (out []string) {
	if o.Used > mostSettling {
		out = append(out, fmt.Sprintf("the launcher used %v of processor time", o.Used.Round(time.Millisecond)))
	}
	if o.Peak > mostSettled {
		out = append(out, fmt.Sprintf("the launcher used %d MiB of memory", o.Peak/mebi))
	}
	return out
}

// thenEmptied plays the row and empties the large indexes, so that the search for
// tokens need not read them.
func thenEmptied(s *Session) {
	s.Run(Command{})
	emptied(s.World)
}

func emptied(w *World) {
	large, _ := filepath.Glob(w.Path("W/costly/*/.git/index"))
	for _, path := range large {
		_ = os.Remove(path)
	}
}

// interrupted plays the row, interrupts the launcher twice when nothing runs inside
// any more, and measures how long it continues.
func interrupted(s *Session) {
	w := s.World
	wait := s.Start(Command{})
	if !w.appears("W/left") {
		s.Fail(errors.New("nothing was left to search"))
	}
	for end := time.Now().Add(5 * time.Second); len(runningProbers(filepath.Base(w.B)+"/")) > 0 && time.Now().Before(end); {
		time.Sleep(10 * time.Millisecond)
	}
	begun := time.Now()
	for range 2 {
		time.Sleep(300 * time.Millisecond)
		for _, pid := range launcherOrCommand(w) {
			_ = syscall.Kill(pid, syscall.SIGINT)
		}
	}
	wait()
	if took := time.Since(begun); took > mostInterrupt {
		w.remembered = fmt.Sprintf("the launcher went on for %v after it was interrupted", took.Round(time.Second))
	}
	emptied(w)
}

// unlooked demands that what was not taken away is named, or that the workspace
// is named as not looked through.
func unlooked(templates ...string) func(*World, Observation) []string {
	each := named(nil, templates...)
	return func(w *World, o Observation) []string {
		if printedPaths(o.Stderr)[w.W] {
			return nil
		}
		return each(w, o)
	}
}
