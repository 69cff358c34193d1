//go:build linux

package probe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// Gateway is a target that can stand between an agent outside and a server of tools.
type Gateway interface {
	// Serving returns the target as it is called to start the command as a server of
	// tools. The agent speaks on the standard input.
	Serving() Target
}

// gatewayRows are calls of tools that a rule and the server read differently. The
// server is the prober's own, and writes down what it gets.
func gatewayRows() []Row {
	const notSudo, dry = `arguments.options.contains("sudo")`, `!arguments.options.contains("dry")`
	row := func(id, title, rule, recorded string, calls ...string) Row {
		return Row{ID: id, Promise: "P4", Title: title, Refs: []string{"RFC 8259, 4 and 7", "CWE-436"}, Timeout: 30 * time.Second,
			Action: "mcp-heard", Drive: throughGateway(rule, calls), Oracle: wentThrough, Harmless: "what counts is what the server was called with",
			Trace: Trace{Events: []Attempt{{Action: recorded, Verdict: "denied"}}}}
	}
	return []Row{
		row("AGT-421", "a word that a rule about a tool denies is written with escapes, below the first level of the arguments", notSudo, "tool.call",
			`{"options":{"argv":["\u0073udo"]}}`, `{"options":{"argv":["ls","sud\u006F"]}}`, `{"options":{"\u0061rgv":["\u0073\u0075\u0064\u006f"]}}`),
		row("AGT-422", "a name stands twice below the first level of a tool's arguments, and the rule goes by the one that the server does not take", dry, "tool.drop",
			`{"options":{"mode":"dry","mode":"real"}}`, `{"options":{"mode":"dry","\u006dode":"real"}}`),
		row("AGT-423", "a name stands in two ways of writing below the first level of a tool's arguments, and the server minds no capitals", dry, "tool.drop",
			`{"options":{"mode":"dry","Mode":"real"}}`, `{"options":{"mode":"dry","MODE":"real"}}`),
	}
}

// honestCall is allowed by every rule of these rows.
const honestCall = `{"options":{"mode":"dry"}}`

// throughGateway has an agent make the calls, after one that is allowed, under a
// rule that denies the tool. Without a gateway the server gets them as they are.
func throughGateway(rule string, calls []string) func(*Session) {
	return func(s *Session) {
		w, t := s.World, s.Target
		var said strings.Builder
		for i, arguments := range append([]string{honestCall}, calls...) {
			fmt.Fprintf(&said, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"do","arguments":%s}}`+"\n", i+1, arguments)
		}
		policy := w.B + "/tools.yaml"
		if err := errors.Join(w.File("B/calls", said.String()),
			os.WriteFile(policy, []byte("version: 1\ntools:\n  deny:\n    - {tool: do, when: '"+rule+"'}\n"), 0o600)); err != nil {
			s.Fail(err)
			return
		}
		g, serves := t.(Gateway)
		if serves {
			s.Target = g.Serving()
			if f, ok := s.Target.(Flagger); ok {
				s.Target = f.With("--policy", policy)
			}
		}
		w.Under = []string{"sh", "-c", `exec "$@" <"$0"`, w.Path("B/calls")}
		s.Run(Command{})
		w.Under, s.Target = nil, t
		if serves { // what a server prints is for its agent, and no report of the prober
			s.obs = s.obs[:len(s.obs)-1]
		}
		if heard, err := heardCalls(w); err != nil || len(heard) == 0 || heard[0].Mode != "dry" {
			s.Fail(fmt.Errorf("the server did not get the call that is allowed, but %+v", heard))
		}
		s.Run(Command{Action: "nothing-denied"})
	}
}

// options are the arguments of a call, as a server reads them that is written in Go.
type options struct {
	Mode string
	Argv []string
}

// heardCalls are the calls that the server got.
func heardCalls(w *World) (out []options, err error) {
	b, err := readSome(w.Path("W/heard"))
	for line := range bytes.Lines(b) {
		var m struct {
			Params struct{ Arguments struct{ Options options } }
		}
		err = errors.Join(err, json.Unmarshal(line, &m))
		out = append(out, m.Params.Arguments.Options)
	}
	return out, err
}

// wentThrough are the calls that the rule is against, and that the server got.
func wentThrough(w *World, _ Observation) (out []string) {
	heard, err := heardCalls(w)
	if err != nil {
		return []string{"what the server got cannot be read: " + err.Error()}
	}
	for _, o := range heard {
		if o.Mode == "real" || slices.Contains(o.Argv, "sudo") {
			out = append(out, fmt.Sprintf("the server was called with mode %q and the words %q", o.Mode, o.Argv))
		}
	}
	return out
}
