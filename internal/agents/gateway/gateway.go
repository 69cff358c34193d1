// Package gateway stands between an agent outside and an MCP server that runs
// in a boundary of its own. Each side speaks JSON-RPC in lines, as the stdio
// transport of MCP has it (https://modelcontextprotocol.io/specification); what
// one writes is read by the message types of the protocol's Go SDK, written
// anew, and passed on to the other. It knows the envelope and a few methods by
// name and leaves all others alone, so that what a later version of the protocol
// adds passes as well.
//
// Neither side is believed. What is no message, an answer that nobody waits for,
// and what is above a limit is dropped, and stands in the record; each call of a
// tool stands there with what came of it.
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

// Streams are our ends of the two streams of one side.
type Streams struct {
	In  io.WriteCloser // what the side reads
	Out io.ReadCloser  // what it writes
}

// Config is one server at work for one agent.
type Config struct {
	Agent, Server Streams
	Name          string              // of the server, until it says one itself
	Sink          event.Sink          // of the events of the gateway
	Redact        func(string) string // takes secrets out of a text; nil for none to take out
	Limits        Limits              // 0 for the default of each

	// Deny says why the policy denies a call, and by which rule; "" when it does
	// not. Server is each name that the server has: its program's, and what it
	// calls itself. It is called from one goroutine at a time; nil denies nothing.
	Deny func(agent, server, tool string, arguments []byte) (reason, rule string)

	// Gate says of each call that Deny has nothing against what the rules of consent
	// say; nil for none. A call that it leaves open waits, and other messages pass by
	// it. Wants says whether any of its rules can be about a kind; nil that each may
	// be.
	Gate  event.Gate
	Wants func(event.Kind) bool

	// Hungup says that nobody will write to the agent's Out any more, although
	// it was not read to its end; nil when that cannot be found out.
	Hungup func() bool

	// Ask asks the server to end, and Kill ends it; they are called in this
	// order after the agent has gone, a while apart.
	Ask, Kill func()
}

// Limits bound what either side can make the other, and this process, do.
type Limits struct {
	Message int           // bytes of one message; default 16 MiB, that of the SDK
	Depth   int           // of nested objects and lists; default 128
	Open    int           // requests of one side without an answer; default 512
	Held    int           // bytes of calls that wait for a human; default twice Message
	Rate    int           // messages a second, of 16 KiB each; a longer one counts as several; default 1000
	Burst   int           // how many may come at once; default 4 seconds' worth
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

// Report is what a person has to know after a session.
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
	held          *held

	gone  sync.Once
	given chan struct{} // closed when the time is over that an agent has to read the last answers after it has gone
	timer struct {
		sync.Mutex
		all []*time.Timer
		end bool // the server is dead: nothing is to be asked or killed any more
	}
}

// side is the agent or the server: what it writes is read by one goroutine.
type side struct {
	word string // agent or server, for records
	from *lines
	to   *sender // to this side
	open calls   // its requests that the other side has not answered
	pace *pace
}

// Run passes messages on until the server is dead, which ctx says by its end,
// and all that it wrote was read, or the agent has gone and does not read. After
// it nothing is recorded any more, although a read from the agent or a write to
// it may still be under way.
func Run(ctx context.Context, c Config) Report {
	l := c.Limits.withDefaults()
	r := &relay{config: c, limits: l, record: newRecord(c), held: newHeld(l.Held), given: make(chan struct{})}
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
		r.held.over(errServerGone)
		r.lost()
		r.leave() // a server that says nothing any more is to end
		close(passed)
	}()
	<-ctx.Done()
	select {
	case <-passed:
	case <-r.given: // an agent that has gone and left a pipe that nobody reads
	}
	stop()
	r.stopTimers()
	r.held.end(errServerGone)
	return r.record.close()
}

// pump passes on what one side writes to the other, until its end. Messages for
// an agent that is gone are dropped, so that the server can come to its end.
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
			r.record.slowed(from.word)
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
	r.failed(from, err, size)
}

