//go:build linux

package probe

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// turnPath begins the paths of requests at which a server lets the outside act.
const turnPath = "/turn"

// arrived signals the outside that something has arrived.
func (n *internet) arrived() { _ = os.WriteFile(n.w.Path("W/used"), nil, 0o644) }

// stream keeps what arrives, and lets the outside act after the first part of it.
func (n *internet) stream(body io.Reader) {
	buf := make([]byte, 4096)
	for {
		l, err := body.Read(buf)
		n.recordRaw(buf[:l])
		n.arrived()
		if err != nil {
			return
		}
	}
}

// slowProgram prints the secret on the host, after the outside has had its turn.
const slowProgram = "B/slow"

func slowSource(w *World) error {
	return w.program(slowProgram, fmt.Sprintf("#!/bin/sh\n: >%q\nuntil test -e %q; do sleep 0.05; done\necho %s\n", w.Path("W/used"), w.Path("W/over"), w.Token(lentName)))
}

// recordFails plays the row, and makes every file write of the launcher fail once
// the first request has arrived.
func recordFails(s *Session) {
	w := s.World
	wait := s.Start(Command{Options: s.Row.Options})
	if !w.appears("W/used") {
		s.Fail(errors.New("no request arrived"))
	}
	launchers := launchersOf(w)
	for _, pid := range launchers {
		var limit unix.Rlimit
		if err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, nil, &limit); err != nil {
			s.Fail(err)
			continue
		}
		limit.Cur = 1
		if err := unix.Prlimit(pid, unix.RLIMIT_FSIZE, &limit, nil); err != nil {
			s.Fail(err)
		}
	}
	if err := w.File("W/over", ""); err != nil {
		s.Fail(err)
	}
	wait()
	if len(launchers) > 0 { // it may have ended the command, which is right
		s.obs = s.obs[:len(s.obs)-1]
	}
	s.Run(Command{Action: "nothing-denied"})
}

// lateRequests reports requests that should not have left, if there are more than
// most.
func lateRequests(most int) func(*World, Observation) []string {
	return func(w *World, _ Observation) []string {
		late := w.net.requests(turnPath + "/late")
		if len(late) <= most {
			return nil
		}
		return []string{fmt.Sprintf("%d requests arrived: %s %s", len(late), late[0].method, late[0].target)}
	}
}

// lateWords reports data sent to a server that should not have left.
func lateWords(w *World, _ Observation) []string {
	time.Sleep(100 * time.Millisecond) // the last data may still be on its way
	w.net.mu.Lock()
	defer w.net.mu.Unlock()
	if said := strings.Join(w.net.raw, ""); strings.Contains(said, "late") {
		return []string{fmt.Sprintf("the server was told %d times what came after the end", strings.Count(said, "late"))}
	}
	return nil
}

// untilTakenBack is a drive with rules under which a human approves, and then
// revokes.
func untilTakenBack(rules string) func(*Session) {
	return func(s *Session) { allowedUntil(s, s.World.expand(rules)) }
}
