package gateway

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/testenv"
)

// human is a Gate that the test controls: by its name, a tool is allowed, denied
// by a rule, or asked about.
type human struct {
	mu    sync.Mutex
	asked []event.Attempt
	open  chan *question
}

type question struct {
	event.Attempt
	say  chan event.Ruling
	gone chan struct{}
}

func (h *human) Judge(a event.Attempt) event.Ruling {
	h.mu.Lock()
	h.asked = append(h.asked, a)
	h.mu.Unlock()
	switch {
	case a.Tool == "free":
		return event.Ruling{Verdict: event.Allowed}
	case a.Tool == "never":
		return event.Ruling{Verdict: event.Denied, Rule: "policy.yaml:3", Reason: "it is never done"}
	case a.Tool == "own" && a.Server == "server":
		return event.Ruling{Verdict: event.Allowed}
	}
	return event.Ruling{Rule: "policy.yaml:9", Wait: func(ctx context.Context) event.Ruling {
		q := &question{a, make(chan event.Ruling, 1), make(chan struct{})}
		defer close(q.gone)
		if ctx.Err() == nil {
			h.open <- q
		}
		select {
		case r := <-q.say:
			return r
		case <-ctx.Done():
			return event.Ruling{Verdict: event.Denied}
		}
	}}
}

func (h *human) next(t *testing.T) *question {
	t.Helper()
	select {
	case q := <-h.open:
		return q
	case <-time.After(10 * time.Second):
		t.Fatal("nothing was asked")
		return nil
	}
}

func (q *question) allow() { q.say <- event.Ruling{Verdict: event.Allowed, Granted: true} }
func (q *question) deny()  { q.say <- event.Ruling{Verdict: event.Denied, Reason: "not today"} }

func consenting(t *testing.T, change ...func(*Config)) (*world, *human) {
	h := &human{open: make(chan *question, 1000)}
	return newWorld(t, func(c *Config) {
		c.Gate = h
		for _, f := range change {
			f(c)
		}
	}), h
}

