//go:build linux

package bus

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	"holdfast.dev/holdfast/internal/detect"
	"holdfast.dev/holdfast/internal/detect/alert"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/redact"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/record/audit"
	"holdfast.dev/holdfast/internal/record/story"
)

// Config is what a bus needs.
type Config struct {
	Session string
	Log     string            // directory of the records; "" for no record and no detection, in tests
	Keys    string            // directory of the keys that sign them
	State   string            // directory of Holdfast's state
	Version string            // of Holdfast, for alerts
	Build   string            // of Holdfast, release and commit, for the record; "" for none
	Notify  func(line string) // gets alerts, a line each; may be nil
	Plan    policy.Plan
}

// Bus carries the events of a run to the log and to detection, which sends
// alerts. Its methods may be called from several goroutines at once.
type Bus struct {
	session string
	log     *audit.Log // nil when no record is kept: in tests alone
	secrets *redact.Redactor
	alarm   *alarm // nil with log
	ended   bool
	unsent  bool // set by Close: a sink did not get an alert

	mu      sync.Mutex // guards what follows
	sensors map[event.Sensor]*Sensor
	lacks   Lack
	broken  error
	drops   *story.Drops        // what will be lost with the private home
	refused story.FileRefusals  // files
	kill    func(reason string) // nil until something runs
}

// Sensor takes the events of one sensor: it numbers them before anything can lose them.
type Sensor struct {
	bus  *Bus
	name event.Sensor

	mu    sync.Mutex // held while an event is being written, so that the log has them in order
	n     uint64
	quiet bool // nothing is recorded yet
}

// Warm prepares what signs the record.
func Warm() { audit.Warm() }

// Open begins the record of a session, and detection. Nothing runs without it.
func Open(c Config) (*Bus, error) {
	place := detect.Place{Home: c.Plan.Identity.Home, Workspace: c.Plan.Workspace}
	b := &Bus{session: c.Session, secrets: redact.New(), sensors: map[event.Sensor]*Sensor{}, drops: story.NewDrops(place)}
	if c.Log == "" {
		return b, nil
	}
	var err error
	if b.alarm, err = newAlarm(c, b); err != nil {
		return nil, err
	}
	anchors, err := anchors(c.Plan.Record.Anchor)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("preparing the anchor of the log: %w", err), b.Close())
	}
	detail := map[string]string{"level": string(c.Plan.Record.Level)}
	if c.Build != "" {
		detail["build"] = c.Build
	}
	b.log, err = audit.Create(c.Log, audit.Options{
		Session: c.Session, Keys: c.Keys, Anchors: anchors, Failed: b.Fail, Noted: b.dispatch, Detail: detail,
	})
	if err != nil {
		return nil, errors.Join(&policy.StateError{Dir: c.State, Err: err}, b.Close())
	}
	return b, nil
}

// Session is the name of the run's session.
func (b *Bus) Session() string { return b.session }

// Secrets masks what must not be written; what it learns is masked from then on.
func (b *Bus) Secrets() *redact.Redactor { return b.secrets }

// Recording reports whether a record is kept.
func (b *Bus) Recording() bool { return b.log != nil }

// Ended reports whether End was called.
func (b *Bus) Ended() bool { return b.ended }

// Sensor returns where the events of one sensor go.
func (b *Bus) Sensor(name event.Sensor) *Sensor {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.sensors[name]
	if s == nil {
		s = &Sensor{bus: b, name: name}
		b.sensors[name] = s
	}
	return s
}

// Emit returns when the event is in the log.
func (s *Sensor) Emit(e event.Event) error {
	_, err := s.writeEvent(e, (*audit.Log).Put)
	return err
}

// Observe returns before the event is written.
func (s *Sensor) Observe(e event.Event) error {
	_, err := s.writeEvent(e, (*audit.Log).PutLater)
	return err
}

// writeEvent numbers an event, writes it, and passes it to detection. It returns the
// number, even if the event could not be written.
func (s *Sensor) writeEvent(e event.Event, write func(*audit.Log, event.Event) (uint64, error)) (uint64, error) {
	r := s.bus
	if r.log == nil {
		return 0, nil
	}
	s.mu.Lock()
	if s.quiet {
		s.mu.Unlock()
		return 0, nil
	}
	s.n++
	e.N, e.Sensor, e.Session, e.Time = s.n, s.name, r.session, time.Now()
	e = r.secrets.Event(e)
	if e.Verdict == event.Denied && e.Layer == "" {
		e.Layer = layers[s.name]
	}
	var err error
	e.Seq, err = write(r.log, e)
	s.mu.Unlock()
	if err != nil {
		r.Fail(err)
		return e.N, err
	}
	if s.name == event.Syscall {
		r.mu.Lock()
		r.drops.Add(&e)
		r.mu.Unlock()
	}
	if e.Verdict == event.Denied {
		r.mu.Lock()
		r.refused.Add(&e)
		r.mu.Unlock()
	}
	if s.name != event.Detect && e.Action != event.SessionEnd { // End has passed that one to detection before
		r.dispatch(e)
	}
	return e.N, nil
}

