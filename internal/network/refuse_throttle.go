package network

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
)

// How much of what is refused is recorded. The record of a run is bounded, and what it
// has no room for is refused: a refused program must not be able to fill it, neither to
// end what is allowed nor to hide what comes after.
const (
	refusedSame   = 20     // records of the same within a minute
	refusedMinute = 600    // records a minute, and at once
	refusedMost   = 30_000 // records of a run, of some 400 bytes each
	refusedKept   = 4096   // different things that are remembered
)

// gravity is what refusals are counted by: each has room of its own, so that a
// flood of what weighs less does not hide what weighs more.
type gravity int

const (
	common  gravity = iota
	grave           // it looks like an attempt to get around the policy
	alarm           // a honeytoken or a placeholder was on its way out
	weights         // how many there are
)

// throttle decides which refusals are recorded. The zero value is ready.
type throttle struct {
	now func() time.Time // nil for time.Now

	mu    sync.Mutex
	seen  map[string]*seenRefusal
	left  [weights]bucket
	most  [weights]int
	lost  int // refusals that no event represents
	since time.Time
}

type seenRefusal struct {
	what              []string
	weight            gravity
	since             time.Time
	recorded, skipped int
}

func (o *throttle) begin() time.Time {
	if o.now == nil {
		o.now = time.Now
	}
	now := o.now()
	if o.seen == nil {
		o.seen = map[string]*seenRefusal{}
		for i := range o.left {
			o.left[i], o.most[i] = newBucket(refusedMinute, time.Minute, now), refusedMost
		}
	}
	return now
}

// record reports whether one more refusal is recorded, and how many of the same
// were not since the last that was.
func (o *throttle) record(class gravity, what ...string) (skipped int, ok bool) {
	key := strings.Join(what, "\x00")
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.begin()
	same, room := o.seen[key], o.most[class] > 0 && o.left[class].has(1, now)
	if same == nil {
		if !room {
			o.lost++ // nor is it remembered: others are that came before
			return 0, false
		}
		if len(o.seen) >= refusedKept {
			for _, s := range o.seen {
				o.lost += s.skipped
			}
			clear(o.seen)
		}
		same = &seenRefusal{what: what, weight: class, since: now}
		o.seen[key] = same
	}
	if now.Sub(same.since) >= time.Minute {
		same.since, same.recorded = now, 0
	}
	if same.recorded >= refusedSame || !room {
		same.skipped++
		return 0, false
	}
	o.left[class].consume(1)
	o.most[class]--
	skipped, same.skipped = same.skipped, 0
	same.recorded++
	return skipped, true
}

// unreported returns how many refusals were lost for the record since it last returned a
// number, once a minute at most, or at the end.
func (o *throttle) unreported(end bool) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lost == 0 {
		return 0
	}
	now := o.begin()
	if !end && now.Sub(o.since) < time.Minute {
		return 0
	}
	n := o.lost
	o.lost, o.since = 0, now
	return n
}

// repeated returns the refusals that came more often than recorded, and resets their
// counts.
func (o *throttle) repeated() []seenRefusal {
	o.mu.Lock()
	defer o.mu.Unlock()
	var all []seenRefusal
	for _, s := range o.seen {
		if s.skipped > 0 && s.weight != alarm { // what an alarm is about is also refused
			all = append(all, *s)
			s.skipped = 0
		}
	}
	slices.SortFunc(all, func(a, b seenRefusal) int { return slices.Compare(a.what, b.what) })
	return all
}

// recordLost records that refusals are not in the record, so that a flood cannot
// make it look whole; at the end also how many more there were of what is in it.
func (e *Engine) recordLost(end bool) {
	if n := e.throttle.unreported(end); n > 0 {
		e.emit(event.Event{Action: event.RecordDrop, Object: string(event.Egress), Detail: map[string]string{
			"of": string(event.Egress), "count": strconv.Itoa(n), "reason": fmt.Sprintf("more was refused than the %d things a minute that are recorded", refusedMinute),
		}})
	}
	if !end {
		return
	}
	for _, s := range e.throttle.repeated() {
		e.emit(s.again())
	}
}

// again is the event for the repetitions that were not recorded.
func (s *seenRefusal) again() event.Event {
	detail := map[string]string{}
	for i, key := range []string{"reason", "method", "path"} {
		if v := s.what[4+i]; v != "" {
			detail[key] = v
		}
	}
	if s.weight != common {
		detail["severity"] = "high"
	}
	if s.skipped > 1 {
		detail["again"] = strconv.Itoa(s.skipped - 1)
	}
	return event.Event{Action: s.what[0], Object: s.what[1], Verdict: event.Denied, Layer: s.what[2], Rule: s.what[3], Detail: detail}
}
