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

// http1Transport sends requests in HTTP/1.1. A server that does not read a body takes
// it for the next request on the connection, which no rule has decided on, and a later
// request with its secrets for the end of that one. So no request follows a body.
type http1Transport struct{ *http.Transport }

func (t http1Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if hasBody(r) {
		r = r.WithContext(r.Context()) // a copy
		r.Close = true
	}
	return t.Transport.RoundTrip(r)
}

func hasBody(r *http.Request) bool { return r.Body != nil && r.Body != http.NoBody }

// http2First sends requests in HTTP/2, and to a server that does not speak it as
// http1Transport. Nothing of a request is sent before it is known which. The frames say
// where a body ends, but the server may pass the request on in HTTP/1.1, so a request
// that must be the last has a connection of its own (Request.Close).
type http2First struct {
	http2     *http.Transport
	fresh     func() *http.Transport // http2, without connections
	http1     http1Transport
	http1Only atomic.Bool // the server does not speak HTTP/2
}

// errNoHTTP2 is why a handshake is broken off.
var errNoHTTP2 = errors.New("the server does not speak HTTP/2")

func requireHTTP2(s tls.ConnectionState) error {
	if s.NegotiatedProtocol != "h2" {
		return errNoHTTP2
	}
	return nil
}

func (t *http2First) RoundTrip(r *http.Request) (*http.Response, error) {
	if !t.http1Only.Load() {
		again := &reusableBody{ReadCloser: r.Body}
		first := r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
			GotConn: func(httptrace.GotConnInfo) { again.taken.Store(true) },
		}))
		if r.Body != nil {
			first.Body = again
		}
		resp, err := t.sender(r).RoundTrip(first)
		if !errors.Is(err, errNoHTTP2) {
			return resp, err
		}
		t.http1Only.Store(true)
	}
	return t.http1.RoundTrip(r)
}

// sender returns the transport for r. Two requests that must be the last must not share
// a connection pool: the later could take the earlier's connection.
func (t *http2First) sender(r *http.Request) *http.Transport {
	if !r.Close {
		return t.http2
	}
	one := t.fresh()
	one.DisableKeepAlives = true
	one.IdleConnTimeout = time.Second // of one whose request was cancelled before it had it
	return one
}

// CloseIdleConnections ends what is kept for later requests.
func (t *http2First) CloseIdleConnections() {
	t.http2.CloseIdleConnections()
	t.http1.CloseIdleConnections()
}

// reusableBody is a body that is not closed as long as no connection has taken it.
type reusableBody struct {
	io.ReadCloser
	taken atomic.Bool
}

func (s *reusableBody) Close() error {
	if !s.taken.Load() {
		return nil
	}
	return s.ReadCloser.Close()
}
