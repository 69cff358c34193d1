//go:build linux

package run

import (
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	"holdfast.dev/holdfast/internal/detect/alert"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/redact"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/record/audit"
	"holdfast.dev/holdfast/internal/record/story"
)

// recorder is the one way from everything that sees something to the log, to
// detection and to whoever is told of alerts.
type recorder struct {
	session string
	log     *audit.Log // nil when no record is kept: in tests alone
	secrets *redact.Redactor
	alarm   *alarm // nil with log
	ended   bool
	unsent  bool // close: a sink did not get an alert, and the record can send it again

	mu      sync.Mutex // guards what follows
	sensors map[event.Sensor]*sensor
	lacks   Lack
	broken  error
	drops   *story.Drops        // what will go with the private home
	kill    func(reason string) // nil until something runs
}

// sensor is the part of the record that one sensor writes to: it numbers its
// events before anything can lose them.
type sensor struct {
	record *recorder
	name   event.Sensor

	mu    sync.Mutex // held while an event is on its way, so that the log has them in order
	n     uint64
	quiet bool // nothing is recorded yet
}

// newRecord begins the record of a session. Without it nothing runs.
func (t *Task) newRecord(session string) (*recorder, error) {
	r := &recorder{session: session, secrets: redact.New(), sensors: map[event.Sensor]*sensor{}, drops: story.NewDrops(t.place())}
	if t.Log == "" {
		return r, nil
	}
	var err error
	if r.alarm, err = t.newAlarm(r); err != nil {
		return nil, err
	}
	anchors, err := anchors(t.Plan.Record.Anchor)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("preparing where the head of the log goes: %w", err), r.close())
	}
	r.log, err = audit.Create(t.Log, audit.Options{
		Session: session, Keys: t.Keys, Anchors: anchors, Failed: r.fail, Noted: r.noted, Detail: map[string]string{"level": string(t.Plan.Record.Level)},
	})
	if err != nil {
		return nil, errors.Join(&StateError{Dir: t.State, Err: err}, r.close())
	}
	return r, nil
}

// sensor is where the events of one sensor go.
func (r *recorder) sensor(name event.Sensor) *sensor {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.sensors[name]
	if s == nil {
		s = &sensor{record: r, name: name}
		r.sensors[name] = s
	}
	return s
}

// Emit returns when the event stands in the log.
func (s *sensor) Emit(e event.Event) error {
	_, err := s.put(e, (*audit.Log).Put)
	return err
}

// Observe returns before.
func (s *sensor) Observe(e event.Event) error {
	_, err := s.put(e, (*audit.Log).PutLater)
	return err
}

// put numbers an event, writes it, and has detection look at it. It returns the
// number, also where it could not be written.
func (s *sensor) put(e event.Event, write func(*audit.Log, event.Event) (uint64, error)) (uint64, error) {
	r := s.record
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
		r.fail(err)
		return e.N, err
	}
	if s.name == event.Syscall {
		r.mu.Lock()
		r.drops.Add(&e)
		r.mu.Unlock()
	}
	if s.name != event.Detect && e.Action != event.SessionEnd { // end has detection look at that one before
		r.noted(e)
	}
	return e.N, nil
}

// noted has detection look at an event that stands in the record.
func (r *recorder) noted(e event.Event) {
	r.lack(e)
	r.alarm.observe(e)
}

// dropped is what went with the private home, and how many changes there were of
// paths that are not listed.
func (r *recorder) dropped() ([]story.Dropped, uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.drops.List()
}

// layers are what denied when a sensor that decides says so.
var layers = map[event.Sensor]string{event.Egress: event.LayerEgress, event.Broker: event.LayerBroker}

// silence switches recording of a sensor off and on: the launch tries the
// boundary before the command is executed, and those attempts are ours.
func (s *sensor) silence(quiet bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.quiet = quiet
}

// fail ends the run: what cannot be recorded does not happen.
func (r *recorder) fail(err error) {
	r.mu.Lock()
	first, kill := r.broken == nil, r.kill
	if first {
		r.broken = err
	}
	r.mu.Unlock()
	if first && kill != nil {
		kill("the record of the run cannot be written: " + err.Error())
	}
}

// Failed says whether something could not be recorded, of whichever sensor.
func (s *sensor) Failed() bool {
	s.record.mu.Lock()
	defer s.record.mu.Unlock()
	return s.record.broken != nil
}

// guard ends a running command when the record breaks.
func (r *recorder) guard(kill func(reason string)) {
	r.mu.Lock()
	r.kill = kill
	broken := r.broken
	r.mu.Unlock()
	if broken != nil {
		kill("the record of the run cannot be written: " + broken.Error())
	}
}

// end is the last event of a session: how many events each sensor had, and which
// alerts did not reach a sink.
func (r *recorder) end(detail map[string]string) error {
	r.ended = true
	last := event.Event{Action: event.SessionEnd, Verdict: event.Allowed, Detail: detail}
	if r.log != nil { // losses and the end may be worth an alert, which stands before the end
		if err := r.log.Settle(); err != nil {
			return err
		}
		seen := last
		seen.Sensor, seen.Session, seen.Time = event.Task, r.session, time.Now()
		r.noted(seen)
		maps.Copy(detail, alert.Detail(r.alarm.deliver()))
	}
	own := r.sensor(event.Task)
	r.mu.Lock()
	sensors := maps.Clone(r.sensors)
	r.mu.Unlock()
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

// close ends the record. It may be called more than once.
func (r *recorder) close() error {
	var errs []error
	if r.log != nil && !r.ended {
		errs = append(errs, r.log.Settle()) // it tells the alarm
	}
	if r.alarm != nil {
		r.unsent = len(alert.Detail(r.alarm.deliver())) > 0
		errs = append(errs, r.alarm.close())
		r.alarm = nil
	}
	if r.log != nil {
		errs = append(errs, r.log.Close())
		r.log = nil
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
			s, err := audit.SyslogAnchor("unixgram", "/dev/log")
			if err != nil {
				return nil, fmt.Errorf("%s: %w", a.Origin, err)
			}
			out = append(out, s)
		default:
			return nil, fmt.Errorf("%s: %q is no kind of anchor", a.Origin, a.Kind)
		}
	}
	return out, nil
}
