// Package alert carries alerts to where somebody looks: a terminal, a file, a
// webhook, syslog or an OpenTelemetry collector. A run never waits for any of
// them. What cannot be delivered is kept on disk for the next run, and what is
// lost is said at the end; every alert stands in the record besides.
package alert

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"holdfast.dev/holdfast/internal/detect"
	"holdfast.dev/holdfast/internal/policy"
)

// Options say where alerts go.
type Options struct {
	Sinks    []policy.AlertSink
	Spool    string                       // directory for what could not be delivered; "" keeps nothing beyond the run
	Terminal func(line string)            // for sinks of kind terminal, from one goroutine; the line has no control characters and no end
	Failed   func(sink string, err error) // the first failure of each sink, on a goroutine of its own; may be nil
	Grace    time.Duration                // how long Close waits for what is under way; 0 is 5 s
	Host     string                       // name of this machine; "" when it is not known
	Version  string                       // of Holdfast
}

// timing is how long a sink that failed is left alone.
type timing struct {
	first time.Duration // after the first failure; doubled after each further one
	most  time.Duration
	old   time.Duration // that Close waits for alerts of earlier runs
}

var patience = timing{first: 500 * time.Millisecond, most: time.Minute, old: time.Second}

// Dispatcher sends alerts to sinks. It can be used by several goroutines at once.
type Dispatcher struct {
	outlets []*outlet
	count   atomic.Uint64
	grace   time.Duration

	once   sync.Once
	errs   []error
	cancel context.CancelFunc
}

// Open prepares the sinks and begins to send what earlier runs left behind. It
// uses no network itself. An error means that a sink could never work as it is
// configured: a file of it cannot be read or written.
func Open(o Options) (*Dispatcher, error) { return open(o, patience) }

func open(o Options, t timing) (*Dispatcher, error) {
	if o.Grace == 0 {
		o.Grace = 5 * time.Second
	}
	ctx, cancel := context.WithCancel(context.Background())
	d := &Dispatcher{grace: o.Grace, cancel: cancel}
	for _, s := range o.Sinks {
		level := detect.Severity(s.Severity).Level()
		if s.Severity == "" {
			level = detect.Low.Level()
		}
		sink, err := newSink(s, o)
		if err == nil && level == 0 {
			err = fmt.Errorf("%q is no severity", s.Severity)
		}
		if err != nil {
			cancel()
			return nil, fmt.Errorf("preparing the sink %s: %w", name(s), err)
		}
		out := &outlet{
			name: name(s), least: level, timeout: s.Timeout, sink: sink, timing: t, failed: o.Failed,
			wake: make(chan struct{}, 1), unkept: make(chan struct{}, 1), end: make(chan struct{}),
		}
		if s.Kind != "terminal" && s.Kind != "file" && o.Spool != "" {
			out.spool = newSpool(o.Spool, s)
		}
		d.outlets = append(d.outlets, out)
	}
	for _, out := range d.outlets {
		out.start(ctx)
	}
	return d, nil
}

func newSink(s policy.AlertSink, o Options) (sink, error) {
	switch s.Kind {
	case "terminal":
		if o.Terminal == nil {
			return nil, fmt.Errorf("there is no terminal here")
		}
		return &terminal{show: o.Terminal}, nil
	case "file":
		return newFile(s.Address)
	case "webhook":
		return newWebhook(s, o)
	case "syslog":
		return newSyslog(s, o)
	case "otlp":
		return newCollector(s, o)
	}
	return nil, fmt.Errorf("there is no such kind of sink")
}

// name is a sink in messages: what follows the host of a URL is left out, for it
// is what keeps others from using a webhook.
func name(s policy.AlertSink) string {
	address := s.Address
	if scheme, rest, ok := strings.Cut(address, "://"); ok && scheme != "unix" {
		rest, _, _ = strings.Cut(rest, "/")
		rest, _, _ = strings.Cut(rest, "?")
		address = scheme + "://" + rest[strings.LastIndex(rest, "@")+1:]
	}
	return strings.TrimSpace(s.Kind + " " + escape(address, 200))
}

// Raise hands an alert to the sinks that take its severity. It never waits for
// any of them, nor for a disk.
func (d *Dispatcher) Raise(a detect.Alert) {
	doc := document(a, d.count.Add(1))
	var body []byte
	for _, out := range d.outlets {
		if a.Severity.Level() < out.least {
			continue
		}
		if body == nil {
			body = doc.encode()
		}
		out.add(&item{id: doc.ID, body: body, level: a.Severity.Level(), fresh: true})
	}
}

// Close waits, for the grace at most, until what was raised is delivered, and
// ends. Each error is an *Undelivered. It may be called more than once.
func (d *Dispatcher) Close() []error {
	d.once.Do(func() {
		deadline := time.Now().Add(d.grace)
		for _, out := range d.outlets {
			out.close(deadline)
		}
		after := time.AfterFunc(time.Until(deadline), d.cancel)
		for _, out := range d.outlets {
			if err := out.finish(deadline); err != nil {
				d.errs = append(d.errs, err)
			}
		}
		after.Stop()
		d.cancel()
	})
	return d.errs
}

// Undelivered says what did not reach a sink.
type Undelivered struct {
	Sink  string   // kind and host
	Kept  int      // of this run, in the spool: the next run sends them
	Lost  int      // of this run, gone but for the record
	Old   int      // of earlier runs, still in the spool
	Aged  int      // of earlier runs, given up: too old or too many
	First []string // ids of the first of Kept and Lost, at most 16
	Err   error    // the last failure; nil where there was none, only no time
}

func (u *Undelivered) Error() string {
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{
		{u.Kept, "kept for the next run"}, {u.Lost, "lost"}, {u.Old, "of earlier runs still waiting"}, {u.Aged, "of earlier runs given up"},
	} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	text := "sending alerts to " + u.Sink + ": " + strings.Join(parts, ", ")
	if u.Err != nil {
		text += ": " + u.Err.Error()
	}
	return text
}

func (u *Undelivered) Unwrap() error { return u.Err }

// sink is one place that alerts go to. It is for one goroutine.
type sink interface {
	// send delivers one alert. A *refusal is final; after any other error it is
	// tried again.
	send(ctx context.Context, body []byte) error
}

// refusal is an answer that would be the same for the same alert again.
type refusal struct{ cause error }

func (r *refusal) Error() string { return r.cause.Error() }
func (r *refusal) Unwrap() error { return r.cause }

// busy is an answer that says when to try again.
type busy struct {
	cause error
	after time.Duration
}

func (b *busy) Error() string { return b.cause.Error() }
func (b *busy) Unwrap() error { return b.cause }
