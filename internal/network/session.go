package network

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
)

// session is one connection of a client, from accept to close.
type session struct {
	in, out    atomic.Int64 // bytes to the client, and from it
	halfClosed atomic.Bool  // one direction has ended
	counted    bool         // the client's connection counts its bytes itself
	cancel     context.CancelCauseFunc
	unwatch    func() bool    // the end of the context no longer resets the connection
	conn       net.Conn       // as it was accepted
	dialled    netip.AddrPort // by the client; the zero value where conn says it itself
	held       atomic.Int32   // how much of it waits for a human

	whose   sync.Once     // guards process
	process event.Process // see Engine.client

	approvals approvals // that it was opened on; set before it is served

	// Guarded by Engine.mu.
	bound bool // a destination was permitted: to and way hold
	to    Destination
	way   permitKind

	// Of the sweep alone.
	seen  int64
	quiet int // sweeps without a byte
}

// permitKind is the part of a permit that an open connection depends on.
type permitKind struct {
	kind                policy.HostKind
	terminate, internal bool
}

func permitKindOf(p Permit) permitKind { return permitKind{p.Kind, p.Terminate, p.Internal} }

type sessionKey struct{}

// sessionOf returns the session that ctx belongs to, nil for none.
func sessionOf(ctx context.Context) *session {
	s, _ := ctx.Value(sessionKey{}).(*session)
	return s
}

var (
	errIdle     = errors.New("it was idle for too long")
	errFinished = errors.New("the connection has ended")
)

// begin makes a session of an accepted connection; false when the engine is
// being closed. When ctx ends the connection is reset.
func (e *Engine) begin(c net.Conn) (context.Context, *session, bool) {
	s := &session{conn: c}
	ctx, cancel := context.WithCancelCause(context.WithValue(e.ctx, sessionKey{}, s))
	s.cancel = cancel
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		cancel(errClosed)
		return nil, nil, false
	}
	e.sessions[s] = struct{}{}
	e.opened.Add(1)
	s.unwatch = context.AfterFunc(ctx, func() { abort(c) })
	return ctx, s, true
}

func (e *Engine) end(s *session) {
	s.unwatch()
	s.cancel(errFinished)
	e.mu.Lock()
	delete(e.sessions, s)
	e.mu.Unlock()
	e.in.Add(s.in.Load())
	e.out.Add(s.out.Load())
}

// bind writes down where a session goes, so that Reload can end it. The rules are
// asked under the same lock: a session is either seen by the reload that takes
// its rule away, or not permitted.
func (e *Engine) bind(ctx context.Context, d Destination) (Permit, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	p, ok := e.permit(d)
	if s := sessionOf(ctx); ok && s != nil {
		s.bound, s.to, s.way = true, d, permitKindOf(p)
	}
	return p, ok
}

// sweep ends sessions that were idle for too long. One look at all of them costs
// less than a timer for each.
func (e *Engine) sweep() {
	tick := time.NewTicker(max(e.limits.IdleTime/(sweeps*halfIdle), time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-e.ctx.Done():
			return
		case <-tick.C:
			e.recordLost(false)
		}
		e.mu.Lock()
		for s := range e.sessions {
			if s.idle() {
				s.cancel(errIdle)
			}
		}
		e.mu.Unlock()
	}
}

// idle counts one more look at the session and says whether it was idle at too
// many of them.
func (s *session) idle() bool {
	if s.held.Load() > 0 { // it is not the client that is slow
		s.quiet = 0
		return false
	}
	now := s.in.Load() + s.out.Load()
	if now != s.seen {
		s.seen, s.quiet = now, 0
		return false
	}
	s.quiet++
	limit := sweeps * halfIdle
	if s.halfClosed.Load() {
		limit = sweeps
	}
	return s.quiet > limit
}

// countingConn counts what passes through a client's connection.
type countingConn struct {
	wrapped
	s *session
}

func (t countingConn) Read(p []byte) (int, error) {
	n, err := t.Conn.Read(p)
	t.s.out.Add(int64(n))
	return n, err
}

func (t countingConn) Write(p []byte) (int, error) {
	n, err := t.Conn.Write(p)
	t.s.in.Add(int64(n))
	return n, err
}
