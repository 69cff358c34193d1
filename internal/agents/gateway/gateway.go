// Package gateway relays between an agent outside and an MCP server that runs in
// its own boundary. Each side speaks line-delimited JSON-RPC, as in MCP's stdio
// transport (https://modelcontextprotocol.io/specification). A message is decoded
// with the message types of the protocol's Go SDK, encoded again, and passed on.
// The package knows the envelope and a few methods by name and leaves all others
// alone, so that additions of later protocol versions pass too.
//
// Neither side is trusted. Invalid messages, unexpected answers and anything
// above a limit are dropped and recorded; each tool call is recorded with its
// outcome.
package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"holdfast.dev/holdfast/internal/floor/event"
)

// Streams are our ends of one side's two streams.
type Streams struct {
	In  io.WriteCloser // what the side reads
	Out io.ReadCloser  // what it writes
}

// Config describes a server that works for one agent.
type Config struct {
	Agent, Server Streams
	Name          string              // of the server, until it reports its own
	Sink          event.Sink          // for the events of the gateway
	Redact        func(string) string // removes secrets from a text; nil to remove none
	Limits        Limits              // 0 for the default of each

	// Deny says why the policy denies a call, and by which rule; "" if it does
	// not. It is called with each name of the server: its program's, and the one
	// it reports. It is called from one goroutine at a time; nil denies nothing.
	Deny func(agent, server, tool string, arguments []byte) (reason, rule string)

	// Gate applies the rules of consent to each call that Deny does not deny; nil
	// for no rules. A call that it leaves open waits, and other messages overtake
	// it. Wants reports whether any of its rules can apply to a kind; nil if each
	// may.
	Gate  event.Gate
	Wants func(event.Kind) bool

	// Hungup reports that no process can write to the agent's Out any more, even
	// if it has not been read to its end; nil if that cannot be determined.
	Hungup func() bool

	// Ask asks the server to end, and Kill kills it. They are called in this
	// order after the agent has gone, with a delay between them.
	Ask, Kill func()
}

// Limits bound what each side can make the other, and this process, do.
type Limits struct {
	Message int           // bytes of one message; default 16 MiB, as in the SDK
	Depth   int           // of nested objects and lists; default 128
	Open    int           // unanswered requests of one side; default 512
	Held    int           // bytes of calls that wait for a human; default twice Message
	Rate    int           // messages a second, of 16 KiB each; a longer one counts as several; default 1000
	Burst   int           // maximum at once; default 4 seconds' worth
	Leave   time.Duration // between the end of the agent and Ask; default 1.5 s
	Die     time.Duration // between Ask and Kill; default 1.5 s: clients of the SDKs kill this process 4 s after the end
}

func (l Limits) withDefaults() Limits {
	set := func(v *int, to int) {
		if *v == 0 {
			*v = to
		}
	}
	set(&l.Message, 16<<20)
	set(&l.Held, 2*l.Message)
	set(&l.Depth, 128)
	set(&l.Open, 512)
	set(&l.Rate, 1000)
	set(&l.Burst, 4*l.Rate)
	if l.Leave == 0 {
		l.Leave = 1500 * time.Millisecond
	}
	if l.Die == 0 {
		l.Die = 1500 * time.Millisecond
	}
	return l
}

// Report is what the user must know after a session.
type Report struct {
	Calls   int    // of tools
	Dropped int    // lines and messages of the server that were not passed on
	First   string // the beginning of the first of them, without secrets
}

// relay is one session.
type relay struct {
	config        Config
	limits        Limits
	agent, server *side
	record        *record
	held          *waitingCalls

	gone  sync.Once
	given chan struct{} // closed when an agent that has gone has had its time to read the last answers
	timer struct {
		sync.Mutex
		all []*time.Timer
		end bool // the server is dead: no more timers may start or fire
	}
}

// side is the agent or the server: one goroutine reads its output.
type side struct {
	word string // agent or server, for records
	from *lines
	to   *sender // to this side
	open calls   // its requests that the other side has not answered
	pace *pace
}

