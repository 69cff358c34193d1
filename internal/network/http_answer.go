package network

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
)

// responseWriter writes the response to one request.
type responseWriter struct {
	http.ResponseWriter
	status  int
	bytes   int64
	refused bool
	streams bool // the connection has others (HTTP/2)
}

// WriteHeader drops interim answers: they are hints (RFC 8297), and 100 is
// net/http's own.
func (a *responseWriter) WriteHeader(status int) {
	if status < 200 && status != http.StatusSwitchingProtocols {
		return
	}
	if a.status == 0 {
		a.status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

func (a *responseWriter) Write(p []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	n, err := a.ResponseWriter.Write(p)
	a.bytes += int64(n)
	return n, err
}

// Unwrap is for http.ResponseController.
func (a *responseWriter) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// received takes out of an answer what must not reach the client.
func (x *exchange) received(r *http.Response) error {
	r.Header.Del("Alt-Svc") // leads to other ports, and to QUIC
	if r.StatusCode == http.StatusUnauthorized {
		for _, name := range x.lent {
			x.engine.config.Credentials.Rejected(name)
		}
	}
	if x.to.Door == Forward {
		r.Header.Set("Connection", "close") // the next request may be for another host
	}
	if err := x.conceal(r); err != nil {
		return err
	}
	if r.StatusCode == http.StatusSwitchingProtocols {
		// Another protocol than was asked for is an error of httputil's, too, but by
		// then the guard would let everything pass.
		if to := r.Header["Upgrade"]; !x.upgrade || x.guard == nil || len(to) != 1 || !strings.EqualFold(to[0], "websocket") {
			return errors.New("it changed the protocol without being asked")
		}
		x.answer.status = r.StatusCode
		x.guard.change()
		if to, ok := r.Body.(io.ReadWriteCloser); ok {
			r.Body = socket{to, approvalWriter{to, x.approvals.over}, to}
		}
		return nil
	}
	x.follow(r)
	return nil
}

// requestBody is the body of a request: counted, and searched for placeholders.
type requestBody struct {
	io.ReadCloser
	exchange *exchange
	request  *http.Request
	bytes    atomic.Int64
	before   []byte // the last bytes that passed, as far as a placeholder may reach
	leak     atomic.Pointer[leak]
}

func newRequestBody(x *exchange, r *http.Request) *requestBody {
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	return &requestBody{ReadCloser: r.Body, exchange: x, request: r}
}

func (s *requestBody) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if over := s.exchange.approvals.over(); over != nil {
		return 0, over
	}
	if n > 0 || err == io.EOF {
		if found := s.search(p[:n], err == io.EOF); found != nil {
			s.leak.Store(found)
			return 0, found
		}
	}
	s.bytes.Add(int64(n))
	return n, err
}

// failed answers a request that upstream did not.
func (x *exchange) failed(w http.ResponseWriter, r *http.Request, err error) {
	x.answer.refused = true
	if x.body != nil {
		if found := x.body.leak.Load(); found != nil {
			x.refuse(r, x.denyLeak(found))
			return
		}
	}
	if cause := context.Cause(r.Context()); cause == errOutdated || cause == errLapsed || cause == errUnrecorded { // recorded by the code that ended it
		writeLine(w, r, http.StatusForbidden, "holdfast refused the request: "+cause.Error())
		return
	}
	if x.guard != nil {
		if bad := x.guard.broken(); bad != nil { // recorded when it was found
			writeLine(w, r, bad.status, "holdfast refused the request: "+bad.reason)
			return
		}
	}
	if d, ok := x.engine.refuseDial(x.to, &reworded{err, x.explain(err)}, forRequest(r.Method, x.path)); ok {
		writeLine(w, r, http.StatusForbidden, d.Line())
		return
	}
	if why := untrusted(err); why != "" {
		x.refuse(r, deny(http.StatusBadGateway, why, unflagged))
		return
	}
	x.answer.refused = false // it was allowed, and there was no answer
	status, why := http.StatusBadGateway, x.explain(err)
	if isTimeout(err) {
		status = http.StatusGatewayTimeout
	}
	writeLine(w, r, status, fmt.Sprintf("holdfast got no answer from %s: %s", x.authority(), why))
}

// untrusted says what is wrong with an upstream's certificate, or "".
func untrusted(err error) string {
	var bad *tls.CertificateVerificationError
	if errors.As(err, &bad) {
		return "its certificate is not valid: " + printable(bad.Err.Error())
	}
	return ""
}

// explain describes a failure in our own words: the error may quote what upstream sent,
// and that may echo a secret.
func (x *exchange) explain(err error) string {
	var (
		op     *net.OpError
		record tls.RecordHeaderError
		own    *ownError
	)
	switch {
	case errors.As(err, &own):
		return printable(own.Error())
	case errors.As(err, &record):
		return "it does not speak TLS"
	case remoteAlert(err) != "":
		return "it ended the handshake: " + remoteAlert(err)
	case isTimeout(err):
		return "it timed out"
	case errors.As(err, &op):
		return "the connection broke"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "it closed the connection"
	}
	return "its response is not HTTP, or is too large"
}

// reworded is an error whose own text is not shown.
type reworded struct {
	error
	words string
}

func (r *reworded) Error() string { return r.words }
func (r *reworded) Unwrap() error { return r.error }

// ownError is an error whose text is ours, and nothing that upstream sent.
type ownError struct{ error }

func (e *ownError) Unwrap() error { return e.error }
