package network

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"

	"holdfast.dev/holdfast/internal/floor/event"
)

// Decoys know the values of honeytokens. They can exist without Credentials.
type Decoys interface {
	// Detect names the kinds of honeytokens that have a value in b, in any of the forms
	// in which it could be sent.
	Detect(b []byte) []string
}

// decoyIn names a honeytoken in a text; "" for none.
func (e *Engine) decoyIn(text []byte) string {
	if e.config.Decoys == nil || len(text) == 0 {
		return ""
	}
	if kinds := e.config.Decoys.Detect(text); len(kinds) > 0 {
		return strings.Join(kinds, ",")
	}
	return ""
}

// decoySent raises the alarm about a honeytoken on its way out. What it was in
// does not pass; an event that is lost changes nothing about that.
func (e *Engine) decoySent(object, kind, where string, door Door, path string) {
	if _, ok := e.throttle.record(alarm, event.HoneySent, object, kind, where); !ok {
		return
	}
	detail := map[string]string{"severity": "critical", "kind": kind, "where": where}
	if door != "" {
		detail["door"] = string(door)
	}
	if path != "" {
		detail["path"] = printable(path)
	}
	e.emit(event.Event{Action: event.HoneySent, Object: object, Verdict: event.Denied, Layer: event.LayerEgress, Detail: detail})
}

// refuseDecoy raises the alarm about a honeytoken that was on its way to d, and
// refuses what it was in.
func (e *Engine) refuseDecoy(d Destination, kind, where string, opts ...refusalOption) Refusal {
	object := d.String()
	if d.Port == 0 {
		object = printable(d.Name)
	}
	e.decoySent(object, kind, where, d.Door, "")
	return e.refuse(d, decoyWords(kind, where), append(opts, highSeverity)...)
}

// decoyWords is why something that carries a honeytoken is refused. The sending program
// reads it too, so it does not reveal that the credential is a honeytoken.
func decoyWords(kind, where string) string {
	return "a credential (" + kind + ") that may not leave is " + where
}

// decoyInHead refuses a request with a honeytoken in its line or head, whatever else
// is decided about it.
func (x *exchange) decoyInHead(r *http.Request) *denial {
	if x.engine.config.Decoys == nil {
		return nil
	}
	var head bytes.Buffer
	head.WriteString(r.Method + "\n" + r.RequestURI + "\n" + r.Host)
	head.Write(fieldsOf(r.Header))
	head.Write(fieldsOf(r.Trailer)) // announced; their values come later
	kind := x.engine.decoyIn(head.Bytes())
	if kind == "" {
		return nil
	}
	where := "in its head"
	if x.engine.decoyIn([]byte(r.RequestURI)) != "" {
		where = "in its URL"
	}
	return x.denyLeak(&leak{kind, where, true})
}

// unwanted returns the body of a request as it is read when it is no longer needed: a
// honeytoken in it was still on its way out.
func (x *exchange) unwanted(r *http.Request, body io.ReadCloser) io.Reader {
	if x.engine.config.Decoys == nil || body == nil {
		return body
	}
	return &unreadBody{requestBody{ReadCloser: body, exchange: x, request: r}}
}

type unreadBody struct{ requestBody }

func (b *unreadBody) Read(p []byte) (int, error) {
	n, err := b.requestBody.Read(p)
	if found := b.leak.Load(); found != nil && found.decoy {
		b.exchange.denyLeak(found)
	}
	return n, err
}

// bufferedBytes returns the bytes that were already read from a connection and must be
// sent again.
func bufferedBytes(c net.Conn) []byte {
	if r, ok := c.(*prefixConn); ok {
		return r.head
	}
	return nil
}

// inspectBytes is how much of the client's data is searched in a connection whose
// protocol is not understood. After that the kernel moves the bytes.
const inspectBytes = spliceAfter

// errDecoy is why a connection is cut.
var errDecoy = errors.New("it carried a credential that may not leave")

// inspector searches the first bytes of a connection before they are sent. The zero
// value, and nil, look at nothing.
type inspector struct {
	engine *Engine
	to     Destination
	seen   int
	before []byte // the last bytes that passed, as far as a value may reach
}

// inspect makes the inspector of a connection; nil where there is nothing to look for.
func (e *Engine) inspect(d Destination) *inspector {
	if e.config.Decoys == nil {
		return nil
	}
	return &inspector{engine: e, to: d}
}

// over reports that enough was seen.
func (l *inspector) over() bool { return l == nil || l.seen >= inspectBytes }

// pass reports whether p may be sent.
func (l *inspector) pass(p []byte) error {
	if l.over() {
		return nil
	}
	l.seen += len(p)
	text := append(l.before, p...)
	if kind := l.engine.decoyIn(text); kind != "" {
		l.engine.refuseDecoy(l.to, kind, "in what it sent")
		return errDecoy
	}
	l.before = append(l.before[:0], text[max(0, len(text)-placeholderReach):]...)
	if l.over() {
		l.before = nil
	}
	return nil
}

// through is dst as long as there is something to look at.
func (l *inspector) through(dst io.Writer) io.Writer {
	if l.over() {
		return dst
	}
	return &inspectedWriter{dst, l}
}

type inspectedWriter struct {
	io.Writer
	inspector *inspector
}

func (w *inspectedWriter) Write(p []byte) (int, error) {
	if err := w.inspector.pass(p); err != nil {
		return 0, err
	}
	return w.Writer.Write(p)
}

// decoyInQuery reports whether a name query contains a honeytoken, also if it is
// malformed or the honeytoken is split over labels.
func (e *Engine) decoyInQuery(query []byte) bool {
	if e.config.Decoys == nil {
		return false
	}
	labels := wireLabels(query)
	text := bytes.Join([][]byte{query, bytes.Join(labels, nil)}, []byte("\n"))
	kind := e.decoyIn(text)
	if kind == "" {
		kind = e.decoyIn(bytes.ToLower(text)) // resolvers mix capitals in, at random
	}
	if kind == "" {
		return false
	}
	e.refuseDecoy(Destination{Name: string(bytes.Join(labels, []byte("."))), Door: nameDoor}, kind, "in a name query", asQuery)
	return true
}

// wireLabels are the labels of the first name of a query, as far as they can be
// read (RFC 1035, 4.1.2).
func wireLabels(query []byte) (labels [][]byte) {
	for at := 12; at < len(query) && query[at] > 0 && query[at] < 64 && at+1+int(query[at]) <= len(query); {
		n := int(query[at])
		labels = append(labels, query[at+1:at+1+n])
		at += 1 + n
	}
	return labels
}
