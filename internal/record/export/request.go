package export

import (
	"encoding/base64"
	"maps"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

// Request is an ExportLogsServiceRequest of the OpenTelemetry protocol under
// construction, in its JSON encoding: names in lowerCamelCase, integers of 64
// bits as decimal strings, enumerations as numbers, bytes as base64.
type Request struct {
	buf     []byte
	records int
	record  Record
}

// NewRequest begins a request whose records are of one session.
func NewRequest(o Options, session string) *Request {
	r := &Request{}
	r.begin(o, session)
	return r
}

func (q *Request) begin(o Options, session string) {
	q.records = 0
	q.buf = append(q.buf[:0], `{"resourceLogs":[{"resource":{"attributes":[`...)
	resource := Record{q: q}
	resource.Text("service.name", "holdfast")
	resource.Text("service.version", o.Version)
	resource.Text("service.instance.id", session)
	resource.Text("host.name", o.Host)
	resource.Text("os.type", "linux")
	q.buf = append(q.buf, `]},"scopeLogs":[{"scope":{"name":"holdfast"`...)
	if o.Version != "" {
		q.buf = appendString(append(q.buf, `,"version":`...), o.Version)
	}
	q.buf = append(q.buf, `},"logRecords":[`...)
}

// Bytes ends the request. It must not be used afterwards.
func (q *Request) Bytes() []byte { return q.end() }

func (q *Request) end() []byte {
	q.records = 0
	q.buf = append(q.buf, `]}]}]}`...)
	return q.buf
}

// Record begins a log record; its attributes follow, then End. severity is a word
// of Holdfast's, from info to critical.
func (q *Request) Record(t time.Time, severity, name, body string) *Record {
	if q.records > 0 {
		q.buf = append(q.buf, ',')
	}
	q.records++
	s := severities[informational]
	for _, one := range severities {
		if one.word == severity {
			s = one
		}
	}
	stamp := "0" // not known
	if n := t.UnixNano(); t.Unix() > 0 && n > 0 {
		stamp = strconv.FormatInt(n, 10)
	}
	q.buf = append(q.buf, `{"timeUnixNano":"`+stamp+`","observedTimeUnixNano":"`+stamp+`","severityNumber":`...)
	q.buf = append(strconv.AppendInt(q.buf, s.number, 10), `,"severityText":"`+s.text+`","eventName":`...)
	q.buf = append(appendString(q.buf, name), `,"body":{"stringValue":`...)
	q.buf = append(appendString(q.buf, body), `},"attributes":[`...)
	q.record = Record{q: q}
	return &q.record
}

// Record takes the attributes of a log record.
type Record struct {
	q    *Request
	some bool
}

func (r *Record) key(name string) {
	if r.some {
		r.q.buf = append(r.q.buf, ',')
	}
	r.some = true
	r.q.buf = append(appendString(append(r.q.buf, `{"key":`...), name), `,"value":`...)
}

// Text sets an attribute; an empty one is left out. If a text is not UTF-8, its
// bytes are in a second attribute, under the name with .bytes.
func (r *Record) Text(name, value string) {
	if value == "" {
		return
	}
	r.key(name)
	r.q.buf = append(appendString(append(r.q.buf, `{"stringValue":`...), value), `}}`...)
	if !utf8.ValidString(value) {
		r.bytes(name, value)
	}
}

func (r *Record) bytes(name, value string) {
	r.key(name + ".bytes")
	r.q.buf = append(r.q.buf, `{"bytesValue":"`...)
	r.q.buf = append(base64.StdEncoding.AppendEncode(r.q.buf, []byte(value)), `"}}`...)
}

// Number sets an attribute that is a whole number.
func (r *Record) Number(name string, value int64) {
	r.key(name)
	r.q.buf = append(strconv.AppendInt(append(r.q.buf, `{"intValue":"`...), value, 10), `"}}`...)
}

// Texts sets an attribute that is a list.
func (r *Record) Texts(name string, values []string) {
	r.key(name)
	r.q.buf = append(r.q.buf, `{"arrayValue":{"values":[`...)
	for i, v := range values {
		if i > 0 {
			r.q.buf = append(r.q.buf, ',')
		}
		r.q.buf = append(appendString(append(r.q.buf, `{"stringValue":`...), v), '}')
	}
	r.q.buf = append(r.q.buf, `]}}}`...)
	for i, v := range values {
		if !utf8.ValidString(v) {
			r.bytes(name+"."+strconv.Itoa(i), v)
		}
	}
}

// End ends the record.
func (r *Record) End() { r.q.buf = append(r.q.buf, `]}`...) }

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
