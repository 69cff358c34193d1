package network

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
)

// httpConn is a connection of a client whose HTTP requests are served.
type httpConn struct {
	engine *Engine
	to     Destination
	given  Permit // when the connection came
	secure bool   // it is TLS, on both sides
	http2  bool   // it is HTTP/2
	ctx    context.Context
	guard  *guard      // with HTTP/1
	gather *gatherConn // with HTTP/1 over TLS

	over     func()
	hijacked atomic.Bool
	requests requests
}

// denial is why a request is not passed on. Of one that two servers could read as
// different ones it never holds what was sent.
type denial struct {
	status int
	reason string
	opts   []refusalOption
}

func (d *denial) Error() string { return d.reason }

func deny(status int, reason string, opts ...refusalOption) *denial {
	return &denial{status, reason, opts}
}

const smugglingPrefix = "request smuggling: "

func smuggling(format string, args ...any) *denial {
	return deny(http.StatusBadRequest, smugglingPrefix+fmt.Sprintf(format, args...), highSeverity)
}

// violated records what is wrong with the request req, and returns the line that says
// so.
func (h *httpConn) violated(req head, bad *denial) string {
	opts := bad.opts
	if req.method != "" {
		opts = append(opts, forRequest(req.method, req.path()))
	}
	return h.engine.refuse(h.to, bad.reason, opts...).Line()
}

// exchange is one request and its response (RFC 9110, 3.4).
type exchange struct {
	*httpConn
	answer  *responseWriter
	target  *url.URL // for upstream
	path    string   // as it goes upstream, without the query
	permit  Permit
	rule    policy.Origin
	body    *requestBody
	upgrade bool // it asks for WebSocket

	approvals approvals // that it, its secrets and its connection rest on, where rules of consent were asked

	// From enter on.
	method string
	lent   []string // credentials whose secret it carries
	signs  bool     // it holds a place among those that are signed
	cancel context.CancelCauseFunc
	whole  atomic.Bool // its answer has come to its end
	bulk   bool        // what gathers its answer is flushed when upstream is waited for
}

// ServeHTTP decides about a request and passes it on.
func (h *httpConn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !h.requests.enter() {
		panic(http.ErrAbortHandler)
	}
	defer h.requests.leave()
	defer h.left()
	a := &responseWriter{ResponseWriter: w, streams: r.ProtoMajor == 2}
	x := &exchange{httpConn: h, answer: a}
	x.approvals.end = x.lapse
	body := newSerialBody(r.Body)
	defer finish(w, r, x.unwanted(r, body))
	// A copy: net/http looks at the body of its own request for what is left to
	// read, and whether the client still waits to be asked for it.
	r = r.WithContext(r.Context())
	r.Body = body
	if h.http2 {
		if !h.engine.asking.acquire(r.Context()) {
			x.refuse(r, deny(http.StatusServiceUnavailable, "too many requests are under way", unflagged))
			return
		}
		defer h.engine.asking.release()
	}
	defer func() {
		if x.signs {
			h.engine.signing.release()
		}
	}()
	answered, d := x.admit(r)
	switch {
	case d != nil:
		x.refuse(r, d)
	case !answered:
		x.pass(r)
	}
}

// admit decides about a request, and puts the secrets into it that it is to carry. It
// reports whether the request was answered here.
func (x *exchange) admit(r *http.Request) (answered bool, d *denial) {
	logins := x.logins()
	d = x.decide(r, logins)
	if near := nearLogins(logins, x.path); d != nil && d.status == http.StatusForbidden && len(near) > 0 {
		d = deny(d.status, noLogin(near), unflagged)
	}
	if found := x.decoyInHead(r); found != nil {
		d = found
	}
	if d == nil {
		d = x.prepare(r)
	}
	var use []Binding
	if d == nil {
		use, d = x.carries(r)
	}
	if d == nil && len(logins) > 0 {
		answered, d = x.renew(r, logins)
	}
	if d != nil || answered {
		return answered, d
	}
	if d = x.consent(r); d == nil {
		d = x.inject(r, use)
	}
	return false, d
}

// left ends the connection's service when it no longer belongs to net/http.
func (h *httpConn) left() {
	if h.hijacked.Load() {
		h.over()
	}
}

