package network

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// guard is what net/http reads HTTP/1 from: only bytes that were strictly parsed pass.
// It holds back the head of each request until it is whole and well-formed, and the
// next head until the previous request is done. net/http repairs much, but this way it
// reads a request exactly as sent, and a server upstream cannot read it differently.
type guard struct {
	wrapped
	conn *httpConn

	mu       sync.Mutex
	deadline time.Time     // that net/http set for reading
	wake     chan struct{} // closed when it changes
	begun    time.Time     // when the head that is being read began; zero before
	busy     bool          // a request is being handled
	raw      bool          // the protocol was changed: what comes is not HTTP
	head     head          // of the request that is being handled
	fault    *denial       // in its body

	// Owned by the reader; net/http has one at a time.
	held  []byte // read and not yet passed
	ready int    // bytes of held that may pass
	seen  int    // bytes of held that were searched for the end of a head
	body  framing
	err   error
	ended bool // the client has sent all

	written atomic.Int64
}

// goneAfter is how long to wait without an answer for a client that has sent all.
const goneAfter = 5 * time.Second

// guarded puts the guard of h around its connection.
func (h *httpConn) guarded(c net.Conn) *guard {
	h.guard = &guard{wrapped: wrapped{c}, conn: h, begun: time.Now(), wake: make(chan struct{})}
	h.guard.apply()
	return h.guard
}

// next is called when a request was answered: the next head may pass.
func (g *guard) next() {
	g.mu.Lock()
	g.busy = false
	g.mu.Unlock()
}

// change ends HTTP on this connection, after 101.
func (g *guard) change() {
	g.mu.Lock()
	g.raw = true
	g.mu.Unlock()
}

// current returns the head of the request that is being handled.
func (g *guard) current() head {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.head
}

// broken returns what is wrong with the body that is being read, or nil.
func (g *guard) broken() *denial {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.fault
}

func (g *guard) stage() (busy, raw bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.busy, g.raw
}

// Read returns understood bytes.
func (g *guard) Read(p []byte) (int, error) {
	for len(p) > 0 {
		if g.ready > 0 {
			n := copy(p, g.held[:g.ready])
			g.consume(n)
			return n, nil
		}
		if g.err != nil {
			return 0, g.err
		}
		busy, raw := g.stage()
		switch {
		case raw && len(g.held) > 0:
			g.ready = len(g.held)
		case raw:
			return g.Conn.Read(p)
		case g.body.more():
			if n, err := g.readBody(p); n > 0 || err != nil {
				return n, err
			}
		case busy:
			if err := g.wait(p); err != nil {
				return 0, err
			}
		default:
			if err := g.readHead(p); err != nil {
				return 0, err
			}
		}
	}
	return 0, nil
}

func (g *guard) consume(n int) {
	g.held = g.held[n:]
	g.ready -= n
	g.seen = max(g.seen-n, 0)
	if len(g.held) == 0 {
		g.held = nil // an idle connection keeps nothing
	}
}

// readBody passes a piece of a body, and keeps what follows it.
func (g *guard) readBody(p []byte) (int, error) {
	n := copy(p, g.held)
	if n > 0 {
		g.consume(n)
		g.ready = 0
	} else {
		var err error
		if n, err = g.Conn.Read(p); n == 0 {
			return 0, err
		}
	}
	body, bad := g.body.feed(p[:n])
	if bad != nil {
		g.mu.Lock()
		g.fault = bad
		g.mu.Unlock()
		g.err = bad
		g.conn.violated(g.head, bad)
		return body, nil
	}
	if body < n {
		g.held = append(bytes.Clone(p[body:n]), g.held...)
	}
	return body, nil
}

// wait keeps what comes while a request is handled, so that the end of the
// connection is seen, and passes nothing. When enough is kept, it waits for
// net/http to stop reading.
func (g *guard) wait(p []byte) error {
	if len(g.held) < g.conn.engine.limits.HeadBytes && !g.ended {
		n, err := g.Conn.Read(p)
		g.held = append(g.held, p[:n]...)
		if n > 0 || !errors.Is(err, io.EOF) {
			return err
		}
		g.ended = true
	}
	g.mu.Lock()
	wake, deadline := g.wake, g.deadline
	g.mu.Unlock()
	if !deadline.IsZero() && !deadline.After(time.Now()) {
		return os.ErrDeadlineExceeded
	}
	if !g.ended {
		<-wake
		return nil
	}
	// The client has sent all. It may have gone, or wait for the answer: it is taken
	// for gone if nothing was answered for a while. Writes to a client that has gone
	// fail.
	written := g.written.Load()
	patience := time.NewTimer(goneAfter)
	defer patience.Stop()
	select {
	case <-wake:
		return nil
	case <-patience.C:
	}
	if g.written.Load() == written {
		return io.EOF
	}
	return nil
}

