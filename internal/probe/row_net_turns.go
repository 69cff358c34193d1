//go:build linux

package probe

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
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

// turnRows are requests that go on when the approval has ended that they rest on.
func turnRows() []Row {
	const (
		asked = "ask: [{when: 'action == \"credential\"'}]\nnetwork: {allow: [{host: allowed.test, ports: [443], kind: tls, inspect: true}]}\ncredentials: [{name: a, "
		use   = "hosts: [allowed.test], header: \"Authorization: Bearer {}\", env: PROBE_SECRET}]\n"
	)
	lapsed := Trace{Events: []Attempt{{Action: "net.request", Verdict: "denied", Layer: "consent"}}}
	rows := public(classConsent,
		Row{ID: "APR-402", Title: "a request leaves with a credential whose approval was taken back while the credential was fetched", Refs: []string{"RFC 2904, 3"},
			Setup: alsoSet(lend, slowSource), Drive: func(s *Session) {
				allowedUntil(s, asked+"source: {command: ["+s.World.Path(slowProgram)+"]}, "+use)
			}, Oracle: lateRequests, Args: []string{"env=PROBE_SECRET", "first=" + h2("allowed.test", turnPath+"/late", "authorization=Bearer {}")},
			Trace: Trace{Events: []Attempt{{Action: "credential.use", Verdict: "denied", Layer: "consent"}}}},
		Row{ID: "APR-403", Title: "a request whose credential was approved goes on after the approval was taken back", Refs: []string{"RFC 2904, 3"},
			Setup: lend, Drive: func(s *Session) { allowedUntil(s, asked+"source: {env: PROBE_SECRET}, "+use) }, Oracle: lateWords,
			Args: []string{"how=body", "env=PROBE_SECRET", "first=" + h2("allowed.test", turnPath, "authorization=Bearer {}", "=DATA early")}, Trace: lapsed},
	)
	for i := range rows {
		r := &rows[i]
		r.Action, r.Harmless, r.Options.Reach, r.Promise = "net-turns", "what counts is what the server gets", turnReach, "P4"
	}
	return rows
}

// lateRequests are those that should not have left.
func lateRequests(w *World, _ Observation) []string {
	if late := w.net.requests(turnPath + "/late"); len(late) > 0 {
		return []string{fmt.Sprintf("%d requests arrived: %s %s", len(late), late[0].method, late[0].target)}
	}
	return nil
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