// decide says why a request may not pass, or nil. The path is decided on as sent, and
// passed on unchanged.
func (x *exchange) decide(r *http.Request, logins []policy.Login) *denial {
	switch {
	case r.Method == http.MethodConnect:
		return deny(http.StatusMethodNotAllowed, "request smuggling: there is a CONNECT inside the connection", highSeverity)
	case !isToken(r.Method):
		return deny(http.StatusBadRequest, "request smuggling: the method is not a token", highSeverity)
	}
	raw, bad := x.confirm(r)
	if bad != nil {
		return bad
	}
	x.path, _, _ = strings.Cut(raw, "?")
	if len(loginsAt(logins, x.path)) == 0 { // else no rule is to be made of it
		x.observe(r)
	}
	if x.target = urlWithBytes(raw, x.scheme(), x.authority()); x.target == nil {
		return deny(http.StatusBadRequest, "the target of the request cannot be passed on as it stands", unflagged)
	}
	return x.ruled(r)
}

func (x *exchange) observe(r *http.Request) {
	x.engine.observe(Observation{Name: x.to.Name, Port: x.to.Port, Kind: x.kind(), Method: r.Method, Path: x.path})
}

// misdirected compares what a head of HTTP/1 says about its destination with
// where the connection goes.
func (h *httpConn) misdirected(req head) *denial {
	var hosts []string
	if req.hosts > 0 {
		hosts = append(hosts, req.host)
	}
	if !strings.HasPrefix(req.target, "/") {
		authority, _ := cutAuthority(req.target)
		hosts = append(hosts, authority)
	}
	return h.elsewhere(hosts)
}

func (h *httpConn) elsewhere(hosts []string) *denial {
	for _, host := range hosts {
		if why := agrees(host, h.to, h.secure); why != "" {
			return deny(http.StatusMisdirectedRequest, "request smuggling: "+why, highSeverity)
		}
	}
	return nil
}

// confirm compares what the request says about its destination with where the
// connection goes, and returns the target without scheme and host.
func (x *exchange) confirm(r *http.Request) (string, *denial) {
	raw := r.RequestURI
	if x.guard != nil { // which compared the host, before net/http did
		if raw = x.guard.current().target; !strings.HasPrefix(raw, "/") {
			_, raw = cutAuthority(raw)
		}
	} else if bad := x.elsewhere(append([]string{r.Host}, r.Header["Host"]...)); bad != nil { // HTTP/2 may have Host as well as :authority
		bad.opts = append(bad.opts, withDetail("host", r.Host))
		return "", bad
	}
	r.Header.Del("Host")
	if !strings.HasPrefix(raw, "/") || strings.IndexFunc(raw, notInTarget) >= 0 {
		return "", deny(http.StatusBadRequest, "request smuggling: the target of the request is not a path", highSeverity)
	}
	return raw, nil
}

// notInTarget reports characters that would end a target, or its line.
func notInTarget(r rune) bool { return r <= ' ' || r == 0x7f || r == '#' }

// cutAuthority splits a target in absolute form.
func cutAuthority(target string) (authority, rest string) {
	rest = target[len("http://"):]
	i := strings.IndexAny(rest, "/?")
	switch {
	case i < 0:
		return rest, "/"
	case rest[i] == '?':
		return rest[:i], "/" + rest[i:]
	}
	return rest[:i], rest[i:]
}

// agrees says why a Host, :authority or the host of a target is not the destination's,
// or "". Case, one final dot and the default port mean nothing; anything else that some
// reader could take for another host is refused.
func agrees(host string, d Destination, secure bool) string {
	name, port := host, ""
	if i := strings.LastIndexByte(host, ':'); i >= 0 && !strings.HasSuffix(host, "]") {
		name, port = host[:i], host[i+1:]
		if n, err := strconv.Atoi(port); err != nil || strconv.Itoa(n) != port || n != d.Port {
			return "the request is for another port"
		}
	} else if d.Port != defaultPort(secure) {
		return "the request is for another port"
	}
	normal, err := normalizeHost(name)
	switch {
	case err != nil:
		return "the host of the request is not one"
	case normal != d.Name:
		return "the request is for another host"
	}
	if a, err := netip.ParseAddr(name); err == nil && a.Is6() {
		return "the host of the request is not one" // IPv6 without brackets: its end could be a port
	}
	return ""
}