// Write counts what is answered.
func (g *guard) Write(p []byte) (int, error) {
	n, err := g.Conn.Write(p)
	g.written.Add(int64(n))
	return n, err
}

// readHead reads on, and lets the head pass when it is whole.
func (g *guard) readHead(p []byte) error {
	if len(g.held) > 0 {
		g.begin()
		h, size, bad := g.findHead()
		if bad != nil {
			return g.refuse(bad)
		}
		if size > 0 {
			g.pass(h, size)
			return nil
		}
	}
	n, err := g.Conn.Read(p)
	g.held = append(g.held, p[:n]...)
	if n > 0 {
		return nil
	}
	if isTimeout(err) && g.late() {
		return g.refuse(deny(http.StatusRequestTimeout, fmt.Sprintf("it sent no whole request head within %s", g.conn.engine.limits.HeadTime), unflagged))
	}
	return err
}

// pass lets the first head through.
func (g *guard) pass(h head, size int) {
	g.ready, g.seen, g.body = size, 0, h.body
	g.mu.Lock()
	g.busy, g.begun, g.head = true, time.Time{}, h
	g.mu.Unlock()
	g.apply()
}

// findHead looks for a whole head; size 0 means that there is more to come.
func (g *guard) findHead() (h head, size int, bad *denial) {
	limit := g.conn.engine.limits.HeadBytes
	if bad := checkFirstByte(g.held); bad != nil {
		return h, 0, bad
	}
	size, g.seen, bad = headEnd(g.held, g.seen)
	if bad != nil {
		return h, 0, bad
	}
	if size > limit || size == 0 && len(g.held) > limit {
		return h, 0, deny(http.StatusRequestHeaderFieldsTooLarge, fmt.Sprintf("the head of the request is larger than %d bytes", limit), unflagged)
	}
	if size == 0 {
		return h, 0, nil
	}
	if h, bad = parseHead(g.held[:size], g.conn.to.Door == Forward); bad == nil {
		bad = g.conn.misdirected(h)
	}
	return h, size, bad
}

// refuse answers a bad head, and ends the connection. Nothing of the request
// reached net/http, and the answer before is complete.
func (g *guard) refuse(bad *denial) error {
	line := g.conn.violated(requestOf(g.held), bad)
	if kind := g.conn.engine.decoyIn(g.held); kind != "" {
		g.conn.engine.decoySent(g.conn.to.String(), kind, "in a request that is refused", g.conn.to.Door, "")
	}
	writeAndClose(g.Conn, plainAnswer(bad.status, line, noField))
	g.err = io.EOF
	return g.err
}

// begin starts the time of a head at its first byte.
func (g *guard) begin() {
	g.mu.Lock()
	begun := !g.begun.IsZero()
	if !begun {
		g.begun = time.Now()
	}
	g.mu.Unlock()
	if !begun {
		g.apply()
	}
}

func (g *guard) late() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.begun.IsZero() && time.Since(g.begun) >= g.conn.engine.limits.HeadTime
}

// SetReadDeadline is net/http's; the time of a head may be over before.
func (g *guard) SetReadDeadline(t time.Time) error {
	g.mu.Lock()
	g.deadline = t
	close(g.wake)
	g.wake = make(chan struct{})
	g.mu.Unlock()
	return g.apply()
}

// SetDeadline is SetReadDeadline and SetWriteDeadline.
func (g *guard) SetDeadline(t time.Time) error {
	return errors.Join(g.SetReadDeadline(t), g.Conn.SetWriteDeadline(t))
}

func (g *guard) apply() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	t := g.deadline
	if !g.begun.IsZero() {
		if end := g.begun.Add(g.conn.engine.limits.HeadTime); t.IsZero() || end.Before(t) {
			t = end
		}
	}
	return g.Conn.SetReadDeadline(t)
}

// Close also ends a wait.
func (g *guard) Close() error {
	g.mu.Lock()
	g.deadline = time.Unix(1, 0)
	close(g.wake)
	g.wake = make(chan struct{})
	g.mu.Unlock()
	return g.Conn.Close()
}
