package network

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// serveTLS takes a connection to a destination of kind tls. The server name of its
// hello must be the destination's. After that it is passed on untouched, or, if the
// permit says so, TLS ends here and requests are decided one by one. It returns when
// the connection is over, and closes it.
func (e *Engine) serveTLS(ctx context.Context, c net.Conn, d Destination, p Permit) {
	defer c.Close()
	c.SetReadDeadline(time.Now().Add(e.limits.HeadTime))
	h, c, err := readHello(c)
	c.SetReadDeadline(time.Time{})
	if err != nil {
		e.badHello(ctx, c, d, err)
		return
	}
	if why := confirms(h, d); why != "" {
		e.refuse(d, why, highSeverity, withDetail("sni", printable(h.server)))
		alert(c, alertUnrecognizedName)
		return
	}
	if kind := e.decoyIn(bufferedBytes(c)); kind != "" {
		e.refuseDecoy(d, kind, "in its TLS hello")
		abort(c)
		return
	}
	if p.Terminate {
		e.terminate(ctx, c, d, p)
		return
	}
	up, err := e.dial.Dial(ctx, d, p)
	if err != nil {
		if r, decided := e.refuseDial(d, err); decided {
			e.turnAway(ctx, c, r)
		} else {
			abort(c)
		}
		return
	}
	e.relay(ctx, c, up, nil) // the byte counts show why it ended, and there is no one to report to
}

// badHello records an invalid hello, and reports it in the client's protocol.
func (e *Engine) badHello(ctx context.Context, c net.Conn, d Destination, err error) {
	switch {
	case errors.Is(err, errNotTLS):
		e.turnAway(ctx, c, e.refuse(d, err.Error(), unflagged))
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		// It sent nothing and went: a port scan is not an attempt.
	case isTimeout(err):
		e.refuse(d, fmt.Sprintf("it sent no TLS hello within %s", e.limits.HeadTime), unflagged)
		alert(c, alertHandshakeFailure)
	default:
		e.refuse(d, err.Error(), highSeverity)
		alert(c, alertHandshakeFailure)
	}
}

// confirms says why the hello contradicts where the connection goes, or "". An
// encrypted hello shows the name of another server outside, and so contradicts;
// a made-up one (GREASE) does not.
func confirms(h tlsHello, d Destination) string {
	if _, err := netip.ParseAddr(d.Name); err == nil {
		if h.server != "" {
			return "request smuggling: its TLS hello names a server, the connection goes to an address"
		}
		return ""
	}
	if h.server == "" {
		return "request smuggling: its TLS hello names no server"
	}
	name, err := Normalize(h.server)
	if err != nil || name != d.Name {
		return "request smuggling: its TLS hello names another server"
	}
	return ""
}

// terminate ends TLS with a certificate of the session and serves the requests.
func (e *Engine) terminate(ctx context.Context, c net.Conn, d Destination, p Permit) {
	if e.config.Authority == nil {
		e.refuse(d, "the policy has rules about its requests, but this session has no certificate authority to terminate TLS", unflagged)
		abort(c)
		return
	}
	leaf, err := e.config.Authority.certificate(d.Name)
	if err != nil {
		e.refuse(d, err.Error(), unflagged)
		abort(c)
		return
	}
	g := &gatherConn{wrapped: wrapped{c}, pool: e.relayPool}
	t := tls.Server(g, &tls.Config{
		Certificates:           []tls.Certificate{*leaf},
		MinVersion:             tls.VersionTLS12,
		NextProtos:             []string{"h2", "http/1.1", "http/1.0"}, // curl offers the last alone if configured to
		SessionTicketsDisabled: true,                                   // their keys would be this connection's alone

		DynamicRecordSizingDisabled: true, // small first records help where packets take time: the client is on this host
	})
	c.SetDeadline(time.Now().Add(e.limits.HeadTime))
	if err := t.HandshakeContext(ctx); err != nil {
		e.rejected(d, err)
		return
	}
	c.SetDeadline(time.Time{})
	v := &httpConn{engine: e, to: d, given: p, secure: true, ctx: ctx}
	if t.ConnectionState().NegotiatedProtocol == "h2" {
		v.http2 = true
		v.serve(t)
	} else {
		v.gather = g
		v.serve(v.guarded(t))
	}
	t.Close()
}

