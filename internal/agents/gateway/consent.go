package gateway

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"holdfast.dev/holdfast/internal/floor/event"
)

// heldCalls is the maximum number of calls that wait for a human; further ones
// are denied.
const heldCalls = 32

var (
	errAgentGone  = errors.New("the agent went away before there was an answer")
	errServerGone = errors.New("the server ended before there was an answer")
	errTakenBack  = errors.New("the agent cancelled it before there was an answer")
	errTooMany    = errors.New("too much waits for an answer already")
)

// waitingCalls are the tool calls that wait for a human. The server has not seen them,
// and all other messages overtake them.
type waitingCalls struct {
	most int // bytes of all
	life context.Context
	end  context.CancelCauseFunc
	wait sync.WaitGroup

	// order is locked while a held call goes on, and while one is cancelled: a
	// server never gets a call after its cancellation.
	order sync.Mutex

	mu           sync.Mutex // guards what follows
	calls, bytes int
	closed       bool // no further call may wait
}

func newWaitingCalls(most int) *waitingCalls {
	h := &waitingCalls{most: most}
	h.life, h.end = context.WithCancelCause(context.Background())
	return h
}

// enter reserves room for a call of that size.
func (h *waitingCalls) enter(size int) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.calls >= heldCalls || h.bytes+size > h.most {
		return false
	}
	h.calls, h.bytes = h.calls+1, h.bytes+size
	return true
}

func (h *waitingCalls) leave(size int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls, h.bytes = h.calls-1, h.bytes-size
}

// start begins to wait. After over it runs waits directly, which only has to
// withdraw the question.
func (h *waitingCalls) start(waits func()) {
	h.mu.Lock()
	closed := h.closed
	if !closed {
		h.wait.Go(waits)
	}
	h.mu.Unlock()
	if closed {
		waits()
	}
}

// cancelAll ends all waits, and returns when they have ended.
func (h *waitingCalls) cancelAll(why error) {
	h.end(why)
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.wait.Wait()
}

// hasConsentRules reports whether rules of consent can apply to calls.
func (c Config) hasConsentRules() bool {
	return c.Gate != nil && (c.Wants == nil || c.Wants(event.KindTool))
}

// consent checks a call that the policy does not deny, and passes it on or
// refuses it. It returns at once: a human's answer is awaited in another
// goroutine.
func (r *relay) consent(m *jsonrpc.Request, c toolCall, size int) error {
	attempts := r.record.attempts(c)
	ruling, left := judge(r.config.Gate, attempts)
	if ruling.Verdict != event.Unknown {
		return r.applyRuling(m, c, ruling)
	}
	copied := *m
	copied.Params = bytes.Clone(m.Params) // the buffer of its line is reused
	ctx, end := context.WithCancelCause(r.held.life)
	room := r.held.enter(size)
	if !room {
		end(errTooMany) // Wait must still be called: it withdraws the question
	}
	if m.IsCall() {
		r.agent.open.markWaiting(m.ID, end)
	}
	r.held.start(func() {
		defer end(nil)
		if room {
			defer r.held.leave(size)
		}
		for {
			ruling = wait(ctx, ruling)
			if ruling.Verdict != event.Allowed || len(left) == 0 {
				break
			}
			if ruling, left = judge(r.config.Gate, left); ruling.Verdict != event.Unknown {
				break
			}
		}
		r.held.order.Lock()
		defer r.held.order.Unlock()
		if cause := context.Cause(ctx); cause != nil {
			ruling = event.Ruling{Verdict: event.Denied, Rule: ruling.Rule, Reason: cause.Error()}
		}
		r.handleFailure(r.agent, r.applyRuling(&copied, c, ruling), size)
	})
	return nil
}

// judge judges the attempts in order until one is not allowed, and returns those
// after it.
func judge(gate event.Gate, attempts []event.Attempt) (event.Ruling, []event.Attempt) {
	var r event.Ruling
	for i, a := range attempts {
		if r = gate.Judge(a); r.Verdict != event.Allowed {
			return r, attempts[i+1:]
		}
	}
	return r, nil
}

func wait(ctx context.Context, r event.Ruling) event.Ruling {
	if r.Wait == nil {
		return event.Ruling{Verdict: event.Denied, Rule: r.Rule, Reason: "nobody can be asked"}
	}
	answer := r.Wait(ctx)
	answer.Rule = cmp.Or(answer.Rule, r.Rule)
	return answer
}

// applyRuling records the decision about a call, and passes the call on or refuses
// it.
func (r *relay) applyRuling(m *jsonrpc.Request, c toolCall, ruling event.Ruling) error {
	if m.IsCall() && !r.agent.open.release(m.ID) {
		// The agent no longer waits, so there is no answer.
		return r.record.refusedCall(m, c, event.Ruling{Verdict: event.Denied, Rule: ruling.Rule, Reason: errTakenBack.Error()})
	}
	if ruling.Verdict != event.Allowed {
		ruling.Reason = cmp.Or(ruling.Reason, "a rule of consent denies it")
		err := r.record.refusedCall(m, c, ruling)
		return r.rejectRequest(r.agent, m, cmp.Or(err, error(&deniedError{ruling.Reason})))
	}
	if err := r.record.allowedCall(m, c); err != nil {
		return r.rejectRequest(r.agent, m, err)
	}
	return r.server.to.send(m)
}

// attempts are a call as the rules of consent see it. A server chooses its own
// name, so rules about its program's name must apply too.
func (r *record) attempts(c toolCall) []event.Attempt {
	r.mu.Lock()
	defer r.mu.Unlock()
	one := event.Attempt{Kind: event.KindTool, Agent: r.agent, Tool: c.name, Server: r.config.Name, Arguments: string(c.arguments)}
	out := []event.Attempt{one}
	if r.server != one.Server {
		one.Server = r.server
		out = append(out, one)
	}
	return out
}

func (r *record) refusedCall(m *jsonrpc.Request, c toolCall, ruling event.Ruling) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.callEvent(m, c)
	e.Verdict, e.Layer, e.Rule = event.Denied, event.LayerConsent, ruling.Rule
	e.Detail["reason"] = ruling.Reason
	return r.emit(e)
}

func (r *record) allowedCall(m *jsonrpc.Request, c toolCall) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.emit(r.callEvent(m, c)); err != nil {
		return unrecordedError(err)
	}
	return nil
}
