package network

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"holdfast.dev/holdfast/internal/floor/event"
)

const (
	// placeholderReach is how much of a body that passed is looked at again with
	// what follows: a placeholder of 200 bytes may be percent-encoded twice.
	placeholderReach = 2 << 10
	signedBody       = 16 << 20 // of a request that is re-signed and whose body must be known for that
	signedBodies     = 16       // of those at once
)

// leak is a placeholder where it is not allowed, or a honeytoken anywhere.
type leak struct {
	credential, where string
	decoy             bool // credential is the kind of a honeytoken
}

func (l *leak) Error() string { return "credential " + l.credential + " " + l.where }

// denyLeak refuses a request that carries a placeholder where it may not, and
// raises the alarm. The event that is lost changes nothing about that.
func (x *exchange) denyLeak(l *leak) *denial {
	object := x.to.String()
	if l.decoy {
		x.engine.decoySent(object, l.credential, l.where, x.to.Door, x.path)
		return deny(http.StatusForbidden, decoyWords(l.credential, l.where), highSeverity)
	}
	if _, ok := x.engine.throttle.record(alarm, event.CredentialAlert, object, l.credential, l.where); ok {
		x.alert(object, l)
	}
	return deny(http.StatusForbidden, fmt.Sprintf("credential %s on its way to %s %s", l.credential, object, l.where), highSeverity, withDetail("credential", l.credential))
}

func (x *exchange) alert(object string, l *leak) {
	x.engine.emit(event.Event{Action: event.CredentialAlert, Object: object, Verdict: event.Denied, Detail: map[string]string{
		"credential": l.credential, "severity": "high", "reason": l.where, "path": printable(x.path), "door": string(x.to.Door),
	}})
}

// carries lists the credentials that a request will carry, or says why it may not pass:
// a placeholder is where its credential may not go. Such a request is refused without
// asking a human.
func (x *exchange) carries(r *http.Request) ([]Binding, *denial) {
	credentials := x.engine.config.Credentials
	if credentials == nil {
		return nil, nil
	}
	bound := x.bindings(r)
	for _, name := range credentials.Detect([]byte(x.target.RequestURI())) {
		return nil, x.denyLeak(&leak{credential: name, where: "in its URL"})
	}
	for _, name := range credentials.Detect(fieldsOf(r.Trailer)) { // announced; their values come later
		return nil, x.denyLeak(&leak{credential: name, where: "in the name of a trailer"})
	}
	var use []Binding
	for header, values := range r.Header {
		// The case of a name is net/http's, whatever the client wrote.
		for _, name := range credentials.Detect([]byte(strings.ToLower(header))) {
			return nil, x.denyLeak(&leak{credential: name, where: "in the name of a header"})
		}
		for _, value := range values {
			for _, name := range detect(credentials, value) {
				b, bad := x.allowed(bound, name, header, values)
				if bad != nil {
					return nil, x.denyLeak(bad)
				}
				use = append(use, b)
			}
		}
	}
	for _, b := range bound {
		if b.Always && pathAllowed(b.Paths, x.path) == nil && !slices.ContainsFunc(use, func(u Binding) bool { return u.Header == b.Header }) {
			use = append(use, b)
		}
	}
	return use, nil
}

// inject replaces placeholders by their secrets.
func (x *exchange) inject(r *http.Request, use []Binding) *denial {
	if x.engine.config.Credentials == nil {
		return nil
	}
	if x.lends() {
		// What comes back is searched for secrets, and so must be readable, also
		// what is asked for before one was lent. The headers may be among those that
		// are signed.
		r.Header.Set("Accept-Encoding", "identity")
		r.Header.Del("Sec-Websocket-Extensions")
	}
	ctx, done, d := x.agree(r, use)
	if d != nil {
		return d
	}
	defer done()
	for _, b := range use {
		if d := x.open(ctx, r, b); d != nil {
			return d
		}
	}
	return nil
}

