//go:build linux

package probe

import (
	"fmt"
	"os"
	"time"
)

// startsBeside are played with a hostile run that exchanges names of the workspace
// while the launcher looks through it and starts another one.
func startsBeside() []Row {
	row := func(id, title, pairs string) Row {
		return Row{ID: id, Class: classRaces, Kind: Sandbox, Promise: "P2",
			Title:   title + ", while another run in the workspace exchanges the directories that it may lie in",
			Refs:    []string{"rename(2)", "open_tree(2)", "move_mount(2)"},
			Timeout: time.Minute, Timed: true, Least: 100,
			Accept:       append([]string{"ETXTBSY"}, Denials...),
			Harmless:     "names of the workspace may be exchanged and its own files written; what is outside must stay as it is",
			RefusalHolds: true,
			Drive:        func(s *Session) { s.startOften(4) },
			Action:       "write-pairs", Args: []string{"pairs=" + pairs},
			Trace:  nothing("the second names lie where the kernel refuses the write (EROFS), in a workspace that may be written"),
			Beside: &Command{Action: "exchange-pairs", Args: []string{"pairs=" + pairs}}}
	}
	linked := row("RAC-341", "a file of the workspace that has a second name outside is written", "W/pair")
	linked.Setup = pairs
	return []Row{linked}
}

// startOften starts the command of the row some times over: each start is looked at
// and mounted once.
func (s *Session) startOften(times int) {
	for range times {
		s.Run(Command{Options: s.Row.Options})
	}
}

// pairCount is how many pairs of directories are exchanged.
const pairCount = 16

// pairs makes directories in twos, each with a file of the same name: in the first
// a second name of a file outside, in the other one of the workspace.
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