// rejected records a handshake that the client broke off, for programs that
// trust certificates of their own: the user must know which.
func (e *Engine) rejected(d Destination, err error) {
	if why := remoteAlert(err); why != "" {
		e.refuse(d, "the program does not accept the session's certificate: "+why, unflagged)
	}
}

// remoteAlert returns the alert by which the other side ended a handshake, or "".
func remoteAlert(err error) string {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "remote error" {
		return op.Err.Error()
	}
	return ""
}

// serveHTTP takes a connection to a destination of kind http, or one of the
// explicit proxy whose request says its destination (Door Forward). It returns
// when the connection is over, and closes it.
func (e *Engine) serveHTTP(ctx context.Context, c net.Conn, d Destination, p Permit) {
	defer c.Close()
	v := &httpConn{engine: e, to: d, given: p, ctx: ctx}
	v.serve(v.guarded(c))
}

func isTimeout(err error) bool {
	var t net.Error
	return errors.As(err, &t) && t.Timeout()
}

// silent takes what net/http would print.
var silent = log.New(io.Discard, "", 0)

// serve reads requests from c until the connection is over.
func (h *httpConn) serve(c net.Conn) {
	limits := h.engine.limits
	once := newSingle(c)
	h.over = once.end
	server := &http.Server{
		Handler:                      h,
		ErrorLog:                     silent,
		ReadHeaderTimeout:            limits.HeadTime,
		IdleTimeout:                  limits.IdleTime,
		MaxHeaderBytes:               limits.HeadBytes,
		DisableGeneralOptionsHandler: true,
		BaseContext:                  func(net.Listener) context.Context { return h.ctx },
		ConnState:                    h.state,
	}
	if h.http2 {
		server.HTTP2 = &http.HTTP2Config{
			MaxConcurrentStreams:          128,
			MaxReceiveBufferPerConnection: 512 << 10,
			MaxReceiveBufferPerStream:     256 << 10,
			MaxReadFrameSize:              64 << 10,
		}
	} else {
		server.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){}
		// The guard measures the time of a head, from its first byte.
		server.ReadHeaderTimeout = -1
	}
	server.Serve(once) // returns the error of single.Accept, always
	h.requests.end()
}

// requests are those of a connection that are being handled. With HTTP/2
// net/http does not wait for them when the connection ends.
type requests struct {
	mu    sync.Mutex
	over  bool
	under sync.WaitGroup
}

func (r *requests) enter() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over {
		r.under.Add(1)
	}
	return !r.over
}

func (r *requests) leave() { r.under.Done() }

// end waits for the last, and lets none begin.
func (r *requests) end() {
	r.mu.Lock()
	r.over = true
	r.mu.Unlock()
	r.under.Wait()
}

// state follows the connection through net/http.
func (h *httpConn) state(c net.Conn, s http.ConnState) {
	switch s {
	case http.StateIdle:
		if g, ok := c.(*guard); ok {
			g.next()
		}
	case http.StateClosed:
		h.over()
	case http.StateHijacked:
		h.hijacked.Store(true)
	}
}

// single is a listener of one connection.
type single struct {
	conn chan net.Conn // holds it until it is accepted
	once sync.Once
	over chan struct{}
}

func newSingle(c net.Conn) *single {
	s := &single{conn: make(chan net.Conn, 1), over: make(chan struct{})}
	s.conn <- c
	return s
}

func (s *single) end() { s.once.Do(func() { close(s.over) }) }

// Accept returns the connection; the second time it waits until that is over.
func (s *single) Accept() (net.Conn, error) {
	select {
	case c := <-s.conn:
		return c, nil
	case <-s.over:
		return nil, io.EOF
	}
}

func (s *single) Close() error   { return nil }
func (s *single) Addr() net.Addr { return &net.TCPAddr{} }