func defaultPort(secure bool) int {
	if secure {
		return 443
	}
	return 80
}

func (h *httpConn) scheme() string {
	if h.secure {
		return "https"
	}
	return "http"
}

func (h *httpConn) kind() policy.HostKind {
	if h.secure {
		return policy.TLS
	}
	return policy.HTTP
}

// authority is the host that is sent upstream.
func (h *httpConn) authority() string {
	name := h.to.Name
	if h.to.Port != defaultPort(h.secure) {
		return net.JoinHostPort(name, strconv.Itoa(h.to.Port))
	}
	if strings.Contains(name, ":") {
		return "[" + name + "]"
	}
	return name
}

// urlWithBytes returns a URL that net/http writes as the very bytes of raw; nil if there is
// none.
func urlWithBytes(raw, scheme, host string) *url.URL {
	u := &url.URL{Scheme: scheme, Host: host, Opaque: raw}
	if strings.HasPrefix(raw, "//") { // that would be written in absolute form
		path, query, asked := strings.Cut(raw, "?")
		plain, err := url.PathUnescape(path)
		if err != nil {
			return nil
		}
		u = &url.URL{Scheme: scheme, Host: host, Path: plain, RawPath: path, RawQuery: query, ForceQuery: asked && query == ""}
	}
	if u.RequestURI() != raw {
		return nil
	}
	return u
}

// refuse answers a request that does not pass, and records it.
func (x *exchange) refuse(r *http.Request, d *denial) {
	opts := append([]refusalOption{forRequest(r.Method, printable(x.path))}, d.opts...)
	line := x.engine.refuse(x.to, d.reason, opts...).Line()
	x.answer.refused = true
	writeLine(x.answer, r, d.status, line)
}

// writeLine answers r in one line.
func writeLine(w http.ResponseWriter, r *http.Request, status int, line string) {
	status, kind, body := answerFor(r.Header.Get, status, line)
	h := w.Header()
	clear(h)
	h.Set("Content-Type", kind)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("Cache-Control", "no-store")
	if a, ok := w.(*responseWriter); !ok || !a.streams {
		h.Set("Connection", "close") // what of the request was not read is not read any more
	}
	w.WriteHeader(status)
	io.WriteString(w, body)
}

// pass sends the request upstream and the answer back.
func (x *exchange) pass(r *http.Request) {
	t, err := x.transport(x.permit)
	if err != nil {
		x.failed(x.answer, r, err)
		return
	}
	if !x.http2 {
		// What is sent and answered at the same time must not wait for each other.
		// The error says that the writer cannot, and then it waits.
		http.NewResponseController(x.answer).EnableFullDuplex()
	}
	within, d := x.enter(r)
	if d != nil {
		x.refuse(r, d)
		return
	}
	r = within
	defer x.leave()
	if x.depart(r) != nil {
		panic(http.ErrAbortHandler) // an unrecorded request must not continue
	}
	defer x.report(r, time.Now())
	proxy := &httputil.ReverseProxy{
		Transport:      t,
		Rewrite:        x.rewrite,
		FlushInterval:  -1,
		BufferPool:     copying,
		ErrorLog:       silent,
		ErrorHandler:   x.failed,
		ModifyResponse: x.received,
	}
	proxy.ServeHTTP(x.answer, r)
}

// rewrite gives the request the target that was decided on.
func (x *exchange) rewrite(r *httputil.ProxyRequest) {
	r.Out.URL = x.target
	r.Out.Host = x.authority()
	r.Out.Trailer = r.In.Trailer // filled in when the body ends
	r.Out.Close = hasBody(r.Out) && x.limited()
}

// limited reports whether requests to this host are restricted, or carry different
// secrets: a second request, hidden in the body of the first, would then pass without a
// decision.
func (x *exchange) limited() bool {
	e := x.engine
	return x.permit.narrow() || e.wants(event.KindRequest) || e.wants(event.KindCredential) ||
		e.config.Credentials != nil && x.lends()
}