// detect is Credentials.Detect for the value of a header, also decoded where it
// is Basic.
func detect(c Credentials, value string) []string {
	found := c.Detect([]byte(value))
	if user, password, ok := basic(value); ok {
		found = append(found, c.Detect([]byte(user+":"+password))...)
		slices.Sort(found)
		found = slices.Compact(found)
	}
	return found
}

// bindings are what may be used for this request: what a rule that permits it lends,
// and never for a request in the clear. What is lent for some paths is not sent with a
// request that also names another path.
func (x *exchange) bindings(r *http.Request) []Binding {
	if !x.secure {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(x.engine.config.Credentials.Bound(x.to.Name, x.to.Port)), func(b Binding) bool {
		return !x.permit.MayUseFor(b.Credential, r.Method, x.path) ||
			otherPath(r) != "" && (len(b.Paths) > 0 || !x.permit.AnyPath(r.Method, b.Credential))
	})
}

// allowed returns the binding that permits a placeholder in a header.
func (x *exchange) allowed(bound []Binding, credential, header string, values []string) (Binding, *leak) {
	leakOf := func(where string) *leak { return &leak{credential: credential, where: where} }
	at := slices.IndexFunc(bound, func(b Binding) bool { return b.Credential == credential })
	if at < 0 {
		return Binding{}, leakOf("which is not a host of it")
	}
	b := bound[at]
	where := http.CanonicalHeaderKey(b.Header)
	if b.Sign != "" && where == "" {
		where = "Authorization"
	}
	switch {
	case header != where:
		return b, leakOf("in another header than " + where)
	case len(values) != 1:
		return b, leakOf("in one of two " + where + " headers")
	case pathAllowed(b.Paths, x.path) != nil:
		return b, leakOf("on a path that it is not for")
	case b.Sign == "" && !b.Always && !fits(b, values[0]):
		return b, leakOf("in another form than " + b.Format)
	}
	b.Header = where
	return b, nil
}

func fits(b Binding, value string) bool { return fill(b, value, b.Placeholder) != "" }

// fill returns the value of a header with the placeholder replaced by the secret, or ""
// if the value does not have the form of the binding.
func fill(b Binding, value, secret string) string {
	if user, password, ok := basic(value); ok && http.CanonicalHeaderKey(b.Header) == "Authorization" {
		switch {
		case password == b.Placeholder && !strings.Contains(user, b.Placeholder):
			password = secret
		case user == b.Placeholder && !strings.Contains(password, b.Placeholder):
			user = secret
		default:
			return ""
		}
		return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
	}
	before, after, _ := strings.Cut(b.Format, "{}")
	// What is called Bearer in one place is called token in another, such as gh.
	if _, rest, ok := strings.Cut(value, " "); ok && before == "Bearer " {
		value = before + rest
	}
	if len(value) < len(before) || !strings.EqualFold(value[:len(before)], before) || value[len(before):] != b.Placeholder+after {
		return ""
	}
	return before + secret + after
}

// basic reads the credentials of Basic authentication (RFC 7617).
func basic(value string) (user, password string, ok bool) {
	r := http.Request{Header: http.Header{"Authorization": {value}}}
	return r.BasicAuth()
}

// open takes the secret of a binding and puts it into the request.
func (x *exchange) open(ctx context.Context, r *http.Request, b Binding) *denial {
	secret, err := x.engine.config.Credentials.Open(ctx, b.Credential, x.use(r))
	if err != nil {
		return denyWithheld(b, err)
	}
	x.engine.web.hasOpened(x.to)
	x.lent = append(x.lent, b.Credential)
	if b.Sign != "" {
		return x.sign(r, b, secret)
	}
	if strings.ContainsAny(secret.Value, "\r\n\x00") || secret.Value == "" {
		return deny(http.StatusForbidden, "credential "+b.Credential+": its secret cannot be sent in a header", unflagged)
	}
	value := ""
	if old := r.Header[b.Header]; len(old) == 1 {
		value = fill(b, old[0], secret.Value)
	}
	if value == "" {
		value = strings.Replace(b.Format, "{}", secret.Value, 1)
	}
	r.Header[b.Header] = []string{value}
	return nil
}

