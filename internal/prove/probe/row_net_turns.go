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

// arrived tells the outside that something has come.
func (n *internet) arrived() { _ = os.WriteFile(n.w.Path("W/used"), nil, 0o644) }

// stream keeps what comes, and lets the outside act after the first of it.
func (n *internet) stream(body io.Reader) {
	buf := make([]byte, 4096)
	for {
		l, err := body.Read(buf)
		n.told(buf[:l])
		n.arrived()
		if err != nil {
			return
		}
	}
}

var turnReach = []Reach{{Host: "allowed.test", Ports: []int{443}, Kind: "tls", Inspect: true}}

// slowProgram prints the secret on the host, when the outside has had its turn.
const slowProgram = "B/slow"

func slowSource(w *World) error {
	return w.program(slowProgram, fmt.Sprintf("#!/bin/sh\n: >%q\nuntil test -e %q; do sleep 0.05; done\necho %s\n", w.Path("W/used"), w.Path("W/over"), w.Token(lentName)))
}

// turnRows are requests that go on when what they rest on has ended: an approval, or
// a record that can be written.
func turnRows() []Row {
	const (
		asked = "ask: [{when: 'action == \"credential\"'}]\nnetwork: {allow: [{host: allowed.test, ports: [443], kind: tls, inspect: true}]}\ncredentials: [{name: a, "
		use   = "hosts: [allowed.test], header: \"Authorization: Bearer {}\", env: PROBE_SECRET}]\n"
	)
	lapsed := Trace{Events: []Attempt{{Action: "net.request", Verdict: "denied", Layer: "consent"}}}
	const late = turnPath + "/late"
	rows := public(classConsent,
		Row{ID: "PXY-401", Title: "the record fails, and what is asked for next on an open connection leaves", Refs: []string{"RFC 9113, 5.1.2", "CWE-778"},
			Drive: recordFails, Oracle: lateRequests(1), // the first tells that the record has failed
			Args:  []string{"how=requests", "first=" + h2("allowed.test", turnPath), "more=" + fieldsOf(h2("allowed.test", late))},
			Trace: nothing("what cannot be recorded must not happen: nothing of it stands in the record")},
		Row{ID: "APR-402", Title: "a request leaves with a credential whose approval was taken back while the credential was fetched", Refs: []string{"RFC 2904, 3"},
			Setup: alsoSet(lend, slowSource), Drive: func(s *Session) {
				allowedUntil(s, asked+"source: {command: ["+s.World.Path(slowProgram)+"]}, "+use)
			}, Oracle: lateRequests(0), Proof: true, Args: []string{"env=PROBE_SECRET", "first=" + h2("allowed.test", late, "authorization=Bearer {}")},
			Trace: Trace{Events: []Attempt{{Action: "credential.use", Verdict: "denied", Layer: "consent"}}}},
		Row{ID: "APR-403", Title: "a request whose credential was approved goes on after the approval was taken back", Refs: []string{"RFC 2904, 3"},
			Setup: lend, Drive: func(s *Session) { allowedUntil(s, asked+"source: {env: PROBE_SECRET}, "+use) }, Oracle: lateWords, Proof: true,
			Args: []string{"how=body", "env=PROBE_SECRET", "first=" + h2("allowed.test", turnPath, "authorization=Bearer {}", "=DATA early")}, Trace: lapsed},
	)
	for i := range rows {
		r := &rows[i]
		r.Action, r.Harmless, r.Options.Reach = "net-turns", "what counts is what the server gets", turnReach
		if r.Promise = "P4"; r.ID == "PXY-401" {
			r.Class, r.Promise = classProxy, "P9"
		}
	}
	return rows
}

// fieldsOf are those of a line, without the place that it is said to.
func fieldsOf(line string) string {
	_, rest, _ := strings.Cut(line, " ")
	_, rest, _ = strings.Cut(rest, " ")
	return rest
}

// recordFails plays the row, and has whatever the launcher writes to a file fail
// from the moment when the first request has arrived.
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
	if len(launchers) > 0 { // it may have ended the command, and is right to do so
		s.obs = s.obs[:len(s.obs)-1]
	}
	s.Run(Command{Action: "nothing-denied"})
}

// lateRequests are those that should not have left, beyond so many.
func lateRequests(most int) func(*World, Observation) []string {
	return func(w *World, _ Observation) []string {
		late := w.net.requests(turnPath + "/late")
		if len(late) <= most {
			return nil
		}
		return []string{fmt.Sprintf("%d requests arrived: %s %s", len(late), late[0].method, late[0].target)}
	}
}

// lateWords are what a server was told that should not have left.
func lateWords(w *World, _ Observation) []string {
	time.Sleep(100 * time.Millisecond) // what was sent last is on its way
	w.net.mu.Lock()
	defer w.net.mu.Unlock()
	if said := strings.Join(w.net.raw, ""); strings.Contains(said, "late") {
		return []string{fmt.Sprintf("the server was told %d times what came after the end", strings.Count(said, "late"))}
	}
	return nil
}
