//go:build linux

package probe

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// goesOn checks whether a file of the workspace still grows.
func goesOn(w *World, _ Observation) []string {
	time.Sleep(500 * time.Millisecond)
	before, err := os.Stat(w.Path("W/alive"))
	if err != nil {
		return nil
	}
	time.Sleep(700 * time.Millisecond)
	after, err := os.Stat(w.Path("W/alive"))
	if err != nil || after.Size() == before.Size() {
		return nil
	}
	return []string{"a process inside goes on writing after the end"}
}

// startDuringSwaps starts commands while another exchanges names below them,
// after one that is undisturbed.
func startDuringSwaps(s *Session) {
	honest := s.Run(Command{})
	wait := s.Start(Command{Action: "swap-only", Args: []string{"path=W/.git", "other=W/real", "how=exchange", "honest=" + honest.Took.String()}})
	for range 100 {
		if exists(s.World.Path("W/ready")) {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	begun := time.Now()
	for n := 0; n < 8 && time.Since(begun) < 2*time.Second; n++ {
		if o := s.Run(Command{}); o.Err != nil {
			s.Fail(fmt.Errorf("start %d: %w", n, o.Err))
		}
	}
	wait()
}

// portOutside listens outside and passes the action only the port.
func portOutside(w *World) error {
	l, err := w.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	w.Arg("port=" + l.Addr[strings.LastIndex(l.Addr, ":")+1:])
	return nil
}

// closedOutside makes a directory outside with a mode that a launcher may want to
// widen.
func closedOutside(w *World) error {
	if err := w.File("O/shut/file", "the user's own\n"); err != nil {
		return err
	}
	w.Defer(func() error { return os.Chmod(w.Path("O/shut"), 0o755) })
	if err := os.Chmod(w.Path("O/shut"), 0o500); err != nil {
		return err
	}
	return w.Keep(w.Path("O/shut"))
}

// startBeside starts the second run of a row and returns a function that ends it when
// the first one is over. Its observation comes before those of the row's own
// command, because it was started first.
func (s *Session) startBeside() (end func()) {
	if s.Row.Beside == nil {
		return func() {}
	}
	wait := s.Start(*s.Row.Beside)
	if !s.World.appears("W/beside") {
		s.Fail(fmt.Errorf("the second run did not come up in time"))
	}
	return func() {
		if err := s.World.File("W/over", ""); err != nil {
			s.Fail(err)
		}
		first := []Observation{wait()}
		s.obs = append(first, s.obs[:len(s.obs)-1]...)
	}
}

// ownObservations returns the observations of the row's own commands, once all are over.
func (s *Session) ownObservations() []Observation {
	if s.Row.Beside != nil && len(s.obs) > 0 {
		return s.obs[1:]
	}
	return s.obs
}

// startOften starts the command of the row several times: each start is inspected
// and mounted once.
func (s *Session) startOften(times int) {
	for range times {
		s.Run(Command{Options: s.Row.Options})
	}
}

// pairCount is how many pairs of directories are exchanged.
const pairCount = 16

// pairs makes pairs of directories, each with a file of the same name: in the
// first a hard link to a file outside, in the second a file of the workspace.
func pairs(w *World) error {
	for i := range pairCount {
		if err := w.File(fmt.Sprintf("W/pair/%d/b/f", i), "of the workspace\n"); err != nil {
			return err
		}
		a := w.Path(fmt.Sprintf("W/pair/%d/a", i))
		if err := os.Mkdir(a, 0o755); err != nil {
			return err
		}
		w.Holds(a + "/f")
		if err := os.Link(w.Path("O/canary"), a+"/f"); err != nil {
			return err
		}
	}
	return w.Keep(w.Path("O/canary"))
}

// startedFourTimes starts the launcher four times beside the hostile run.
func startedFourTimes(s *Session) { s.startOften(4) }