func (x *exchange) use(r *http.Request) Use {
	return Use{Name: x.to.Name, Port: x.to.Port, Method: r.Method, Path: printable(x.path)}
}

// denyWithheld refuses a request whose secret is not given out. A login that has ended
// is what its provider would say: programs retry what is forbidden, and not that.
func denyWithheld(b Binding, err error) *denial {
	about, status := "credential "+b.Credential+": ", http.StatusForbidden
	var ended interface{ LoginEnded() bool }
	if errors.As(err, &ended) && ended.LoginEnded() {
		status = http.StatusUnauthorized
	}
	return deny(status, about+strings.TrimPrefix(err.Error(), about), unflagged)
}

// sign signs the request afresh.
func (x *exchange) sign(r *http.Request, b Binding, secret Secret) *denial {
	r.Host = x.authority()
	if x.body != nil && v4NeedsBody(r) {
		if !x.engine.signing.acquire(r.Context()) {
			return deny(http.StatusServiceUnavailable, "too many requests are being signed", unflagged)
		}
		x.signs = true
	}
	err := resignV4(r, b.Placeholder, secret, signedBody)
	if x.body != nil {
		if found := x.body.leak.Load(); found != nil {
			return x.denyLeak(found)
		}
	}
	if err != nil {
		return deny(http.StatusForbidden, "credential "+b.Credential+": "+err.Error(), unflagged)
	}
	return nil
}

// search looks for placeholders and honeytokens in the next bytes of a body, before
// they are sent, together with the last bytes sent. A body may contain neither, because
// its receiver may publish it.
func (s *requestBody) search(p []byte, end bool) *leak {
	if c := s.exchange.engine.config; c.Credentials == nil && c.Decoys == nil {
		return nil
	}
	seam := append(s.before, p[:min(len(p), placeholderReach)]...)
	found := s.leakIn(seam)
	if found == nil && len(p) > placeholderReach {
		found = s.leakIn(p)
		seam = append(seam[:0], p...)
	}
	s.before = append(s.before[:0], seam[max(0, len(seam)-placeholderReach):]...)
	if end && found == nil {
		found = s.leakIn(fieldsOf(s.request.Trailer))
	}
	return found
}

// fieldsOf are the names and values of a header or of trailers, a line each. The
// capitals of a name are net/http's, whatever the client wrote.
func fieldsOf(h http.Header) []byte {
	var text bytes.Buffer
	for name, values := range h {
		text.WriteString("\n" + strings.ToLower(name))
		for _, v := range values {
			text.WriteString("\n" + v)
		}
	}
	return text.Bytes()
}

// leakIn describes forbidden content in a piece of a body; nil for none.
func (s *requestBody) leakIn(p []byte) *leak {
	const where = "in its body"
	e := s.exchange.engine
	if kind := e.decoyIn(p); kind != "" {
		return &leak{kind, where, true}
	}
	if e.config.Credentials != nil {
		if found := e.config.Credentials.Detect(p); len(found) > 0 {
			return &leak{credential: found[0], where: where}
		}
	}
	return nil
}

// lends reports whether secrets go to this host, or went there, at any port: a service
// at one port may reveal what another received.
func (h *httpConn) lends() bool {
	e := h.engine
	if e.web.hasSecrets(h.to.Name) || len(e.config.Credentials.Bound(h.to.Name, h.to.Port)) > 0 {
		return true
	}
	for c := range e.rules.Load().matching(h.to.Name) {
		if len(c.Credentials) > 0 {
			return true
		}
	}
	return false
}

// hasOpened remembers that a secret goes to d; hasSecrets reports whether one did.
func (w *web) hasOpened(d Destination) {
	w.lent.Add(1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.opened == nil {
		w.opened = map[string]bool{}
	}
	w.opened[d.Name] = true
}

func (w *web) hasSecrets(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.opened[name]
}