// Run passes messages on until the server is dead, which the end of ctx signals,
// and all its output was read, or the agent has gone and does not read. After it
// returns nothing more is recorded, although a read from the agent or a write to
// it may still be in progress.
func Run(ctx context.Context, c Config) Report {
	l := c.Limits.withDefaults()
	r := &relay{config: c, limits: l, record: newRecord(c), held: newWaitingCalls(l.Held), given: make(chan struct{})}
	r.agent = &side{word: "agent", from: newLines(c.Agent.Out, l.Message), to: newSender(c.Agent.In), open: newCalls(l.Open), pace: newPace(l)}
	r.server = &side{word: "server", from: newLines(c.Server.Out, l.Message), to: newSender(c.Server.In), open: newCalls(l.Open), pace: newPace(l)}
	go func() {
		r.pump(r.agent, r.server)
		r.leave()
	}()
	stop := r.watch()
	passed := make(chan struct{})
	go func() {
		r.pump(r.server, r.agent)
		r.held.cancelAll(errServerGone)
		r.answerUnanswered()
		r.leave() // a server that has closed its output must end
		close(passed)
	}()
	<-ctx.Done()
	select {
	case <-passed:
	case <-r.given: // the agent has gone and its pipe is not read
	}
	stop()
	r.stopTimers()
	r.held.end(errServerGone)
	return r.record.close()
}

// pump passes on what one side writes to the other, until its end. Messages for
// an agent that has gone are dropped, so that the server can end.
func (r *relay) pump(from, to *side) {
	for {
		l, err := from.from.next()
		if err != nil {
			return
		}
		if l.text == nil && !l.long {
			continue // an empty line
		}
		if waited := from.pace.wait(l.size); waited {
			r.record.recordSlowed(from.word)
		}
		if l.long {
			r.tooLong(from, to, l)
			continue
		}
		messages, err := parse(l.text, r.limits.Depth)
		if err != nil {
			r.invalidLine(from, l.text, err)
			continue
		}
		for _, m := range messages {
			r.pass(from, to, m, l.size)
		}
	}
}

// pass decides about one message and passes it on.
func (r *relay) pass(from, to *side, m jsonrpc.Message, size int) {
	var err error
	switch m := m.(type) {
	case *jsonrpc.Request:
		err = r.request(from, to, m, size)
	case *jsonrpc.Response:
		err = r.response(from, to, m, size)
	}
	r.handleFailure(from, err, size)
}

// handleFailure handles a message that was not passed on, or could not be.
func (r *relay) handleFailure(from *side, err error, size int) {
	var drop *dropError
	switch {
	case err == nil:
	case errors.As(err, &drop):
		r.record.drop(from.word, drop.reason, size, drop.text)
		if drop.id.IsValid() {
			from.to.fail(drop.id, drop.code, drop.reason)
		}
	case from == r.server: // the agent has stopped reading
		r.leave()
	}
}

// request handles a request or a notification of a side.
func (r *relay) request(from, to *side, m *jsonrpc.Request, size int) error {
	if m.IsCall() {
		if err := from.open.addCall(m.ID, newCall(m)); err != nil {
			return &dropError{reason: err.Error(), text: m.Method, id: m.ID, code: jsonrpc.CodeInvalidRequest}
		}
	}
	if from == r.agent {
		open, err := r.record.recordRequest(m)
		switch {
		case err != nil:
			return r.rejectRequest(from, m, err)
		case open != nil:
			return r.consent(m, *open, size)
		}
	}
	if m.Method == "notifications/cancelled" {
		r.held.order.Lock()
		defer r.held.order.Unlock()
		if waited := r.markCancelled(from, m); waited {
			return nil // the other side has not seen the call
		}
	}
	return to.to.send(m)
}

// rejectRequest answers a request that is not passed on.
func (r *relay) rejectRequest(from *side, m *jsonrpc.Request, err error) error {
	if m.IsCall() {
		from.open.removeCall(m.ID)
	}
	var denied *deniedError
	if !errors.As(err, &denied) {
		return &dropError{reason: err.Error(), text: m.Method, id: m.ID, code: jsonrpc.CodeInvalidParams}
	}
	if m.IsCall() {
		from.to.fail(m.ID, jsonrpc.CodeInvalidParams, denied.Error())
	}
	return nil
}

