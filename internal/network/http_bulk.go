package network

import (
	"crypto/tls"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
)

// crypto/tls passes on one record of 16 KiB with each call. A large answer over TLS is
// therefore read in large steps from upstream, and its records are gathered for the
// client until there is nothing left to read without waiting.

// gatherConn is a client's connection below TLS. What is written between begin and end
// is held until there is much of it, or until flush.
type gatherConn struct {
	wrapped
	pool *relayPool
	n    atomic.Int64 // bytes of held; changed with the lock held

	mu   sync.Mutex // guards what follows, and the order of what is sent
	held *[]byte    // nil while nothing is gathered
	err  error      // of what was sent later than it was written; sticky
}

func (g *gatherConn) Write(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held != nil && g.n.Load()+int64(len(p)) > int64(len(*g.held)) {
		g.send()
	}
	if g.err != nil {
		return 0, g.err
	}
	if g.held == nil || len(p) > len(*g.held) {
		return g.Conn.Write(p)
	}
	copy((*g.held)[g.n.Load():], p)
	g.n.Add(int64(len(p)))
	return len(p), nil
}

func (g *gatherConn) begin() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held == nil {
		g.held = g.pool.getBuffer(true)
	}
}

func (g *gatherConn) flush() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.send()
}

func (g *gatherConn) end() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.send()
	if g.held != nil {
		g.pool.putBuffer(g.held)
		g.held = nil
	}
}

// send is called with the lock held.
func (g *gatherConn) send() {
	if n := g.n.Load(); n > 0 && g.err == nil {
		_, g.err = g.Conn.Write((*g.held)[:n])
	}
	g.n.Store(0)
}

// wideConn is a connection to an upstream below TLS, which is read in large steps.
type wideConn struct {
	wrapped
	reader *reader
	read   func(fd uintptr) bool      // of reader, made once
	rest   []byte                     // read from the socket and not yet from here
	client atomic.Pointer[gatherConn] // flushed when it waits
}

// newWideConn returns c if it is not a connection of the kernel.
func newWideConn(c net.Conn, s *relayPool) net.Conn {
	t, ok := c.(*net.TCPConn)
	if !ok {
		return c
	}
	r, err := newReader(t)
	if err != nil {
		return c
	}
	r.pool, r.large = s, true
	w := &wideConn{wrapped: wrapped{c}, reader: r}
	w.read = func(fd uintptr) bool {
		if r.read(fd) {
			return true
		}
		// Not by this goroutine: between two answers it is one of net/http, and the next
		// request must not wait for the client of the last.
		if g := w.client.Load(); g != nil && g.n.Load() > 0 {
			go g.flush()
		}
		return false
	}
	return w
}

// feed has an upstream flush g, nil for none, when it waits for more. It reports
// whether it does.
func feed(upstream net.Conn, g *gatherConn) bool {
	t, ok := upstream.(*tls.Conn)
	if !ok {
		return false
	}
	w, ok := t.NetConn().(*wideConn)
	if ok {
		w.client.Store(g)
	}
	return ok && g != nil
}

func (w *wideConn) Read(p []byte) (int, error) {
	if len(w.rest) == 0 {
		if err := w.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(p, w.rest)
	if w.rest = w.rest[n:]; len(w.rest) == 0 {
		w.give()
	}
	return n, nil
}

// fill waits for bytes.
func (w *wideConn) fill() error {
	r := w.reader
	r.err = nil
	if err := r.raw.Read(w.read); err != nil {
		w.give()
		return err
	}
	if r.n > 0 && r.err == nil {
		w.rest = (*r.buf)[:r.n]
		return nil
	}
	w.give()
	if r.err != nil {
		return &net.OpError{Op: "read", Net: "tcp", Source: w.LocalAddr(), Addr: w.RemoteAddr(), Err: os.NewSyscallError("read", r.err)}
	}
	return io.EOF
}

func (w *wideConn) give() {
	if w.reader.buf != nil {
		w.reader.pool.putBuffer(w.reader.buf)
		w.reader.buf = nil
	}
}
