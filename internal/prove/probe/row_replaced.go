//go:build linux

package probe

import (
	"errors"
	"os"
)

// replacedRows are of paths that may only be read, and that a program of the host
// replaces while the command runs: the mount goes with the old file.
func replacedRows() []Row {
	row := func(id, title string) Row {
		return Row{ID: id, Class: classDenies, Kind: Sandbox, Promise: "P3", Title: title, Refs: []string{"rename(2)", "mount_namespaces(7)"},
			Files: replaceable, Oracle: named(replaceable, "W/ro/f", "W/rd/f"), Drive: replacedMeanwhile,
			Harmless: "what a program of the host put there may be written, when the launcher names it at the end",
			Action:   "write-when-over", Args: []string{"path=W/ro/f\nW/rd/f"}, Trace: did("file.write", "W/ro/f", "W/rd/f")}
	}
	flags := row("DNY-421", "a file and a directory that may only be read are replaced by a program of the host, and the command writes to them without a word")
	flags.Options = Options{Read: []string{"W/ro/f", "W/rd"}}
	policy := row("DNY-421b", "the same, and the policy says that they may only be read")
	policy.Drive = func(s *Session) {
		t, ok := s.Target.(Flagger)
		if ok {
			path := s.World.B + "/readonly.yaml"
			if err := os.WriteFile(path, []byte("version: 1\nextends: local\nworkspace: {readonly: [ro/f, rd]}\n"), 0o600); err != nil {
				s.Fail(err)
				return
			}
			defer func() { s.Target = t.(Target) }()
			s.Target = t.With("--policy", path)
		}
		replacedMeanwhile(s)
	}
	return []Row{flags, policy}
}

// replaceable are the files, and what programs of the host write into them.
var replaceable = map[string]string{"W/ro/f": "of the host\n", "W/rd/f": "of the host\n"}

// replacedMeanwhile has a program of the host replace both while the command runs,
// as editors and package managers do.
func replacedMeanwhile(s *Session) {
	w := s.World
	wait := s.Start(Command{Options: s.Row.Options})
	if !w.appears("W/up") {
		s.Fail(errors.New("nothing ran during which something could be replaced"))
	}
	err := errors.Join(
		w.File("W/ro/new", replaceable["W/ro/f"]), os.Rename(w.Path("W/ro/new"), w.Path("W/ro/f")),
		w.File("W/rd.new/f", replaceable["W/rd/f"]), os.Rename(w.Path("W/rd"), w.Path("W/rd.old")), os.Rename(w.Path("W/rd.new"), w.Path("W/rd")))
	if err = errors.Join(err, w.File("W/over", "")); err != nil {
		s.Fail(err)
	}
	wait()
}
