package egress

import (
	"strings"
	"sync"
	"time"
)

// How much of what is refused is recorded. The record of a run is bounded, and
// what it cannot hold any more does not happen: who is refused must not be able
// to fill it, neither to end what is allowed nor to hide what comes after.
const (
	refusedSame   = 20     // records of the same within a minute
	refusedMinute = 600    // records a minute, and at once
	refusedMost   = 30_000 // records of a run, of some 400 bytes each
	refusedKept   = 4096   // different things that are remembered
)

// often decides which refusals are recorded. Grave ones are counted by
// themselves. The zero value is ready.
type often struct {
	now func() time.Time // nil for time.Now

	mu   sync.Mutex
	seen map[string]*seenRefusal
	left [2]bucket // of what is not grave, and of what is
	most [2]int
}

type seenRefusal struct {
	since             time.Time
	recorded, skipped int
}

func (o *often) begin() time.Time {
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

// record says whether one more refusal is recorded, and how many of the same
// were not since the last that was.
func (o *often) record(grave bool, what ...string) (skipped int, ok bool) {
	class := 0
	if grave {
		class = 1
	}
	key := strings.Join(what, "\x00")
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.begin()
	same, room := o.seen[key], o.most[class] > 0 && o.left[class].has(1, now)
	if same == nil {
		if !room {
			return 0, false // nor is it remembered: others are that came before
		}
		if len(o.seen) >= refusedKept {
			clear(o.seen)
		}
		same = &seenRefusal{since: now}
		o.seen[key] = same
	}
	if now.Sub(same.since) >= time.Minute {
		same.since, same.recorded = now, 0
	}
	if same.recorded >= refusedSame || !room {
		same.skipped++
		return 0, false
	}
	o.left[class].take(1)
	o.most[class]--
	skipped, same.skipped = same.skipped, 0
	same.recorded++
	return skipped, true
}
