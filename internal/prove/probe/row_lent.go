//go:build linux

package probe

import (
	"os"
	"strings"
	"time"
)

// lentRows are of connections whose socket several programs hold.
func lentRows() []Row {
	return []Row{{ID: "HST-425", Class: classSupervisor, Kind: Sandbox, Promise: "P5", Needs: []string{"program sleep"},
		Title: "a connection is taken for one of a program that may connect, for that holds its socket too",
		Refs:  []string{"proc_pid_fd(5)", "CWE-863"},
		Drive: oneMayConnect, Oracle: noted, Action: "lend-socket",
		Accept: netDenials, Harmless: "what counts is what the service hears",
		Trace: Trace{Events: []Attempt{{Action: "net.connect", Verdict: "denied", Layer: "consent"}}}}}
}

// oneMayConnect plays the row under a policy by which one other program alone may
// connect to a service of the host.
func oneMayConnect(s *Session) {
	port, heard, stop, err := hearing()
	if err != nil {
		s.Fail(err)
		return
	}
	defer stop()
	if t, ok := s.Target.(Flagger); ok {
		path := s.World.B + "/lent.yaml"
		rule := "deny: [{when: 'action == \"connect\" && program != \"sleep\"'}]\n"
		if err := os.WriteFile(path, []byte("version: 1\nextends: local\n"+rule+"network: {host-ports: ["+port+"]}\n"), 0o600); err != nil {
			s.Fail(err)
			return
		}
		defer func() { s.Target = t.(Target) }()
		s.Target = t.With("--policy", path)
	}
	s.Run(Command{Args: []string{"port=" + port}, Action: s.Row.Action})
	select {
	case said := <-heard:
		if strings.Contains(said, "lent") {
			s.World.remembered = "the service heard a program that may not connect"
		}
	case <-time.After(200 * time.Millisecond):
	}
}
