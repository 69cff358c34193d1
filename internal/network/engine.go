package network

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
)

// Engine decides about the connections of one run. Make it with New.
type Engine struct {
	config    Config
	limits    Limits // none is zero
	rules     atomic.Pointer[Rules]
	names     *NameMap
	dial      upstream
	ledger    *ledger
	throttle  throttle
	relayPool *relayPool
	connSlots *slots        // of connections
	asking    *slots        // of HTTP/2 requests; a connection has many
	signing   *slots        // of requests whose body is held to sign them
	waiting   chan struct{} // as many as may be held for a human
	web       web
	server    *nameServer

	ctx  context.Context // ends with Close
	stop context.CancelCauseFunc
	wait sync.WaitGroup // of every goroutine

	listeners []listener
	queries   *net.UDPConn // nil if there is no such door

	mu       sync.Mutex
	sessions map[*session]struct{}
	underWay map[*exchange]struct{} // requests that were passed on
	closed   bool
	reloads  sync.Mutex // one at a time

	recorded  atomic.Int64 // events that the record has taken
	departing sync.Mutex   // guards departed
	departed  int64        // of recorded, when the last request left

	opened  atomic.Int64
	in, out atomic.Int64 // of what is closed already
}

// listener is a door that connections come through.
type listener struct {
	net.Listener
	serve func(ctx context.Context, c net.Conn)
}

// Stats are counts since the start.
type Stats struct {
	Open    int   // connections at this moment
	Opened  int64 // connections that were accepted
	Refused int64 // queries, connections and requests that were refused
	In, Out int64 // bytes passed to the inside and out of it
}

// errClosed is why connections end when the engine does.
var errClosed = errors.New("the run has ended")

// New makes an engine that answers nothing before Serve. It owns the doors also
// when it fails. Rules that are not in the form the policy promises are an error.
func New(config Config) (*Engine, error) {
	// net/http writes there, to the terminal, what a server says without being asked
	// and, with GODEBUG=http2debug, each header with the secrets. Nothing of this
	// program writes to it.
	log.SetOutput(io.Discard)
	rules, err := NewRules(config.Allow)
	if err != nil {
		config.Doors.Close()
		return nil, fmt.Errorf("loading the allowed destinations: %w", err)
	}
	e := &Engine{
		config:    config,
		limits:    config.Limits.withDefaults(),
		names:     NewNameMap(),
		ledger:    &ledger{},
		relayPool: newRelayPool(),
		sessions:  map[*session]struct{}{},
	}
	e.rules.Store(rules)
	e.connSlots, e.asking = newSlots(e.limits.Connections), newSlots(e.limits.Connections)
	e.signing = newSlots(signedBodies)
	e.waiting = make(chan struct{}, e.limits.Held)
	e.ctx, e.stop = context.WithCancelCause(context.Background())
	e.connectParts()
	if err := e.open(config.Doors); err != nil {
		e.stop(errClosed)
		e.closeDoors()
		return nil, err
	}
	return e, nil
}

// open makes listeners of the doors. The files are closed whatever happens:
// listeners have descriptors of their own.
func (e *Engine) open(doors boundary.Doors) error {
	defer doors.Close()
	destination := localAddress
	if doors.Rung == boundary.Redirect {
		destination = originalDestination
	}
	intercepted := func(ctx context.Context, c net.Conn) { e.intercept(ctx, c, destination) }
	for _, f := range doors.TCP {
		if err := e.listen(f, "intercepted connections", intercepted); err != nil {
			return err
		}
	}
	for _, l := range e.config.Listeners {
		e.listeners = append(e.listeners, listener{l, func(ctx context.Context, c net.Conn) { e.intercept(ctx, c, localAddress) }})
	}
	if doors.Proxy != nil {
		if err := e.listen(doors.Proxy, "the proxy", e.serveProxy); err != nil {
			return err
		}
	}
	if doors.Names != nil {
		if err := e.listen(doors.Names, "names over TCP", func(_ context.Context, c net.Conn) { e.server.serveTCP(c) }); err != nil {
			return err
		}
	}
	for port, f := range doors.HostPorts {
		serve := func(ctx context.Context, c net.Conn) { e.serveHostPort(ctx, c, port) }
		if err := e.listen(f, "host port "+strconv.Itoa(port), serve); err != nil {
			return err
		}
	}
	if doors.DNS == nil {
		return nil
	}
	packets, err := net.FilePacketConn(doors.DNS)
	if err != nil {
		return fmt.Errorf("receiving the socket for name queries: %w", err)
	}
	udp, ok := packets.(*net.UDPConn)
	if !ok {
		packets.Close()
		return fmt.Errorf("receiving the socket for name queries: it is a %T", packets)
	}
	e.queries = udp
	return nil
}

func (e *Engine) listen(f *os.File, what string, serve func(context.Context, net.Conn)) error {
	l, err := net.FileListener(f)
	if err != nil {
		return fmt.Errorf("receiving the listener for %s: %w", what, err)
	}
	e.listeners = append(e.listeners, listener{l, serve})
	return nil
}

// Serve answers at all doors from now on, until Close.
func (e *Engine) Serve() {
	for _, l := range e.listeners {
		e.wait.Go(func() { e.accept(l) })
	}
	if e.queries != nil {
		e.wait.Go(func() {
			if err := e.server.serveUDP(e.queries); err != nil && e.ctx.Err() == nil {
				e.refuse(Destination{Door: nameDoor}, "names are no longer answered: "+err.Error(), asQuery, unflagged)
			}
		})
	}
	if p := e.config.Packets; p != nil {
		e.wait.Go(func() { e.server.servePackets(p) })
	}
	e.wait.Go(e.sweep)
}

