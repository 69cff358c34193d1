//go:build linux

package probe

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"slices"
	"time"

	"holdfast.dev/holdfast/internal/prove/inside"
)

// requestsPolicy is what names are asked for and requests are made under. What no rule
// has is refused there at once: while somebody could be asked, it is not.
const requestsPolicy = `version: 1
extends: local
network:
  allow:
    - {host: allowed.test, ports: [80], kind: http}
    - {host: allowed.test, ports: [443], kind: tls}
    - {host: "*.wild.test", ports: [80], kind: http}
    - {host: "*.wild.test", ports: [443], kind: tls, inspect: true}
    - {host: b.allowed.test, ports: [80], kind: http, methods: [GET], paths: [/may/**]}
    - {host: b.allowed.test, ports: [443], kind: tls, methods: [GET], paths: [/may/**]}
`

// decisionsPolicy is what tools are called under, and what a human or a rule decides.
const decisionsPolicy = `version: 1
extends: local
network: {allow: [{host: allowed.test, ports: [80], kind: http}, {host: "*.wild.test", ports: [80], kind: http}]}
tools:
  deny: [WebFetch, "mcp__denied__*", {tool: Bash, when: 'arguments.command.contains("forbidden")'}]
ask:
  - {when: 'action == "exec" && path.base().startsWith("deed-")'}
  - {when: 'action == "file" && path.base().startsWith("deed-")'}
  - {when: 'action == "connect" && host.endsWith(".unnamed.test")'}
  - {when: 'action == "request" && url_path.startsWith("/ask/")'}
  - {when: 'action == "tool" && tool == "Task"'}
deny:
  - {when: 'action == "exec" && path.base() == "deed-deny"'}
  - {when: 'action == "exec" && argv.exists(a, a == "deed-denied")'}
  - {when: 'action == "connect" && host == "deny.wild.test"'}
  - {when: 'action == "request" && url_path.startsWith("/deny/")'}
  - {when: 'action == "tool" && tool == "NotebookEdit"'}
approvals: {timeout: 10s}
`

// unnamedHost is one that no rule has, and that a human grants.
const unnamedHost = inside.Granted + ".unnamed.test"

// answeredRows are of what is asked for, decided and called, in a network, with a
// human who answers.
func answeredRows() []Row {
	row := func(id, title, level, action, policy string) Row {
		return Row{ID: id, Title: title, Refs: []string{"NIST SP 800-92, 2.1"}, Action: action, Args: []string{"B=B"}, Timeout: 2 * time.Minute,
			Files:    map[string]string{"W/.env": "A=1\n", "W/given/t5": "x", "W/given/t6": "x"},
			Options:  Options{Reach: slices.Concat(publicNet, []Reach{{Host: "b.allowed.test", Ports: []int{80, 443}}, {Host: unnamedHost, Ports: []int{80}}})},
			Harmless: "what may be done is done to given files and hosts; what is outside is watched by itself",
			Setup:    withUnnamedHost,
			Drive:    answeredAtLevel(level, policy), Oracle: reconstructed(level, 40)}
	}
	asked, called := did("net.request", "allowed.test:80"), did("tool.call", "Bash")
	rows := public(classSupervisor,
		row("HST-502", "names are asked for and requests made, and the record does not tell them", "standard", "reconstruct-requests", requestsPolicy),
		row("HST-502b", "names are asked for and requests made, and the full record does not tell them", "full", "reconstruct-requests", requestsPolicy),
		row("HST-503", "tools are called, and a human and rules decide, and the record does not tell it", "standard", "reconstruct-decisions", decisionsPolicy),
		row("HST-503b", "tools are called, and a human and rules decide, and the full record does not tell it", "full", "reconstruct-decisions", decisionsPolicy))
	for i := range rows {
		rows[i].Trace = asked
		if rows[i].Action == "reconstruct-decisions" {
			rows[i].Trace = called
		}
	}
	return rows
}

// withUnnamedHost makes the network, and has the command be called as an agent is.
func withUnnamedHost(w *World) error {
	return errors.Join(network(func(n *internet) {
		at := addrs("93.184.215.17")
		n.zone[unnamedHost] = func(int) []netip.Addr { return at }
		n.own[at[0]] = unnamedHost
	})(w), namedLikeAnAgent(w))
}

// answeredAtLevel is atLevel under a policy, with a human who answers.
func answeredAtLevel(level, policy string) func(*Session) {
	return func(s *Session) {
		w, t := s.World, s.Target
		defer func() { s.Target = t }()
		s.Row.Options = Options{} // the policy has them
		path := w.B + "/deeds.yaml"
		if err := os.WriteFile(path, []byte(policy), 0o600); err != nil {
			s.Fail(err)
			return
		}
		if f, ok := t.(Flagger); ok {
			s.Target = f.With("--policy", path)
		}
		if human, ok := t.(Consenting); ok {
			ctx, cancel := context.WithCancel(s.ctx)
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				human.Answering(ctx, w, map[string]bool{inside.Granted: true, inside.Refused: false})
			}()
			defer func() { cancel(); <-ended }()
		}
		atLevel(level)(s)
	}
}
