//go:build linux

package relay

import (
	"context"
	"errors"
	"io"
	"strings"
	"syscall"

	"holdfast.dev/holdfast/internal/agents/gateway"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
)

// Messages means that the command is an MCP server for an agent outside: what goes in
// and comes out are messages, which package gateway passes on.
type Messages struct {
	Limits gateway.Limits
	Hungup func() bool // see gateway.Config
}

// passMessages passes messages on until alive ends, which is when everything inside
// is dead, and all that the server wrote was read.
func (r *relay) passMessages(alive context.Context) error {
	in, out := r.proc.Stdin(), r.proc.Stdout()
	if in == nil || out == nil {
		r.proc.Kill("")
		return errors.New("an MCP server needs pipes for its input and output")
	}
	defer out.Close()
	program := r.Argv[0]
	r.report = gateway.Run(alive, gateway.Config{
		Agent:  gateway.Streams{In: unclosed{r.Streams.Out}, Out: io.NopCloser(r.Streams.In)},
		Server: gateway.Streams{In: in, Out: out},
		Name:   program[strings.LastIndexByte(program, '/')+1:], Sink: r.Bus.Sensor(event.Gateway), Redact: r.Bus.Secrets().String,
		Limits: r.Server.Limits, Hungup: r.Server.Hungup,
		Deny: func(agent, server, tool string, arguments []byte) (string, string) {
			return r.Plan.DenyTool(policy.ToolCall{Agent: agent, Server: server, Tool: tool, Arguments: string(arguments)})
		},
		Gate: r.Rules.Gate, Wants: r.Rules.Wants,
		Ask:  func() { r.proc.Signal(syscall.SIGTERM) }, // one that has ended needs no request
		Kill: func() { r.proc.Kill("the agent has gone, and the server did not end by itself") },
	})
	return nil
}

// unclosed is an output of this process, which others use as well.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }
