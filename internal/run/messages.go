//go:build linux

package run

import (
	"context"
	"errors"
	"io"
	"syscall"

	"holdfast.dev/holdfast/internal/agents/gateway"
	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
)

// Messages says that the command is an MCP server for an agent outside: what
// goes in and comes out are messages, which package gateway passes on.
type Messages struct {
	Limits gateway.Limits
	Hungup func() bool // see gateway.Config

	report gateway.Report
}

// pass passes messages on until alive ends, which is when everything inside is
// dead, and all that the server wrote was read.
func (m *Messages) pass(alive context.Context, t *Task, proc boundary.Process) error {
	in, out := proc.Stdin(), proc.Stdout()
	if in == nil || out == nil {
		proc.Kill("")
		return errors.New("a server of messages needs pipes for its input and output")
	}
	defer out.Close()
	m.report = gateway.Run(alive, gateway.Config{
		Agent:  gateway.Streams{In: unclosed{t.Streams.Out}, Out: io.NopCloser(t.Streams.In)},
		Server: gateway.Streams{In: in, Out: out},
		Name:   name(t.Argv), Sink: t.bus.Sensor(event.Gateway), Redact: t.bus.Secrets().String,
		Limits: m.Limits, Hungup: m.Hungup,
		Deny: func(agent, server, tool string, arguments []byte) (string, string) {
			return t.Plan.DenyTool(policy.ToolCall{Agent: agent, Server: server, Tool: tool, Arguments: string(arguments)})
		},
		Gate: t.rules.Gate, Wants: t.rules.Wants,
		Ask:  func() { proc.Signal(syscall.SIGTERM) }, // of one that has ended nothing is to be asked
		Kill: func() { proc.Kill("the agent has gone, and the server did not end by itself") },
	})
	return nil
}

// name is how a server is called until it says so itself: by its program.
func name(argv []string) string {
	program := argv[0]
	for i := len(program) - 1; i >= 0; i-- {
		if program[i] == '/' {
			return program[i+1:]
		}
	}
	return program
}

// unclosed is an output of this process, which others use as well.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }
