//go:build linux

package review

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/record/audit"
)

// reviewSuffix makes the name of the record of a review from that of the run,
// whose own record has ended and is signed to its end.
const reviewSuffix = "-review"

// maxReviewRecords is how many records one review may have: each time something
// is applied one ends, so that it can be verified as a whole.
const maxReviewRecords = 1000

// Decisions is the record of what a human decides about the changes of a run. Each
// command continues it.
type Decisions struct {
	log  *audit.Log
	last func(event.Sensor) uint64
	n    uint64
	err  error
}

// OpenDecisions continues the record of a review, or begins it. Without it nothing is
// decided and nothing is applied.
func OpenDecisions(logs, keys string, r Reviewed) (*Decisions, error) {
	for i := 1; i <= maxReviewRecords; i++ {
		id := r.Session + reviewSuffix
		if i > 1 {
			id += "-" + strconv.Itoa(i)
		}
		l, last, err := audit.Resume(logs, audit.Options{Session: id, Keys: keys})
		switch {
		case err == nil:
			return &Decisions{log: l, last: last, n: last(event.Approve)}, nil
		case errors.Is(err, audit.ErrEnded), errors.Is(err, audit.ErrBroken):
			continue
		case !errors.Is(err, fs.ErrNotExist):
			return nil, fmt.Errorf("recording the review: %w", err)
		}
		v, err := beginDecisions(logs, keys, id, r)
		if errors.Is(err, fs.ErrExist) {
			i-- // another process began it: it is there to go on with
			time.Sleep(5 * time.Millisecond)
			continue
		}
		return v, err
	}
	return nil, errors.New("recording the review: there are too many records of it")
}

func beginDecisions(logs, keys, id string, r Reviewed) (*Decisions, error) {
	l, err := audit.Create(logs, audit.Options{Session: id, Keys: keys, Detail: map[string]string{"sensors": string(event.Approve)}})
	if err != nil {
		return nil, fmt.Errorf("recording the review: %w", err)
	}
	v := &Decisions{log: l, last: func(event.Sensor) uint64 { return 0 }}
	err = l.Emit(event.Event{Sensor: event.Task, N: 1, Time: time.Now(), Action: event.SessionStart, Object: string(r.Workspace), Verdict: event.Allowed,
		Detail: map[string]string{"sensors": string(event.Approve), "boundary": "none", "review": r.Session}})
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return v, nil
}

// Put records one event of the review. After the first that could not be
// recorded every other fails as well.
func (v *Decisions) Put(e event.Event) error {
	if v.err != nil {
		return v.err
	}
	v.n++
	e.Sensor, e.N, e.Time = event.Approve, v.n, time.Now()
	if e.Verdict == event.Denied && e.Layer == "" {
		e.Layer = event.LayerConsent
	}
	v.err = v.log.Emit(e)
	return v.err
}

// Close ends writing; with over set, the record as well.
func (v *Decisions) Close(over bool) error {
	if !over || v.err != nil {
		return errors.Join(v.err, v.log.Leave())
	}
	err := v.log.Emit(event.Event{Sensor: event.Task, N: v.last(event.Task) + v.began(), Time: time.Now(), Action: event.SessionEnd, Verdict: event.Allowed,
		Detail: map[string]string{"count." + string(event.Approve): strconv.FormatUint(v.n, 10), "count." + string(event.Task): "2"}})
	return errors.Join(err, v.log.Close())
}

// began is how far the number of the last record is behind: the first is ours in
// the log that was just made.
func (v *Decisions) began() uint64 {
	if v.last(event.Task) == 0 {
		return 2
	}
	return 1
}
