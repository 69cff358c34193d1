//go:build linux

package probe

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// Lending is a target that has programs of the host give it secrets.
type Lending interface {
	// Lends makes the text the user's own policy.
	Lends(w *World, policy string) error
	// Fetch fetches a secret of that policy once, or refuses to.
	Fetch(w *World, name string)
}

// sourceRows are of programs that the launcher runs on the host for a secret, while
// a hostile run can choose what their names lead to.
func sourceRows() []Row {
	return []Row{{ID: "APR-401", Class: classConsent, Kind: Host, Promise: "P3",
		Title: "the link by which the program is found that gives a secret on the host is exchanged for one to a program of the workspace, after it was judged",
		Refs:  []string{"CWE-367", "execve(2)"}, Timed: true, Least: 1000, Timeout: 150 * time.Second, RefusalHolds: true,
		Bare:  "there is no launcher that fetches a secret",
		Setup: exchangedSource, Links: map[string]string{"O/tools": "W/pair/0/a"}, Absent: []string{"O/mark"},
		Drive: sourceOften, Action: "nothing-denied", Harmless: "names of the workspace may be exchanged; what is outside must stay as it is",
		Accept: append([]string{"ETXTBSY"}, Denials...),
		Beside: &Command{Action: "exchange-pairs", Args: []string{"pairs=W/pair"}},
		Trace:  nothing(declined)}}
}

// exchangedSource makes two links in the workspace: to a directory outside with the
// user's program, and to one of the workspace, whose program leaves a mark outside.
func exchangedSource(w *World) error {
	secret := "echo " + w.Token(lentName) + "\n"
	return errors.Join(w.program("O/bin/helper", "#!/bin/sh\n"+secret), w.program("W/own/helper", fmt.Sprintf("#!/bin/sh\n: >%q\necho own\n", w.Path("O/mark"))),
		os.MkdirAll(w.Path("W/pair/0"), 0o755), os.Symlink(w.Path("O/bin"), w.Path("W/pair/0/a")), os.Symlink(w.Path("W/own"), w.Path("W/pair/0/b")))
}

// sourceOften fetches the secret until that has run the other program.
func sourceOften(s *Session) {
	w := s.World
	if t, ok := s.Target.(Lending); ok {
		err := t.Lends(w, "version: 1\nextends: local\nnetwork:\n  allow: [allowed.test]\ncredentials:\n  - {name: probe, source: {command: ["+w.Path("O/tools/helper")+
			"]}, hosts: [allowed.test], header: \"Authorization: {}\", env: A_TOKEN, always: true}\n")
		if err != nil {
			s.Fail(err)
			return
		}
		for tries := 0; tries < 400 && !exists(w.Path("O/mark")); tries++ {
			t.Fetch(w, "probe")
		}
	}
	s.Run(Command{})
}
