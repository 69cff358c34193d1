package network

import (
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// bodyLast sends requests in HTTP/1.1. A server that leaves a body unread takes it
// for the next request on the connection, about which nobody decided, and a later
// request with its secrets for the end of that one. So none follows a body.
type bodyLast struct{ *http.Transport }

func (t bodyLast) RoundTrip(r *http.Request) (*http.Response, error) {
	if hasBody(r) {
		r = r.WithContext(r.Context()) // a copy
		r.Close = true
	}
	return t.Transport.RoundTrip(r)
}

func hasBody(r *http.Request) bool { return r.Body != nil && r.Body != http.NoBody }

// newerFirst sends requests in HTTP/2, and to a server that does not speak it as
// bodyLast. Nothing of a request is sent before it is known which. The frames say
// where a body ends; what stands behind the server may be told in HTTP/1.1, so a
// request that is to be the last has a connection of its own (Request.Close).
type newerFirst struct {
	newer *http.Transport
	fresh func() *http.Transport // newer, without connections
	older bodyLast
	old   atomic.Bool // the server does not speak HTTP/2
}

// errOlder is why a handshake is broken off.
var errOlder = errors.New("the server does not speak HTTP/2")

func speaksNewer(s tls.ConnectionState) error {
	if s.NegotiatedProtocol != "h2" {
		return errOlder
	}
	return nil
}

func (t *newerFirst) RoundTrip(r *http.Request) (*http.Response, error) {
	if !t.old.Load() {
		again := &spared{ReadCloser: r.Body}
		first := r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
			GotConn: func(httptrace.GotConnInfo) { again.taken.Store(true) },
		}))
		if r.Body != nil {
			first.Body = again
		}
		resp, err := t.sender(r).RoundTrip(first)
		if !errors.Is(err, errOlder) {
			return resp, err
		}
		t.old.Store(true)
	}
	return t.older.RoundTrip(r)
}

// sender returns what r is sent with. Two requests that are to be the last must
// not meet in one pool of connections: the later could take the earlier's.
func (t *newerFirst) sender(r *http.Request) *http.Transport {
	if !r.Close {
		return t.newer
	}
	one := t.fresh()
	one.DisableKeepAlives = true
	one.IdleConnTimeout = time.Second // of one whose request was cancelled before it had it
	return one
}

// CloseIdleConnections ends what is kept for later requests.
func (t *newerFirst) CloseIdleConnections() {
	t.newer.CloseIdleConnections()
	t.older.CloseIdleConnections()
}

// spared is a body that is not closed as long as no connection has taken it.
type spared struct {
	io.ReadCloser
	taken atomic.Bool
}

func (s *spared) Close() error {
	if !s.taken.Load() {
		return nil
	}
	return s.ReadCloser.Close()
}
