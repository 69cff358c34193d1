package consent

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// limiter counts what was asked and denied. Times are monotonic: setting the
// clock allows no further question. It is guarded by the lock of the queue.
type limiter struct {
	limits  Limits
	asked   []time.Duration // the requests of the last minute
	calm    time.Duration   // until when nothing is asked; 0: never was
	denials map[string]*denial
	tallies map[string]*tally
}

// denial is how often the same attempt was denied.
type denial struct {
	n    int
	last time.Duration
}

func newLimiter(l Limits) limiter {
	return limiter{limits: l, denials: map[string]*denial{}, tallies: map[string]*tally{}}
}

// admit counts one more request, or returns why it must not be made.
func (l *limiter) admit(digest string, pending int, now time.Duration) string {
	if now < l.calm {
		return "too much was asked a short while ago: nobody is asked until that has passed"
	}
	if d := l.denials[digest]; d != nil && d.n >= l.limits.Again && now-d.last < l.limits.Calm {
		return fmt.Sprintf("it was denied %d times already: nobody is asked about it again for some time", d.n)
	}
	if pending >= l.limits.Pending {
		return fmt.Sprintf("%d requests are already waiting for an answer", pending)
	}
	l.asked = slices.DeleteFunc(l.asked, func(t time.Duration) bool { return now-t >= time.Minute })
	if len(l.asked) >= l.limits.PerMinute {
		l.calm = now + l.limits.Calm
		return fmt.Sprintf("more than %d things were asked within a minute: nobody is asked for some time", l.limits.PerMinute)
	}
	l.asked = append(l.asked, now)
	return ""
}

// noteDenial notes that a request was not allowed. A request that ended by itself
// is not a denial.
func (l *limiter) noteDenial(digest, outcome string, now time.Duration) {
	if outcome != outcomeAnswer && outcome != outcomeTimeout {
		return
	}
	maps.DeleteFunc(l.denials, func(_ string, d *denial) bool { return now-d.last >= l.limits.Calm })
	d := l.denials[digest]
	if d == nil {
		d = &denial{}
		l.denials[digest] = d
	}
	d.n++
	d.last = now
}

// tally is the count for one kind of refusals.
func (l *limiter) tally(of string) *tally {
	t := l.tallies[of]
	if t == nil && len(l.tallies) >= maxTallies {
		of = ""
		t = l.tallies[of]
	}
	if t == nil {
		t = &tally{}
		l.tallies[of] = t
	}
	return t
}