// dispatch passes an event that is in the record to detection.
func (b *Bus) dispatch(e event.Event) {
	b.noteLack(e)
	b.alarm.observe(e)
}

// Report is what a run reports about its record at its end.
type Report struct {
	Lack        Lack                // of the record
	New         []string            // what was new by the baseline of the workspace: kind and name, "…" for more
	Dropped     []story.Dropped     // what was lost with the private home, sorted
	DroppedMore uint64              // changes of other paths there, beyond the limit
	Files       []story.FileRefusal // files that programs were refused, in order
	FilesMore   uint64              // refusals of other files, beyond the limit
}

// Report returns the report so far. Later events are not in it.
func (b *Bus) Report() Report {
	news := b.alarm.firstSeenKeys()
	b.mu.Lock()
	defer b.mu.Unlock()
	dropped, more := b.drops.List()
	files, moreFiles := b.refused.List()
	return Report{Lack: b.lacks, New: news, Dropped: dropped, DroppedMore: more, Files: files, FilesMore: moreFiles}
}

// Unsent reports, after Close, whether a sink did not get an alert that the record
// can send again.
func (b *Bus) Unsent() bool { return b.unsent }

// Lack returns why the record is not complete, as far as is known.
func (b *Bus) Lack() Lack {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lacks
}

// layers are the layers that denied when a deciding sensor reports a denial.
var layers = map[event.Sensor]string{event.Egress: event.LayerEgress, event.Broker: event.LayerBroker}

// Silence switches recording of a sensor off and on: the launch tests the
// boundary before it executes the command, and those attempts are our own.
func (s *Sensor) Silence(quiet bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.quiet = quiet
}

// Fail ends the run: what cannot be recorded does not happen.
func (b *Bus) Fail(err error) {
	b.mu.Lock()
	first, kill := b.broken == nil, b.kill
	if first {
		b.broken = err
	}
	b.mu.Unlock()
	if first && kill != nil {
		kill("the record of the run cannot be written: " + err.Error())
	}
}

// Failed reports whether an event of any sensor could not be recorded.
func (s *Sensor) Failed() bool {
	s.bus.mu.Lock()
	defer s.bus.mu.Unlock()
	return s.bus.broken != nil
}

// Guard ends a running command when the record breaks.
func (b *Bus) Guard(kill func(reason string)) {
	b.mu.Lock()
	b.kill = kill
	broken := b.broken
	b.mu.Unlock()
	if broken != nil {
		kill("the record of the run cannot be written: " + broken.Error())
	}
}

// End writes the last event of the session: how many events each sensor had, and
// which alerts did not reach a sink.
func (b *Bus) End(detail map[string]string) error {
	b.ended = true
	last := event.Event{Action: event.SessionEnd, Verdict: event.Allowed, Detail: detail}
	if b.log != nil { // losses and the end may raise an alert, which is recorded before the end
		if err := b.log.Settle(); err != nil {
			return err
		}
		seen := last
		seen.Sensor, seen.Session, seen.Time = event.Task, b.session, time.Now()
		b.dispatch(seen)
		maps.Copy(detail, alert.Detail(b.alarm.deliver()))
	}
	own := b.Sensor(event.Task)
	b.mu.Lock()
	sensors := maps.Clone(b.sensors)
	b.mu.Unlock()
	for name, s := range sensors {
		s.mu.Lock()
		n := s.n
		s.mu.Unlock()
		if s == own {
			n++ // this one
		}
		if n > 0 {
			detail["count."+string(name)] = strconv.FormatUint(n, 10)
		}
	}
	return own.Emit(last)
}

// Close ends the record. It may be called more than once.
func (b *Bus) Close() error {
	var errs []error
	if b.log != nil && !b.ended {
		errs = append(errs, b.log.Settle()) // it passes the losses to detection
	}
	if b.alarm != nil {
		b.unsent = len(alert.Detail(b.alarm.deliver())) > 0
		errs = append(errs, b.alarm.close())
		b.alarm = nil
	}
	if b.log != nil {
		errs = append(errs, b.log.Close())
		b.log = nil
	}
	return errors.Join(errs...)
}

// anchors are the places that the policy names for the head of the log.
func anchors(list []policy.Anchor) ([]audit.Anchor, error) {
	var out []audit.Anchor
	for _, a := range list {
		switch a.Kind {
		case "file":
			out = append(out, audit.FileAnchor(a.Address))
		case "http":
			out = append(out, audit.HTTPAnchor(a.Address))
		case "syslog":
			out = append(out, audit.SyslogAnchor("/dev/log"))
		default:
			return nil, fmt.Errorf("%s: %q is not a kind of anchor", a.Origin, a.Kind)
		}
	}
	return out, nil
}
