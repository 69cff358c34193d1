package egress

import (
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
)

// bodyLast sends requests in HTTP/1.1. A server that leaves a body unread takes it
// for the next request on the connection, about which nobody decided, and a later
// request with its secrets for the end of that one. So none follows a body.
type bodyLast struct{ *http.Transport }

func (t bodyLast) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.Body != http.NoBody {
		r = r.WithContext(r.Context()) // a copy
		r.Close = true
	}
	return t.Transport.RoundTrip(r)
}

// newerFirst sends requests in HTTP/2, whose frames say where each body ends; to a
// server that does not speak it as bodyLast. Nothing of a request is sent before
// it is known which.
type newerFirst struct {
	newer *http.Transport
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
		resp, err := t.newer.RoundTrip(first)
		if !errors.Is(err, errOlder) {
			return resp, err
		}
		t.old.Store(true)
	}
	return t.older.RoundTrip(r)
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
