//go:build linux

package reports

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"holdfast.dev/holdfast/internal/agents/hooks"
	"holdfast.dev/holdfast/internal/floor/event"
)

// toolsHeld is how many calls may wait for a human at once; more are denied.
const toolsHeld = 32

var (
	errHookGone = errors.New("the hook went away before there was an answer")
	errRunEnds  = errors.New("the run has ended")
)

// judge decides the answer to a call: first by the policy's rules about names,
// then by the rules of consent. If a human must be asked, it calls holding and
// then tells the hook to wait.
func (t *Server) judge(c *net.UnixConn, r hooks.Report, by event.Process, holding func()) hooks.Answer {
	if r.Bad != "" {
		return r.Unreadable(len(t.plan.Tools) > 0 || t.rules.Concern(event.KindTool))
	}
	a := judge(t.plan, r)
	if a.Deny != "" || !t.rules.Concern(event.KindTool) {
		return a
	}
	ruling := t.rules.Gate.Judge(event.Attempt{
		Kind: event.KindTool, Process: by, Agent: r.Agent, Tool: r.Tool, Server: r.Server, Arguments: string(r.Arguments), Cut: r.Cut,
	})
	rule := ruling.Rule
	if ruling.Verdict == event.Unknown {
		holding()
		ruling = t.waitForAnswer(c, r, ruling)
	}
	if ruling.Verdict == event.Allowed {
		return hooks.Answer{}
	}
	return hooks.Answer{Deny: cmp.Or(ruling.Reason, "a rule of consent denies it"), Rule: cmp.Or(ruling.Rule, rule), Consent: true}
}

// waitForAnswer waits for a human, as long as the agent waits for its hook and the hook is
// connected: an agent whose hook is too slow goes on as if there were none.
func (t *Server) waitForAnswer(c *net.UnixConn, r hooks.Report, ruling event.Ruling) event.Ruling {
	refuse := func(reason string) event.Ruling {
		return event.Ruling{Verdict: event.Denied, Rule: ruling.Rule, Reason: reason}
	}
	if ruling.Wait == nil {
		return refuse("nobody can be asked")
	}
	ctx, end := context.WithCancelCause(t.life)
	defer end(nil)
	select {
	case t.held <- struct{}{}:
		defer func() { <-t.held }()
	default:
		end(errors.New("too much waits for an answer already")) // Wait must still be called: it withdraws the question
	}
	wait := r.AnswerTime()
	ctx, stop := context.WithTimeoutCause(ctx, wait, fmt.Errorf("nobody answered within the %v that %s waits for its hook", wait.Round(time.Second), cmp.Or(r.Agent, "the agent")))
	defer stop()
	if hooks.Reply(c, hooks.Answer{Wait: wait.Milliseconds()}) != nil {
		end(errHookGone)
	}
	c.SetDeadline(time.Time{})
	left := make(chan struct{})
	go func() {
		defer close(left)
		io.Copy(io.Discard, c) // a hook sends nothing more
		end(errHookGone)
	}()
	answer := ruling.Wait(ctx)
	cause := context.Cause(ctx)
	c.SetReadDeadline(time.Now())
	<-left
	c.SetDeadline(time.Now().Add(toolTime))
	if cause != nil {
		return refuse(cause.Error())
	}
	answer.Rule = cmp.Or(answer.Rule, ruling.Rule)
	return answer
}
