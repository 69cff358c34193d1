package export

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"

	"holdfast.dev/holdfast/internal/floor/event"
)

// A request is written when it has this many records or bytes, whichever comes first.
const (
	requestRecords = 512
	requestBytes   = 1 << 20
)

// otlp writes requests of the OpenTelemetry protocol in its JSON encoding, one
// per line: what a collector accepts at /v1/logs, and reads from files. A
// request has the records of one session, which is its resource.
type otlp struct {
	w       io.Writer
	options Options
	err     error // the first that happened

	known   programs
	request Request
}

func newOTLP(w io.Writer, o Options) Writer { return &otlp{w: w, options: o} }

func (x *otlp) Write(e event.Event) error { return x.WriteRecord(e, nil) }

func (x *otlp) WriteRecord(e event.Event, line []byte) error {
	if x.err == nil && x.request.records > 0 && (e.Session != x.known.session || x.request.records == requestRecords || len(x.request.buf) > requestBytes) {
		x.flush()
	}
	if x.err != nil {
		return x.err
	}
	x.known.remember(e)
	if x.request.records == 0 {
		x.request.begin(Options{Host: cmp.Or(x.known.host, x.options.Host), Version: x.options.Version}, e.Session)
	}
	x.record(e, line)
	return nil
}

func (x *otlp) Close() error {
	if x.err == nil && x.request.records > 0 {
		x.flush()
	}
	return x.err
}

func (x *otlp) flush() {
	if _, err := x.w.Write(append(x.request.end(), '\n')); err != nil {
		x.err = fmt.Errorf("writing events as OTLP: %w", err)
	}
}

// record appends one log record.
func (x *otlp) record(e event.Event, line []byte) {
	s := severityOf(actionOf(e), e)
	r := x.request.Record(e.Time, severities[s].word, "holdfast."+e.Action, message(e))
	r.Text("log.record.uid", UID(e))
	if e.Seq > 0 {
		r.Number("holdfast.seq", int64(e.Seq))
	}
	if e.N > 0 {
		r.Number("holdfast.n", int64(e.N))
	}
	r.Text("holdfast.sensor", string(e.Sensor))
	r.Text("holdfast.action", e.Action)
	r.Text("holdfast.verdict", e.Verdict.String())
	r.Text("holdfast.object", e.Object)
	r.Text("holdfast.layer", e.Layer)
	r.Text("holdfast.rule", e.Rule)
	r.Text("error.type", e.Error)
	r.Text("holdfast.record.sha256", sum(line))
	x.subject(r, e)
	x.process(r, e.Process)
	for _, key := range sortedKeys(e.Detail) {
		detailAttribute(r, e.Action, key, e.Detail[key])
	}
	r.End()
}

// subject names the object as OpenTelemetry does.
func (x *otlp) subject(r *Record, e event.Event) {
	family, _, _ := strings.Cut(e.Action, ".")
	switch {
	case family == "file" || e.Action == event.HoneyRead:
		p := cmp.Or(e.Resolved, e.Object)
		r.Text("file.path", p)
		if p != "" {
			r.Text("file.name", path.Base(p))
		}
	case e.Action == event.NetQuery:
		r.Text("dns.question.name", e.Object)
		r.Text("holdfast.resolved", e.Resolved)
	case strings.HasPrefix(e.Object, "unix:"):
		r.Text("server.address", strings.TrimPrefix(e.Object, "unix:"))
		r.Text("network.transport", "unix")
		r.Text("holdfast.resolved", e.Resolved)
	case family == "net" || family == "sock" || family == "credential" || e.Action == event.HoneySent:
		host, port := hostPort(e.Object)
		r.Text("server.address", host)
		if port > 0 {
			r.Number("server.port", port)
		}
		r.Text("holdfast.resolved", e.Resolved)
	default:
		r.Text("holdfast.resolved", e.Resolved)
	}
}

func (x *otlp) process(r *Record, q event.Process) {
	if q.PID != 0 {
		r.Number("process.pid", int64(q.PID))
	}
	if q.Exec != 0 {
		r.Number("holdfast.process.exec", int64(q.Exec))
	}
	if q.Parent != 0 {
		r.Number("process.parent_pid", int64(q.Parent))
	}
	if q.ParentExec != 0 {
		r.Number("holdfast.process.parent_exec", int64(q.ParentExec))
	}
	if exe := x.known.executable(q); exe != "" && (q.PID != 0 || q.Exec != 0) {
		r.Text("process.executable.path", exe)
		r.Text("process.executable.name", path.Base(exe))
	}
	r.Text("holdfast.process.executable.sha256", q.SHA256)
	r.Text("process.working_directory", q.Cwd)
	if len(q.Argv) > 0 {
		r.Texts("process.command_args", q.Argv)
	}
}

func detailAttribute(r *Record, action, key, value string) {
	name := "holdfast.detail." + safeKey(key)
	d := detailOf(action, key)
	if d != nil && d.otel == "severityNumber" {
		return
	}
	if d != nil && d.otel != "" {
		name = d.otel
	}
	if n, err := strconv.ParseInt(value, 10, 64); d != nil && d.whole && err == nil {
		r.Number(name, n)
		return
	}
	r.Text(name, value)
}
