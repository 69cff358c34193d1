//go:build linux

package probe

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// What a launcher may use to look through what a run left. The rows leave what took
// several times as much.
const (
	mostSettling  = 10 * time.Second // of processors
	mostSettled   = 768 * mebi       // of memory
	mostInterrupt = 15 * time.Second // from an interrupt to the end
)

// settleRows are about what the end of a run costs, of which the run decides how
// much there is to look through.
func settleRows() []Row {
	row := func(id, title, kind, count string) Row {
		return Row{ID: id, Kind: Host, Title: title, Refs: []string{"getrusage(2)", "gitformat-index(5)", "git-pack-refs(1)"},
			Harmless: takenAway, Timed: true, Timeout: 100 * time.Second, Drive: thenEmptied,
			Action: "leave-costly", Args: []string{"kind=" + kind, "count=" + count}}
	}
	planted := []string{"W/.envrc", "W/zz/.envrc", "W/costly/0/.envrc", "W/costly/11/.envrc"}
	indexes := row("RES-421", "indexes without content have the launcher read for minutes when a run ends, and names that the host executes lie among them", "index", "40")
	indexes.Absent, indexes.Oracle, indexes.Trace = append(planted, "W/costly/39/.envrc"), cheap, raised("quarantined")
	packed := row("RES-421b", "more packed references than can be read put objects into the place of others, without a word", "packed-refs", "12")
	var refs []string
	for i := range 12 {
		refs = append(refs, fmt.Sprintf("W/costly/%d/.git/packed-refs", i))
	}
	packed.Absent, packed.Oracle, packed.Trace = planted, both(cheap, named(nil, refs...)), raised("quarantined")
	stopped := row("RES-421c", "looking through what a run left cannot be interrupted, or what is not looked at then is not said", "index", "40")
	stopped.Drive, stopped.Oracle = interrupted, both(noted, unlooked("W/.envrc", "W/zz/.envrc"))
	stopped.Trace = nothing("how far it came when it was interrupted is a matter of time; what was not looked at is said on the terminal")
	return []Row{indexes, packed, stopped}
}

// cheap demands that the launcher used little to come to its end.
func cheap(_ *World, o Observation) (out []string) {
	if o.Used > mostSettling {
		out = append(out, fmt.Sprintf("the launcher used %v of processor time", o.Used.Round(time.Millisecond)))
	}
	if o.Peak > mostSettled {
		out = append(out, fmt.Sprintf("the launcher used %d MiB of memory", o.Peak/mebi))
	}
	return out
}

// thenEmptied plays the row and takes the content of the large indexes away, that
// whoever looks for tokens does not read them.
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
// any more, and looks how long it goes on.
func interrupted(s *Session) {
	w := s.World
	wait := s.Start(Command{})
	if !w.appears("W/left") {
		s.Fail(errors.New("nothing was left that could be looked through"))
	}
	for end := time.Now().Add(5 * time.Second); len(running(filepath.Base(w.B)+"/")) > 0 && time.Now().Before(end); {
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

// unlooked demands that what was not taken away is named, or the workspace as one
// that was not looked through.
func unlooked(templates ...string) func(*World, Observation) []string {
	each := named(nil, templates...)
	return func(w *World, o Observation) []string {
		if saidPaths(o.Stderr)[w.W] {
			return nil
		}
		return each(w, o)
	}
}