// Reload takes other rules, all at once; when it fails the old ones stay.
// Connections whose destination the new rules do not permit in the same way
// (kind, termination, internal addresses) are ended and recorded as refused;
// requests on connections that stay open are decided by the new rules, also those
// that are under way.
func (e *Engine) Reload(allow []policy.HostRule) error {
	rules, err := NewRules(allow)
	if err != nil {
		return fmt.Errorf("reloading the allowed destinations, the old ones stay: %w", err)
	}
	e.reloads.Lock()
	defer e.reloads.Unlock()
	e.rules.Store(rules)
	e.web.forget()
	for _, s := range e.outdated() {
		e.refuse(s.to, "the rule that allowed it is gone, and the open connection was ended")
		s.cancel(errOutdated)
	}
	e.endOutdated()
	return nil
}

var errOutdated = errors.New("the rule that allowed this connection is gone")

// outdated lists the bound sessions that the rules no longer permit as they are.
func (e *Engine) outdated() []*session {
	e.mu.Lock()
	defer e.mu.Unlock()
	var gone []*session
	for s := range e.sessions {
		if !s.bound || s.to.Door == HostService {
			continue
		}
		if p, ok := e.permit(s.to); !ok || permitKindOf(p) != s.way {
			gone = append(gone, s)
		}
	}
	return gone
}

// Close ends every connection and waits until nothing of the engine runs any
// more. It may be called more than once.
func (e *Engine) Close() error {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.stop(errClosed)
	err := e.closeDoors()
	e.wait.Wait()
	e.recordLost(true)
	e.web.close()
	return err
}

func (e *Engine) closeDoors() error {
	var all error
	for _, l := range e.listeners {
		if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			all = errors.Join(all, fmt.Errorf("closing a listener: %w", err))
		}
	}
	if e.queries != nil {
		if err := e.queries.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			all = errors.Join(all, fmt.Errorf("closing the socket for name queries: %w", err))
		}
	}
	return all
}

// Stats returns counts as of this moment.
func (e *Engine) Stats() Stats {
	st := Stats{Opened: e.opened.Load(), In: e.in.Load(), Out: e.out.Load()}
	e.mu.Lock()
	st.Open = len(e.sessions)
	for s := range e.sessions {
		st.In += s.in.Load()
		st.Out += s.out.Load()
	}
	e.mu.Unlock()
	e.ledger.mu.Lock()
	st.Refused = e.ledger.refused
	e.ledger.mu.Unlock()
	return st
}

// errUnrecorded is why nothing leaves any more.
var errUnrecorded = errors.New("the record of this run cannot be written")

// emit sends an event of this session. An error means that the event is lost,
// and that what it was about must not happen: every connection ends then, and
// none begins.
func (e *Engine) emit(ev event.Event) error {
	if e.config.Sink == nil {
		return nil
	}
	ev.Time, ev.Session = time.Now(), e.config.Session
	err := e.config.Sink.Emit(ev)
	if err != nil {
		e.stop(errUnrecorded)
		return err
	}
	e.recorded.Add(1)
	return nil
}

// fallible is an optional interface of a Sink: others write to the same record.
type fallible interface {
	// Failed reports whether an event was lost, and no more can be recorded.
	Failed() bool
}

// unrecorded reports whether the record has failed, whatever noticed it first.
func (e *Engine) unrecorded() bool {
	if s, ok := e.config.Sink.(fallible); ok && s.Failed() {
		e.stop(errUnrecorded)
	}
	return errors.Is(context.Cause(e.ctx), errUnrecorded)
}

func (e *Engine) observe(o Observation) {
	if e.config.Learn != Off {
		e.ledger.observe(o)
	}
}

// connectParts makes the parts that need each other: what answers names, and what
// dials them.
func (e *Engine) connectParts() {
	guard := newNameGuard(e.limits)
	e.server = newNameServer(e.rules.Load, e.names, guard, e.config.Learn, e.limits, e.recordQuery)
	e.server.carriesDecoy = e.decoyInQuery
	e.server.turnsAway = len(e.config.Doors.TCP)+len(e.config.Listeners) > 0
	e.server.mayAsk = func() bool { return e.mayAsk(event.KindConnect) }
	e.dial = newDialer(e.config.Lookup, guard, e.limits)
	if e.config.Learn == Observe {
		e.dial = observing{e.dial}
	}
}

// recordQuery records a query for a name. An error refuses it.
func (e *Engine) recordQuery(q nameQuery) error {
	if q.Answered {
		detail := map[string]string{"type": q.Type}
		if q.Reason != "" {
			detail["reason"] = q.Reason
		}
		return e.emit(event.Event{Action: event.NetQuery, Object: printable(q.Name), Verdict: event.Allowed, Rule: q.Rule, Detail: detail})
	}
	opts := []refusalOption{asQuery, withDetail("type", q.Type), func(r *refused) { r.Rule = q.Rule }}
	if !q.Flagged {
		opts = append(opts, unflagged)
	}
	e.refuse(Destination{Name: q.Name, Door: nameDoor}, q.Reason, opts...)
	return nil
}
