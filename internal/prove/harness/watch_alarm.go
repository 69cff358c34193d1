//go:build linux

package harness

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"holdfast.dev/holdfast/internal/detect"
	"holdfast.dev/holdfast/internal/detect/alert"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/redact"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/prove/report"
	"holdfast.dev/holdfast/internal/record/audit"
)

// WatchAlarmOptions say where a watch records, and whom it tells.
type WatchAlarmOptions struct {
	Log, Keys string // directories of the logs and of the signing key
	Sinks     []policy.AlertSink
	Terminal  func(line string) // for sinks of kind terminal
	Host      string            // name of this machine; "" when it is not known
	Version   string            // of Holdfast
}

// WatchAlarm keeps the log of a watch and raises its alerts.
type WatchAlarm struct {
	session string
	log     *audit.Log
	sinks   *alert.Dispatcher
	secrets *redact.Redactor
	n       map[event.Sensor]uint64
	count   map[string]int // of alerts, by rule and program
}

// NewWatchAlarm begins a log. Without one nothing is watched.
func NewWatchAlarm(o WatchAlarmOptions) (*WatchAlarm, error) {
	a := &WatchAlarm{session: watchSession(time.Now()), secrets: redact.New(), n: map[event.Sensor]uint64{}, count: map[string]int{}}
	var err error
	if a.sinks, err = alert.Open(alert.Options{
		Sinks: o.Sinks, Terminal: o.Terminal, Host: o.Host, Version: o.Version,
	}); err != nil {
		return nil, fmt.Errorf("preparing where alerts go: %w", err)
	}
	a.log, err = audit.Create(o.Log, audit.Options{Session: a.session, Keys: o.Keys})
	if err == nil {
		err = a.put(event.Event{Sensor: event.Task, Action: event.SessionStart, Verdict: event.Allowed, Object: "prove watch", Detail: map[string]string{"command": "holdfast prove watch"}})
	}
	if err != nil {
		a.sinks.Close()
		return nil, err
	}
	return a, nil
}

// watchSession names the log of a watch.
func watchSession(now time.Time) string {
	var b [3]byte
	rand.Read(b[:]) // ends the process when it fails (Go 1.24)
	return now.UTC().Format("20060102-150405") + "-watch-" + hex.EncodeToString(b[:])
}

// put writes one event.
func (a *WatchAlarm) put(e event.Event) error {
	a.n[e.Sensor]++
	e.N, e.Session, e.Time = a.n[e.Sensor], a.session, time.Now()
	if err := a.log.Emit(a.secrets.Event(e)); err != nil {
		return fmt.Errorf("recording what was noticed: %w", err)
	}
	return nil
}

// meaning is what the kinds of a WatchEvent are as alerts. The others are none.
var meaning = map[string]struct {
	severity    detect.Severity
	title       string
	explanation string
}{
	WatchWeaker:    {detect.High, "a target holds less than before", "Its program changed, and rows of the escape matrix that were held are not any more: %s."},
	WatchDifferent: {detect.Medium, "a target fails differently than before", "Its program changed. It holds as much as before, but something else holds it: %s."},
	WatchGone:      {detect.Medium, "a watched program is gone", "It is not at its place any more, and not because of an update that takes a moment."},
	WatchUnsteady:  {detect.Medium, "a watched program changes all the time", "It is never the same for long enough to be tested."},
	WatchUntested:  {detect.Medium, "a watched program changed without an announcement", "Nothing says whether it still holds what it held: it was not, or could not be, tested%s."},
	WatchBlind:     {detect.Low, "the kernel tells nothing of watched programs", "Changes are noticed by the timer alone%s."},
}

// Raise records an event of a watch, and tells of it where it is an alert. It
// returns an error where it could not be recorded.
func (a *WatchAlarm) Raise(e WatchEvent) error {
	m, ok := meaning[e.Kind]
	if !ok {
		return nil
	}
	rule := "prove-" + strings.ReplaceAll(e.Kind, " ", "-")
	key := e.Name
	a.count[rule+key]++
	found := detect.Alert{
		N: a.n[event.Detect] + 1, Rule: rule, Title: m.title, Severity: m.severity, Technique: []string{"T1195.002"}, Session: a.session, Time: time.Now(),
		Key: key, Count: a.count[rule+key], Object: e.Path, Explanation: m.explanation,
	}
	if strings.Contains(m.explanation, "%s") {
		found.Explanation = fmt.Sprintf(m.explanation, because(e))
	}
	recorded := found.Event()
	recorded.Sensor = event.Detect
	err := a.put(recorded)
	a.sinks.Raise(found) // somebody should be told all the same
	return err
}

// because is what an event rests on: rows, or an error.
func because(e WatchEvent) string {
	if e.Err != nil {
		return ": " + e.Err.Error()
	}
	var rows []string
	for _, list := range [][]report.Change{e.Changes.Weakened, e.Changes.Changed, e.Changes.Vanished} {
		for _, c := range list {
			if len(rows) == 12 {
				return strings.Join(rows, ", ") + " and more"
			}
			text := c.ID
			if c.Was != c.Is {
				text += " (" + c.Was + ", now " + c.Is + ")"
			}
			rows = append(rows, text)
		}
	}
	return strings.Join(rows, ", ")
}

// Close waits a little for alerts that are under way, and ends the log.
func (a *WatchAlarm) Close() error {
	var errs []error
	missed := a.sinks.Close()
	for _, u := range missed {
		errs = append(errs, u)
	}
	detail := alert.Detail(missed)
	detail["status"] = "0"
	for sensor, n := range a.n {
		if sensor == event.Task {
			n++ // this one
		}
		detail["count."+string(sensor)] = strconv.FormatUint(n, 10)
	}
	err := a.put(event.Event{Sensor: event.Task, Action: event.SessionEnd, Verdict: event.Allowed, Detail: detail})
	return errors.Join(append(errs, err, a.log.Close())...)
}
