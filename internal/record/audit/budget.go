package audit

import (
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
)

// Limits of observed events in a log. Decisions and the log's own events are
// not counted here: the size of the log limits them.
const (
	burst  = 300_000 // events of one class at once
	refill = 5_000   // events of one class a second
)

// Classes of observed events: each has its own rate, so that a flood of one
// hides nothing of another.
const (
	classPlain = iota
	classDenied
	classMarked // detection watches its object
	classes
)

// Why an observed event is only summarised.
const (
	reasonRate  = "rate"  // more events of its class came than may be recorded in that time
	reasonSpace = "space" // events of its kind already fill their share of the log
)

// kind identifies events with a common share of the space.
type kind struct {
	action string
	class  int
}

// budget decides which observed events are recorded one by one.
type budget struct {
	buckets [classes]bucket
	space   int64 // bytes for all
	used    int64
	kinds   map[kind]int64 // bytes used by each
}

// bucket holds tokens, which are refilled over time.
type bucket struct {
	tokens float64
	filled time.Time
}

func newBudget(space int64, now time.Time) budget {
	b := budget{space: space, kinds: map[kind]int64{}}
	for i := range b.buckets {
		b.buckets[i] = bucket{burst, now}
	}
	return b
}

// lineRest is about how many bytes a line has besides its body.
const lineRest = 96

// reserve returns why e is not recorded; "" means that it is, and its space is then used.
//
// A kind may use at most twice the space that is free afterwards: two thirds of
// an empty log, then two thirds of the rest for the next one. However many
// bytes one kind writes, there is room for the others.
func (b *budget) reserve(e *event.Event, body int) string {
	k := kind{e.Action, class(e)}
	size := int64(body + lineRest)
	used := b.kinds[k] + size
	if used > 2*(b.space-b.used-size) {
		return reasonSpace
	}
	if !b.buckets[k.class].takeToken(e.Time) {
		return reasonRate
	}
	b.kinds[k] = used
	b.used += size
	return ""
}

func class(e *event.Event) int {
	switch {
	case e.Detail["mark"] != "":
		return classMarked
	case e.Verdict == event.Denied:
		return classDenied
	}
	return classPlain
}

func (b *bucket) takeToken(now time.Time) bool {
	if d := now.Sub(b.filled); d > 0 { // events come a little out of order
		b.tokens = min(max(burst, b.tokens), b.tokens+d.Seconds()*refill)
		b.filled = now
	}
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}
