//go:build linux

package bus

import (
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/record/audit"
)

// Append records an event of the log itself, which numbers it.
func (b *Bus) Append(e event.Event) error {
	e.Sensor, e.Session, e.Time = event.Record, b.session, time.Now()
	var err error
	if e.Seq, err = b.log.Put(e); err != nil {
		b.Fail(err)
		return err
	}
	b.dispatch(e)
	return nil
}

// Lack is why the record of a run will not be called COMPLETE: the first of the
// gravest reasons. The zero value means none.
type Lack struct {
	Verdict string // GAPS or PARTIAL, as in log verify
	Reason  string // in a few words
}

// noteLack keeps the first of the gravest reasons why the record is not complete.
func (b *Bus) noteLack(e event.Event) {
	var l Lack
	switch e.Action {
	case event.RecordDrop:
		l = Lack{audit.Gaps.String(), "events of " + e.Detail["of"] + " are lost: " + e.Detail["reason"]}
	case event.RecordCut:
		l = Lack{audit.Gaps.String(), "events of " + e.Detail["of"] + " are only counted: " + e.Detail["reason"]}
	case event.RecordBlind:
		l = Lack{audit.Partial.String(), e.Object + " not seen: " + e.Detail["reason"]}
	default:
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.lacks == (Lack{}) || b.lacks.Verdict == audit.Partial.String() && l.Verdict != b.lacks.Verdict {
		b.lacks = l
	}
}
