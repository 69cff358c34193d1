package alert

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"holdfast.dev/holdfast/internal/detect"
	"holdfast.dev/holdfast/internal/floor/canonical"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/redact"
	"holdfast.dev/holdfast/internal/floor/text"
	"holdfast.dev/holdfast/internal/record/audit"
)

// RelayOptions say where a relay records, and which sinks it has.
type RelayOptions struct {
	Options
	Log, Keys string // directories of the logs and of the signing key
	For       string // what the alerts are of, in words
}

// Relay records the alerts of another program in a log of its own, and passes
// them to the sinks. It is for one goroutine.
type Relay struct {
	session string
	log     *audit.Log
	sinks   *Dispatcher
	secrets *redact.Redactor
	n       map[event.Sensor]uint64
}

// NewRelay begins a log. An error means that there is none.
func NewRelay(o RelayOptions) (*Relay, error) {
	r := &Relay{session: relaySession(time.Now()), secrets: redact.New(), n: map[event.Sensor]uint64{}}
	var err error
	if r.sinks, err = Open(o.Options); err != nil {
		return nil, fmt.Errorf("preparing the alert sinks: %w", err)
	}
	r.log, err = audit.Create(o.Log, audit.Options{Session: r.session, Keys: o.Keys})
	if err == nil {
		_, err = r.writeEvent(event.Event{Sensor: event.Task, Action: event.SessionStart, Verdict: event.Allowed, Object: o.For})
	}
	if err != nil {
		r.sinks.Close()
		return nil, err
	}
	return r, nil
}

// Session is the name of the log.
func (r *Relay) Session() string { return r.session }

// relaySession names the log of a relay.
func relaySession(now time.Time) string {
	var b [3]byte
	rand.Read(b[:]) // ends the process when it fails (Go 1.24)
	return now.UTC().Format("20060102-150405") + "-watch-" + hex.EncodeToString(b[:])
}

// writeEvent writes one event, and returns it as it was written.
func (r *Relay) writeEvent(e event.Event) (event.Event, error) {
	r.n[e.Sensor]++
	e.N, e.Session, e.Time = r.n[e.Sensor], r.session, time.Now()
	e = r.secrets.Event(e)
	if err := r.log.Emit(e); err != nil {
		return e, fmt.Errorf("recording an alert: %w", err)
	}
	return e, nil
}

// Raise records an alert, passes it to the sinks, and returns the alert's id.
// An error means that it is not recorded; the sinks get it nevertheless.
func (r *Relay) Raise(a detect.Alert) (id string, err error) {
	e := a.Event()
	e.Sensor = event.Detect
	e, err = r.writeEvent(e)
	a = detect.AlertOf(e)
	r.sinks.Raise(a)
	return document(a).ID, err
}

// Close waits a little for alerts in progress, ends the log, and returns what
// did not reach a sink. An error means that the end is not recorded.
func (r *Relay) Close() ([]*Undelivered, error) {
	missed := r.sinks.Close()
	detail := Detail(missed)
	detail["status"] = "0"
	for sensor, n := range r.n {
		if sensor == event.Task {
			n++ // this one
		}
		detail["count."+string(sensor)] = strconv.FormatUint(n, 10)
	}
	_, err := r.writeEvent(event.Event{Sensor: event.Task, Action: event.SessionEnd, Verdict: event.Allowed, Detail: detail})
	return missed, errors.Join(err, r.log.Close())
}

// RelayedBytes is the length limit of a line for ParseRelayed.
const RelayedBytes = 64 << 10

// Limits of a relayed alert: docs/formats/alert-relay.schema.json.
const (
	relayedTitle = 200  // characters
	relayedKey   = 256  // likewise
	relayedText  = 4096 // likewise, of the object and the explanation
	relayedCount = 1_000_000_000
	techniques   = 16
)

// relayedAlert is an alert as another program submits it.
type relayedAlert struct {
	Rule        string          `json:"rule"`
	Title       string          `json:"title"`
	Severity    detect.Severity `json:"severity"`
	Technique   []string        `json:"technique"`
	Key         string          `json:"key"`
	Count       *int            `json:"count"`
	Object      string          `json:"object"`
	Explanation string          `json:"explanation"`
}

// relayedFields are the members of a relayed alert. The decoder also accepts
// their names in capitals, which other readers would not.
var relayedFields = []string{"rule", "title", "severity", "technique", "key", "count", "object", "explanation"}

// ParseRelayed reads an alert of another program: a JSON object. Any difference
// from docs/formats/alert-relay.schema.json is an error.
func ParseRelayed(line []byte) (detect.Alert, error) {
	line, err := canonical.JSON(bytes.TrimSpace(line)) // no member occurs twice
	if err != nil {
		return detect.Alert{}, err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(line, &members); err != nil || members == nil {
		return detect.Alert{}, errors.New("it is not a JSON object")
	}
	for name, value := range members {
		if !slices.Contains(relayedFields, name) {
			return detect.Alert{}, fmt.Errorf("there is no member %q; the members are %q", text.Cut(name, 64), relayedFields)
		}
		if string(value) == "null" {
			return detect.Alert{}, fmt.Errorf("%s is null: leave it out", name)
		}
	}
	var m relayedAlert
	if err := json.Unmarshal(line, &m); err != nil {
		var kind *json.UnmarshalTypeError
		if errors.As(err, &kind) {
			return detect.Alert{}, fmt.Errorf("%s is a JSON %s", kind.Field, kind.Value)
		}
		return detect.Alert{}, err
	}
	count := 1
	if m.Count != nil {
		count = *m.Count
	}
	return detect.Alert{
		Rule: m.Rule, Title: m.Title, Severity: m.Severity, Technique: m.Technique, Key: m.Key, Count: count, Object: m.Object, Explanation: m.Explanation,
	}, m.check(count)
}

// check returns what is wrong with the values.
func (m *relayedAlert) check(count int) error {
	switch {
	case !detect.ValidID(m.Rule):
		return errors.New("rule is not a valid id: use 3 to 64 lower-case letters, digits and hyphens, beginning with a letter")
	case m.Severity.Level() == 0:
		return fmt.Errorf("severity is not one of %q", detect.Severities())
	case m.Title == "":
		return errors.New("title is missing")
	case count < 1 || count > relayedCount:
		return fmt.Errorf("count is not between 1 and %d", relayedCount)
	case len(m.Technique) > techniques:
		return fmt.Errorf("technique has more than %d", techniques)
	case slices.ContainsFunc(m.Technique, func(id string) bool { return !detect.ValidTechnique(id) }):
		return errors.New("technique has an invalid id: use ids such as T1552.001 or AML.T0051")
	}
	for _, text := range []struct {
		name, value string
		most        int
	}{{"title", m.Title, relayedTitle}, {"key", m.Key, relayedKey}, {"object", m.Object, relayedText}, {"explanation", m.Explanation, relayedText}} {
		if utf8.RuneCountInString(text.value) > text.most {
			return fmt.Errorf("%s has more than %d characters", text.name, text.most)
		}
	}
	return nil
}
