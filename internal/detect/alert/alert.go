package alert

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"holdfast.dev/holdfast/internal/detect"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/record/audit"
)

// Options say where alerts go.
type Options struct {
	Sinks    []policy.AlertSink
	Terminal func(line string)            // for sinks of kind terminal, from one goroutine; the line has no control characters and no end
	Failed   func(sink string, err error) // the first failure of each sink, on a goroutine of its own; may be nil
	Grace    time.Duration                // how long Close waits for deliveries in progress; 0 is 5 s
	Host     string                       // name of this machine; "" when it is not known
	Version  string                       // of Holdfast
	NoBound  bool                         // no limit of alerts that wait for a sink: for those of a record, which has a limit
}

// timing is how long to wait after a sink failed.
type timing struct {
	first time.Duration // after the first failure; doubled after each further one
	most  time.Duration
}

var retryTiming = timing{first: 500 * time.Millisecond, most: time.Minute}

// closeMargin is how long after its deadline Close waits for a sink that does not
// return.
const closeMargin = time.Second

// Dispatcher sends alerts to sinks. It can be used by several goroutines at once.
type Dispatcher struct {
	queues []*sinkQueue
	grace  time.Duration

	once   sync.Once
	missed []*Undelivered
	cancel context.CancelFunc
}

// Open prepares the sinks. It uses no network itself. An error means that a sink
// could never work as configured: one of its files cannot be read or written.
func Open(o Options) (*Dispatcher, error) { return open(o, retryTiming) }

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
			err = fmt.Errorf("%q is not a severity", s.Severity)
		}
		if err != nil {
			cancel()
			return nil, fmt.Errorf("preparing the sink %s: %w", name(s), err)
		}
		d.queues = append(d.queues, &sinkQueue{
			name: name(s), recorded: s.Kind != Terminal, noBound: o.NoBound, least: level, timeout: s.Timeout, sink: sink, timing: t, failed: o.Failed,
			wake: make(chan struct{}, 1), end: make(chan struct{}),
		})
	}
	for _, out := range d.queues {
		go out.deliver(ctx)
	}
	return d, nil
}

// Terminal is the kind of sink for a person to look at.
const Terminal = "terminal"

func newSink(s policy.AlertSink, o Options) (sink, error) {
	switch s.Kind {
	case Terminal:
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

// name is a sink in messages: what follows the host of a URL is left out,
// because it may be what protects a webhook.
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
// any of them.
func (d *Dispatcher) Raise(a detect.Alert) { d.raise(a, func(string) bool { return true }) }

// raise hands an alert to those sinks that take its severity and are wanted.
func (d *Dispatcher) raise(a detect.Alert, wanted func(sink string) bool) {
	var body []byte
	for _, out := range d.queues {
		if a.Severity.Level() < out.least || !wanted(out.name) {
			continue
		}
		if body == nil {
			body = document(a).encode()
		}
		out.add(&item{n: a.N, body: body, level: a.Severity.Level()})
	}
}

// Close waits, at most for the grace, until what was raised is delivered, and
// returns what was not. It may be called more than once.
func (d *Dispatcher) Close() []*Undelivered {
	d.once.Do(func() {
		deadline := time.Now().Add(d.grace)
		for _, out := range d.queues {
			out.close()
		}
		after := time.AfterFunc(time.Until(deadline), d.cancel)
		for _, out := range d.queues {
			if u := out.finish(deadline); u != nil {
				d.missed = append(d.missed, u)
			}
		}
		after.Stop()
		d.cancel()
	})
	return d.missed
}

// Undelivered says what did not reach a sink.
type Undelivered struct {
	Sink     string   // kind and host
	Alerts   []uint64 // which: N of each
	Recorded bool     // Detail has them
	Err      error    // the last failure; nil if there was only no time
}

func (u *Undelivered) Error() string {
	text := fmt.Sprintf("sending alerts to %s: %d not delivered", u.Sink, len(u.Alerts))
	if u.Err != nil {
		text += ": " + u.Err.Error()
	}
	return text
}

func (u *Undelivered) Unwrap() error { return u.Err }

// undelivered begins the keys of session.end that say which alerts a sink did not
// get.
const undelivered = "undelivered."

// Detail returns what session.end says of alerts that were not delivered: for each
// sink its name and the numbers of the alerts. What was shown on a terminal, or
// was not, is left out.
func Detail(all []*Undelivered) map[string]string {
	detail := map[string]string{}
	for _, u := range all {
		if u.Recorded {
			detail[undelivered+strconv.Itoa(len(detail)+1)] = u.Sink + " " + audit.Numbers(u.Alerts)
		}
	}
	return detail
}

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

// retryLater is an answer that says when to try again.
type retryLater struct {
	cause error
	after time.Duration
}

func (b *retryLater) Error() string { return b.cause.Error() }
func (b *retryLater) Unwrap() error { return b.cause }