// markCancelled marks a request as cancelled; an answer may still come, unless the
// request itself was held.
func (r *relay) markCancelled(from *side, m *jsonrpc.Request) (waited bool) {
	id, err := cancelledID(m.Params)
	if err != nil {
		return false
	}
	c := from.open.cancel(id)
	switch {
	case c != nil && c.held != nil:
		c.held(errTakenBack)
		return true
	case c != nil && from == r.agent:
		r.record.result(c, id, outcome{word: "cancelled"})
	}
	return false
}

// response handles an answer of one side to a request of the other.
func (r *relay) response(from, to *side, m *jsonrpc.Response, size int) error {
	c := to.open.removeCall(m.ID)
	if c == nil {
		return &dropError{reason: "an answer to no request that is open", text: idText(m.ID)}
	}
	if from == r.server {
		r.record.recordAnswer(c, m, size)
	}
	return to.to.send(m)
}

// invalidLine handles a line that is no message.
func (r *relay) invalidLine(from *side, text []byte, err error) {
	r.record.drop(from.word, err.Error(), len(text), string(text[:min(len(text), 4*excerpt)]))
	if from == r.agent { // JSON-RPC 2.0, section 5: an unknown id is null
		from.to.raw(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"holdfast: this is not a JSON-RPC message"}}`)
	}
}

// tooLong handles a message above the limit. The waiting side gets an error.
func (r *relay) tooLong(from, to *side, l line) {
	reason := "a message of " + count(l.size, "byte") + " is longer than " + count(r.limits.Message, "byte")
	r.record.drop(from.word, reason, l.size, string(l.head))
	id, err := makeID(l.facts.id)
	if err != nil || !id.IsValid() {
		return
	}
	if l.facts.method {
		from.to.fail(id, jsonrpc.CodeInvalidRequest, reason)
		return
	}
	if c := to.open.removeCall(id); c != nil {
		if from == r.server {
			r.record.result(c, id, outcome{word: "refused", text: reason, size: l.size})
		}
		to.to.fail(id, jsonrpc.CodeInternalError, reason)
	}
}

// answerUnanswered answers the requests that the server left unanswered.
func (r *relay) answerUnanswered() {
	for id, c := range r.agent.open.removeAll() {
		if !c.cancelled {
			r.record.result(c, id, outcome{word: "lost"})
			r.agent.to.fail(id, jsonrpc.CodeInternalError, "the server ended before it answered")
		}
	}
}

// leave makes the server end after the agent has gone: its input is closed, then
// it is asked to end, and then killed.
func (r *relay) leave() {
	r.gone.Do(func() {
		r.held.end(errAgentGone)
		r.after(r.limits.Leave, r.config.Ask)
		r.after(r.limits.Leave+r.limits.Die, r.config.Kill)
		r.after(r.limits.Leave+2*r.limits.Die, func() { close(r.given) })
		go r.config.Server.In.Close() // it may wait for a write in progress
	})
}

func (r *relay) after(d time.Duration, do func()) {
	r.timer.Lock()
	defer r.timer.Unlock()
	if do == nil || r.timer.end {
		return
	}
	r.timer.all = append(r.timer.all, time.AfterFunc(d, func() {
		r.timer.Lock()
		defer r.timer.Unlock()
		if !r.timer.end {
			do()
		}
	}))
}

func (r *relay) stopTimers() {
	r.timer.Lock()
	defer r.timer.Unlock()
	r.timer.end = true
	for _, t := range r.timer.all {
		t.Stop()
	}
}

// watch detects that the agent has gone while its last message cannot be
// delivered: then pump does not read, and would not see the end.
func (r *relay) watch() (stop func()) {
	if r.config.Hungup == nil {
		return func() {}
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(r.limits.Leave / 5)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				if r.server.to.stuck(r.limits.Leave/5) && r.config.Hungup() {
					r.leave()
				}
			}
		}
	})
	return func() { close(done); wg.Wait() }
}

// dropError means that a message is not passed on; it contains the error for its
// sender.
type dropError struct {
	reason, text string
	id           jsonrpc.ID
	code         int64
}

func (e *dropError) Error() string { return e.reason }

// cancelledID is the request that a cancellation notification names.
func cancelledID(params json.RawMessage) (jsonrpc.ID, error) {
	return makeID(member(params, "requestId"))
}
