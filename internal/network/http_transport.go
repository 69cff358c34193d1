package network

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	maxUpstreams  = 64               // destinations whose connections are kept
	upstreamIdle  = 30 * time.Second // shorter than most servers keep them: a request must not meet a connection that is closing
	upstreamsIdle = 8                // connections kept a destination
	copyBytes     = 64 << 10
)

// web is what an engine keeps to speak HTTP upstream. The zero value is ready.
type web struct {
	mu     sync.Mutex
	to     map[upstreamKey]sender
	roots  *x509.CertPool
	opened map[string]bool // hosts that a secret went to
	lent   atomic.Int64    // secrets, so far
	masks  *masks          // of the first so many that were issued:
	masked int
	closed bool
}

type hostPort struct {
	name string
	port int
}

// upstreamKey is what connections may be shared within. What is inside is one
// subject, so its connections may share one; permits differ in where they lead.
type upstreamKey struct {
	to                      hostPort
	secure, http2, internal bool
	origin                  string
}

// sender sends requests to one destination.
type sender interface {
	http.RoundTripper
	CloseIdleConnections()
}

// transport returns what sends requests to d.
func (h *httpConn) transport(p Permit) (http.RoundTripper, error) {
	w := &h.engine.web
	w.mu.Lock()
	defer w.mu.Unlock()
	key := upstreamKey{hostPort{h.to.Name, h.to.Port}, h.secure, h.http2, p.Internal, p.Origin.String()}
	if t := w.to[key]; t != nil {
		return t, nil
	}
	if w.closed {
		return nil, net.ErrClosed
	}
	if w.roots == nil && h.secure {
		roots, err := h.engine.roots()
		if err != nil {
			return nil, err
		}
		w.roots = roots
	}
	if len(w.to) >= maxUpstreams {
		w.drop()
	}
	if w.to == nil {
		w.to = map[upstreamKey]sender{}
	}
	roots := w.roots
	var t sender = http1Transport{newTransport(h.engine, h.to, p, h.secure, false, roots)}
	if h.http2 {
		fresh := func() *http.Transport { return newTransport(h.engine, h.to, p, true, true, roots) }
		t = &http2First{http2: fresh(), fresh: fresh, http1: t.(http1Transport)}
	}
	w.to[key] = t
	return t, nil
}

func (e *Engine) roots() (*x509.CertPool, error) {
	if e.config.Roots == nil {
		return x509.NewCertPool(), nil
	}
	return e.config.Roots.Pool()
}

// newTransport speaks to one destination. Where it dials is the destination,
// whatever a request says; a client of HTTP/1.1 is given HTTP/1.1 upstream, so
// that what it upgrades or streams means the same there.
func newTransport(e *Engine, d Destination, p Permit, secure, http2 bool, roots *x509.CertPool) *http.Transport {
	t := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			c, err := e.dial.Dial(ctx, d, p)
			if err != nil {
				return nil, &ownError{err}
			}
			if secure {
				c = newWideConn(c, e.relayPool)
			}
			return c, nil
		},
		DisableCompression:     true,
		MaxIdleConns:           upstreamsIdle,
		MaxIdleConnsPerHost:    upstreamsIdle,
		IdleConnTimeout:        upstreamIdle,
		TLSHandshakeTimeout:    e.limits.DialTime,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: int64(e.limits.HeadBytes),
		ReadBufferSize:         16 << 10,
		WriteBufferSize:        16 << 10,
		ForceAttemptHTTP2:      http2,
	}
	if secure {
		t.TLSClientConfig = &tls.Config{RootCAs: roots, ServerName: d.Name, MinVersion: tls.VersionTLS12}
	}
	if http2 {
		t.TLSClientConfig.VerifyConnection = requireHTTP2
		t.HTTP2 = &http.HTTP2Config{
			MaxReceiveBufferPerConnection: 4 << 20,
			MaxReceiveBufferPerStream:     1 << 20,
			MaxReadFrameSize:              64 << 10,
			SendPingTimeout:               time.Minute, // finds an upstream that went without a word
			PingTimeout:                   15 * time.Second,
		}
	} else {
		t.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	}
	return t
}

// forget drops idle connections, after a reload: what was permitted to share
// them may have changed.
func (w *web) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.drop()
}

func (w *web) drop() {
	for _, t := range w.to {
		t.CloseIdleConnections()
	}
	clear(w.to)
}

// close ends all idle connections; there will be no new ones.
func (w *web) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.drop()
}

// buffers are what bodies are copied with.
type buffers struct{ pool sync.Pool }

var copying = &buffers{sync.Pool{New: func() any { b := make([]byte, copyBytes); return &b }}}

func (b *buffers) Get() []byte  { return *b.pool.Get().(*[]byte) }
func (b *buffers) Put(p []byte) { b.pool.Put(&p) }
