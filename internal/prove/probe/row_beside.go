//go:build linux

package probe

import (
	"fmt"
	"os"
	"time"
)

// besideRows are played with two runs alive in one workspace. The first ends, and
// what it left is looked through, moved and removed by the launcher, on the host,
// while the second one exchanges names in the same tree.
func besideRows() []Row {
	const while = ", while the launcher settles another run in the same workspace"
	row := func(id, title, what, name, target string, more ...string) Row {
		return Row{ID: id, Class: classRaces, Kind: Sandbox, Promise: "P2", Title: title + while,
			Refs:    []string{"path_resolution(7)", "openat2(2)", "proc_pid_fd(5)"},
			Timeout: time.Minute, Timed: true, Least: 100,
			Accept:   append([]string{"ENOTDIR", "ELOOP", "EOPNOTSUPP"}, Denials...),
			Harmless: "names of the workspace may be exchanged; what is outside must keep its mode and its content",
			Setup:    closedOutside,
			Action:   "end-while-others-plant",
			Beside: &Command{Action: "plant-and-exchange",
				Args: append([]string{"count=500", "what=" + what, "name=" + name, "target=" + target}, more...)}}
	}
	made := row("RAC-124", "names that the host executes are made again and again", "file", ".envrc", "O/canary", "again=1")
	made.Promise, made.Setup = "P3", nil
	for i := range 500 {
		made.Absent = append(made.Absent, fmt.Sprintf("W/many/%d/.envrc", i))
	}
	rows := []Row{
		row("RAC-121", "a file that is to be held back is exchanged for a link to a file outside", "file", ".envrc", "O/canary"),
		row("RAC-122", "a directory that was closed is exchanged for a link to a directory outside", "closed", "sub", "O/shut"),
		row("RAC-123", "a directory that cannot be moved and is to be held back is exchanged for a link to a directory outside", "fixed", ".vscode", "O/shut"),
		made,
	}
	for i := range rows {
		if rows[i].Trace = raised("quarantined"); rows[i].ID == "RAC-122" {
			rows[i].Trace = nothing("that names of the workspace are exchanged is honest work, and the launcher opens a directory that was closed for itself alone")
		}
	}
	return rows
}

// closedOutside makes a directory outside whose mode is one that a launcher may
// want to widen.
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

// beside starts the second run of a row, and returns what has it come to its end
// once the first one is over. What is seen of it stands before what is seen of the
// row's own command: it was started before.
func (s *Session) beside() (end func()) {
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

// own is what was seen of the commands of the row itself, once all are over.
func (s *Session) own() []Observation {
	if s.Row.Beside != nil && len(s.obs) > 0 {
		return s.obs[1:]
	}
	return s.obs
}