// failed tells of a message that was not passed on, or could not be.
func (r *relay) failed(from *side, err error, size int) {
	var drop *dropError
	switch {
	case err == nil:
	case errors.As(err, &drop):
		r.record.drop(from.word, drop.reason, size, drop.text)
		if drop.id.IsValid() {
			from.to.fail(drop.id, drop.code, drop.reason)
		}
	case from == r.server: // the agent does not read any more
		r.leave()
	}
}

// request is a request or a notification of a side.
func (r *relay) request(from, to *side, m *jsonrpc.Request, size int) error {
	if m.IsCall() {
		if err := from.open.add(m.ID, newCall(m)); err != nil {
			return &dropError{reason: err.Error(), text: m.Method, id: m.ID, code: jsonrpc.CodeInvalidRequest}
		}
	}
	if from == r.agent {
		open, err := r.record.asked(m)
		switch {
		case err != nil:
			return r.rejected(from, m, err)
		case open != nil:
			return r.consent(m, *open, size)
		}
	}
	if m.Method == "notifications/cancelled" {
		r.held.order.Lock()
		defer r.held.order.Unlock()
		if waited := r.cancelled(from, m); waited {
			return nil // the other side has not seen what this is about
		}
	}
	return to.to.send(m)
}

// rejected answers a request that is not passed on.
func (r *relay) rejected(from *side, m *jsonrpc.Request, err error) error {
	if m.IsCall() {
		from.open.take(m.ID)
	}
	var no *deniedError
	if !errors.As(err, &no) {
		return &dropError{reason: err.Error(), text: m.Method, id: m.ID, code: jsonrpc.CodeInvalidParams}
	}
	if m.IsCall() {
		from.to.fail(m.ID, jsonrpc.CodeInvalidParams, no.Error())
	}
	return nil
}

// cancelled marks a request that nobody waits for any more; an answer may still
// come, unless the request itself waited to be passed on.
func (r *relay) cancelled(from *side, m *jsonrpc.Request) (waited bool) {
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

// response is an answer of a side to a request of the other.
func (r *relay) response(from, to *side, m *jsonrpc.Response, size int) error {
	c := to.open.take(m.ID)
	if c == nil {
		return &dropError{reason: "an answer to no request that is open", text: idText(m.ID)}
	}
	if from == r.server {
		r.record.answered(c, m, size)
	}
	return to.to.send(m)
}

// invalidLine is a line that is no message.
func (r *relay) invalidLine(from *side, text []byte, err error) {
	r.record.drop(from.word, err.Error(), len(text), string(text[:min(len(text), 4*excerpt)]))
	if from == r.agent { // JSON-RPC 2.0, section 5: an id that is not known is null
		from.to.raw(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"holdfast: this is no message of JSON-RPC"}}`)
	}
}

// tooLong is a message above the limit. Whoever waits for it is told.
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
	if c := to.open.take(id); c != nil {
		if from == r.server {
			r.record.result(c, id, outcome{word: "refused", text: reason, size: l.size})
		}
		to.to.fail(id, jsonrpc.CodeInternalError, reason)
	}
}

// lost answers what the server left without an answer.
func (r *relay) lost() {
	for id, c := range r.agent.open.all() {
		if !c.cancelled {
			r.record.result(c, id, outcome{word: "lost"})
			r.agent.to.fail(id, jsonrpc.CodeInternalError, "the server ended before it answered")
		}
	}
}

// leave lets the server end, for the agent has gone: its input ends, after a
// while it is asked to, and then killed.
func (r *relay) leave() {
	r.gone.Do(func() {
		r.held.end(errAgentGone)
		r.after(r.limits.Leave, r.config.Ask)
		r.after(r.limits.Leave+r.limits.Die, r.config.Kill)
		r.after(r.limits.Leave+2*r.limits.Die, func() { close(r.given) })
		go r.config.Server.In.Close() // it may wait for a write that is under way
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

// watch notices an agent that has gone while its last message cannot be
// delivered: then nobody reads from it, and its end would not be seen.
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

// dropError says that a message is not passed on, and what its sender is told.
type dropError struct {
	reason, text string
	id           jsonrpc.ID
	code         int64
}

func (e *dropError) Error() string { return e.reason }

// cancelledID is the request that a notification of cancellation names.
func cancelledID(params json.RawMessage) (jsonrpc.ID, error) {
	return makeID(member(params, "requestId"))
}
