package hooks

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/redact"
	"holdfast.dev/holdfast/internal/record/audit"
)

// Outside records the reports of agents that run outside every boundary: one
// record for each session of an agent, continued by one hook process after
// another.
type Outside struct {
	Log  string // directory of the records
	Keys string // directory of the keys that sign them
}

// maxRecords is the maximum number of records of one agent session: a session may
// be resumed after its end.
const maxRecords = 64

// errBusy means that no record could be opened.
var errBusy = errors.New("other hooks kept the record busy")

// Record writes a report. An End ends the record.
func (o Outside) Record(r Report, a Answer) error {
	l, last, begun, err := o.openRecord(r)
	if err != nil {
		return fmt.Errorf("recording a tool call: %w", err)
	}
	secrets := redact.New()
	emit := func(e event.Event, n uint64) {
		if err == nil {
			e.N, e.Time = n, time.Now()
			err = l.Emit(secrets.Event(e))
		}
	}
	if begun {
		emit(event.Event{Sensor: event.Task, Action: event.SessionStart, Object: r.Cwd, Verdict: event.Allowed,
			Detail: map[string]string{"sensors": string(event.Agent), "boundary": "none", "agent": r.Agent}}, 1)
	}
	if r.Kind != End || r.Bad != "" {
		emit(r.Event(a), last(event.Agent)+1)
		return errors.Join(err, l.Leave())
	}
	emit(event.Event{Sensor: event.Task, Action: event.SessionEnd, Verdict: event.Allowed, Detail: map[string]string{
		"count.agent": strconv.FormatUint(last(event.Agent), 10), "count.task": "2",
	}}, 2)
	return errors.Join(err, l.Close())
}

// openRecord continues the record of the agent's session, or begins one.
func (o Outside) openRecord(r Report) (l *audit.Log, last func(event.Sensor) uint64, begun bool, err error) {
	id, n := r.session(), 1
	for range maxRecords {
		options := audit.Options{Session: id, Keys: o.Keys}
		if n > 1 {
			options.Session += "-" + strconv.Itoa(n)
		}
		l, last, err = audit.Resume(o.Log, options)
		switch {
		case err == nil:
			return l, last, false, nil
		case errors.Is(err, fs.ErrNotExist):
			options.Detail = map[string]string{"sensors": string(event.Agent)}
			l, err = audit.Create(o.Log, options)
			if err == nil {
				return l, func(event.Sensor) uint64 { return 0 }, true, nil
			}
			if !errors.Is(err, fs.ErrExist) {
				return nil, nil, false, err
			}
			time.Sleep(5 * time.Millisecond) // another hook was faster: use its record
		case errors.Is(err, audit.ErrEnded), errors.Is(err, audit.ErrBroken) && n < maxRecords/2:
			n++
		default:
			return nil, nil, false, err
		}
	}
	return nil, nil, false, errBusy
}

// session is the ID of the record of the agent's session.
func (r Report) session() string {
	id := r.Agent + "-" + r.Conversation
	if r.Conversation != "" && len(id) <= 60 && audit.ValidSession(id) {
		return id
	}
	sum := sha256.Sum256([]byte(r.Agent + "\x00" + r.Conversation + "\x00" + r.Cwd))
	return "agent-" + hex.EncodeToString(sum[:8])
}
