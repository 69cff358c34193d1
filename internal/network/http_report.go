package network

import (
	"maps"
	"net/http"
	"strconv"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
)

// report records a request that was passed on.
func (x *exchange) report(r *http.Request, start time.Time) {
	if x.answer.refused {
		return // it is in the record with its reason
	}
	answer := map[string]string{
		"status": strconv.Itoa(x.answer.status), "in": strconv.FormatInt(x.answer.bytes, 10),
		"ms": strconv.FormatInt(time.Since(start).Milliseconds(), 10),
	}
	if x.body != nil {
		answer["out"] = strconv.FormatInt(x.body.bytes.Load(), 10)
	}
	if x.record(r, answer) != nil {
		panic(http.ErrAbortHandler) // an unrecorded request must not continue
	}
}

// record records a request, with what is known of its answer.
func (x *exchange) record(r *http.Request, answer map[string]string) error {
	detail := map[string]string{"door": string(x.to.Door), "kind": string(x.kind()), "method": r.Method, "path": printable(x.path), "proto": r.Proto}
	maps.Copy(detail, answer)
	return x.engine.emit(event.Event{
		Action: event.NetRequest, Object: x.to.String(),
		Verdict: event.Allowed, Rule: x.rule.String(), Detail: detail,
	})
}

// depart records a request before it leaves, if the record has taken nothing since
// the last one left. The event of a request comes with its answer: of many at once
// all would have left before the first is found not to be recorded.
func (x *exchange) depart(r *http.Request) error {
	e := x.engine
	e.departing.Lock()
	defer e.departing.Unlock()
	if e.recorded.Load() == e.departed {
		if err := x.record(r, nil); err != nil {
			return err
		}
	}
	e.departed = e.recorded.Load()
	return nil
}