func callOf(id int, tool string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{"a":%d}}}`, id, tool, id)
}

func TestACallWaitsBesideTheOthers(t *testing.T) {
	testenv.NoGoroutines(t)
	w, h := consenting(t)
	w.agent.say(callOf(1, "ask"), callOf(2, "free"), `{"jsonrpc":"2.0","id":3,"method":"ping"}`, callOf(4, "never"))
	w.server.hears(callOf(2, "free"))
	w.server.hears(`{"jsonrpc":"2.0","id":3,"method":"ping"}`)
	w.agent.hears(`{"jsonrpc":"2.0","id":4,"error":{"code":-32602,"message":"holdfast: denied: it is never done"}}`)
	q := h.next(t)
	if q.Kind != event.KindTool || q.Tool != "ask" || q.Server != "server" || q.Arguments != `{"a":1}` {
		t.Errorf("asked about %+v", q.Attempt)
	}
	q.allow()
	w.server.hears(callOf(1, "ask"))
	w.server.say(`{"jsonrpc":"2.0","id":1,"result":{}}`)
	w.agent.hears(`{"jsonrpc":"2.0","id":1,"result":{}}`)
	w.agent.say(callOf(5, "ask"))
	h.next(t).deny()
	w.agent.hears(`{"jsonrpc":"2.0","id":5,"error":{"code":-32602,"message":"holdfast: denied: not today"}}`)
	w.agent.say(callOf(5, "free")) // the id is free again
	w.server.hears(callOf(5, "free"))
	w.die()
	w.ended(t)
	want := []string{
		"tool.call free id=2", "tool.call never id=4 reason=it is never done", "tool.call ask id=1", "tool.result ask id=1",
		"tool.call ask id=5 reason=not today", "tool.call free id=5", "tool.result free id=2", "tool.result free id=5",
	}
	got := w.journal.said("id", "reason")
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	for _, e := range w.journal.all {
		if e.Verdict == event.Denied && (e.Layer != event.LayerConsent || e.Rule == "") {
			t.Errorf("%+v", e)
		}
	}
}

func TestAnAgentTakesACallBack(t *testing.T) {
	testenv.NoGoroutines(t)
	w, h := consenting(t)
	w.agent.say(callOf(1, "ask"))
	q := h.next(t)
	w.agent.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	soon(t, "the end of the question", q.gone)
	q.allow() // too late
	w.agent.say(callOf(2, "free"))
	w.server.hears(callOf(2, "free")) // the server gets neither the call nor its cancellation
	w.server.say(`{"jsonrpc":"2.0","id":2,"result":{}}`)
	w.agent.hears(`{"jsonrpc":"2.0","id":2,"result":{}}`) // the cancelled call gets no answer
	w.die()
	w.ended(t)
	if got := w.journal.said("reason"); !slices.Contains(got, "tool.call ask reason=the agent cancelled it before there was an answer") {
		t.Errorf("%q", got)
	}
}

func TestWhatWaitsEndsWithEitherSide(t *testing.T) {
	testenv.NoGoroutines(t)
	for name, end := range map[string]func(*world){
		"the server": func(w *world) { w.die() },
		"the agent":  func(w *world) { w.agent.out.Close() },
	} {
		w, h := consenting(t)
		w.agent.say(callOf(1, "ask"), callOf(2, "ask"))
		q, p := h.next(t), h.next(t)
		end(w)
		soon(t, "the end of the question", q.gone)
		soon(t, "the end of the other", p.gone)
		w.ended(t)
		var answers []string
		for line := range w.agent.read {
			answers = append(answers, line)
			if len(answers) == 2 {
				break
			}
		}
		for _, a := range answers {
			if !strings.Contains(a, "before there was an answer") {
				t.Errorf("%s goes: %s", name, a)
			}
		}
		w.agent.in.Close()
		w.agent.out.Close()
	}
}

func TestOnlySoMuchWaits(t *testing.T) {
	w, h := consenting(t)
	for i := range heldCalls {
		w.agent.say(callOf(i, "ask"))
		h.next(t)
	}
	w.agent.say(callOf(99, "ask"))
	w.agent.hears(`{"jsonrpc":"2.0","id":99,"error":{"code":-32602,"message":"holdfast: denied: too much waits for an answer already"}}`)
	w, h = consenting(t, func(c *Config) { c.Limits.Held = 50_000 })
	big := strings.Replace(callOf(1, "ask"), `"a":1`, `"a":"`+strings.Repeat("x", 20_000)+`"`, 1)
	for i := range 2 {
		w.agent.say(strings.Replace(big, `"id":1`, fmt.Sprintf(`"id":%d`, i), 1))
		h.next(t)
	}
	w.agent.say(strings.Replace(big, `"id":1`, `"id":99`, 1))
	w.agent.hears(`{"jsonrpc":"2.0","id":99,"error":{"code":-32602,"message":"holdfast: denied: too much waits for an answer already"}}`)
}

// TestAServerCannotNameItselfOutOfARule: rules apply to the server's own name and
// also to its program's, and a reused line buffer does not change a held call.
func TestAServerCannotNameItselfOutOfARule(t *testing.T) {
	w, h := consenting(t)
	w.agent.say(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"clientInfo":{"name":"agent"}}}`)
	w.server.hears(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"clientInfo":{"name":"agent"}}}`)
	w.server.say(`{"jsonrpc":"2.0","id":0,"result":{"serverInfo":{"name":"other"}}}`)
	w.agent.hears(`{"jsonrpc":"2.0","id":0,"result":{"serverInfo":{"name":"other"}}}`)
	w.agent.say(callOf(1, "own"), callOf(2, "ask"))
	asked := map[string]*question{}
	for range 2 {
		q := h.next(t)
		asked[q.Tool+" of "+q.Server] = q
	}
	own, ask := asked["own of other"], asked["ask of server"]
	if own == nil || ask == nil || own.Agent != "agent" {
		t.Fatalf("%+v", h.asked)
	}
	for i := 10; i < 30; i++ {
		w.agent.say(callOf(i, "free"))
		w.server.hears(callOf(i, "free"))
	}
	own.allow()
	w.server.hears(callOf(1, "own"))
	ask.allow()
	if q := h.next(t); q.Tool != "ask" || q.Server != "other" {
		t.Errorf("then asked about %+v", q.Attempt)
	} else {
		q.deny()
	}
	w.agent.hears(`{"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"holdfast: denied: not today"}}`)
}
