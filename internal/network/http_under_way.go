package network

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/textproto"

	"holdfast.dev/holdfast/internal/floor/event"
)

// enter writes down a request that is about to be passed on, so that Reload can
// end it, and returns it with the context that ends then. The rules are asked
// under the same lock: a request is either seen by the reload that takes its
// rule away, or not permitted.
func (x *exchange) enter(r *http.Request) (*http.Request, *denial) {
	ctx, cancel := context.WithCancelCause(r.Context())
	x.method, x.cancel = r.Method, cancel
	e := x.engine
	e.mu.Lock()
	defer e.mu.Unlock()
	if !x.stillPermitted() {
		cancel(errOutdated)
		return nil, deny(http.StatusForbidden, "no rule allows it any more")
	}
	own := x.approvals.rulings
	if s := sessionOf(ctx); s != nil {
		x.approvals.rulings = append(x.approvals.rulings, s.approvals.rulings...) // which end the whole connection, too
	}
	if by := lapsed(x.approvals.rulings...); by != nil {
		cancel(errLapsed)
		return nil, deny(http.StatusForbidden, errLapsed.Error(), byConsent(*by))
	}
	if e.unrecorded() {
		cancel(errUnrecorded)
		return nil, deny(http.StatusServiceUnavailable, errUnrecorded.Error(), unflagged)
	}
	if e.underWay == nil {
		e.underWay = map[*exchange]struct{}{}
	}
	e.underWay[x] = struct{}{}
	for _, by := range own {
		e.lapses(ctx, by, func() { x.approvals.endWith(by) })
	}
	return r.WithContext(httptrace.WithClientTrace(ctx, x.watch())), nil
}

// lapse ends a request under way whose approval has ended. One that is not yet under
// way, and whose body was read to sign it, is refused by the code that read it.
func (x *exchange) lapse(by event.Ruling) {
	if x.cancel != nil && !x.whole.Load() {
		x.engine.refuse(x.to, "the approval that allowed it has ended, and so has the request under way", forRequest(x.method, x.path), byConsent(by))
		x.cancel(errLapsed)
	}
}

// interimMost is how many interim answers a request may have before its answer.
const interimMost = 100

// watch checks a request again when its connection is there, which may have taken long,
// and counts interim answers, because net/http does not if a callback takes them.
func (x *exchange) watch() *httptrace.ClientTrace {
	interim := 0
	return &httptrace.ClientTrace{
		GotConn: func(got httptrace.GotConnInfo) {
			x.bulk = feed(got.Conn, x.gather)
			if x.approvals.over() == nil && !x.engine.unrecorded() {
				return
			}
			x.cancel(errUnrecorded) // nothing where it has ended already
			if t, ok := got.Conn.(*tls.Conn); !ok || t.ConnectionState().NegotiatedProtocol != "h2" {
				got.Conn.Close() // HTTP/1 is written whatever became of the context
			}
		},
		Got1xxResponse: func(int, textproto.MIMEHeader) error {
			if interim++; interim > interimMost {
				return &ownError{fmt.Errorf("it sent more than %d interim answers", interimMost)}
			}
			return nil
		},
	}
}

func (x *exchange) leave() {
	x.engine.mu.Lock()
	delete(x.engine.underWay, x)
	x.engine.mu.Unlock()
	x.cancel(errFinished)
}

// stillPermitted reports whether the rules of this moment permit the request, with the
// secrets that it carries.
func (x *exchange) stillPermitted() bool {
	p, ok := x.engine.permit(x.to)
	if !ok {
		return x.permit.Origin.File == learned || x.permit.Granted
	}
	if p.Origin.File == learned {
		return true
	}
	if _, ok = p.Request(x.method, x.path); !ok {
		return false
	}
	for _, credential := range x.lent {
		if !p.MayUseFor(credential, x.method, x.path) {
			return false
		}
	}
	return true
}

// endOutdated ends the requests that the rules no longer permit.
func (e *Engine) endOutdated() {
	e.mu.Lock()
	var gone []*exchange
	for x := range e.underWay {
		if !x.whole.Load() && !x.stillPermitted() {
			gone = append(gone, x)
		}
	}
	e.mu.Unlock()
	for _, x := range gone {
		e.refuse(x.to, "the rule that allowed it is gone, and the request under way was ended", forRequest(x.method, x.path))
		x.cancel(errOutdated)
	}
}

// responseBody is the body of an answer. An EOF after the request was cancelled does
// not count as an end: upstream saw its connection close, and sent what was left.
type responseBody struct {
	io.ReadCloser
	x    *exchange
	ctx  context.Context
	left int64 // bytes; negative where the length is not known
}

// follow puts it around the body of an answer that has one.
func (x *exchange) follow(r *http.Response) {
	if r.ContentLength == 0 || r.Request.Method == http.MethodHead || r.StatusCode == http.StatusNoContent || r.StatusCode == http.StatusNotModified {
		x.whole.Store(true) // the client has it all with the head
		return
	}
	r.Body = &responseBody{r.Body, x, r.Request.Context(), r.ContentLength}
}

func (f *responseBody) Read(p []byte) (int, error) {
	n, err := f.ReadCloser.Read(p)
	if f.x.bulk && err == nil {
		f.x.gather.begin() // it is read again after p is written
	}
	if f.left > 0 {
		if f.left -= int64(n); f.left <= 0 {
			f.x.whole.Store(true)
		}
	}
	if err == io.EOF && !f.x.whole.Load() {
		if cause := context.Cause(f.ctx); cause != nil {
			return n, cause
		}
		f.x.whole.Store(true)
	}
	return n, err
}

// Close ends what gathers: also where nothing is read to its end.
func (f *responseBody) Close() error {
	if f.x.bulk {
		f.x.gather.end()
	}
	return f.ReadCloser.Close()
}
