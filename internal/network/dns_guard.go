package network

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// LimitError says that a name below a wildcard, or one that no rule knows, is refused
// because the query itself could leak data: the server of the names below a domain
// reads every query.
type LimitError struct{ Name, Reason string }

func (e *LimitError) Error() string { return e.Name + ": " + e.Reason }

// nameGuard limits how much data can leave in names below wildcards, through all doors
// together. A name that was admitted once stays admitted and costs nothing more. It may
// be used by several goroutines.
type nameGuard struct {
	label           int // bytes of a label
	minute, perHour int // names a minute, bytes an hour
	now             func() time.Time

	mu    sync.Mutex
	seen  map[string]bool       // names; at most mapNames
	asked map[string]bool       // names that no rule knows; at most mapAsked
	below map[string]*nameSpent // by wildcard; "" of those
}

// nameSpent is what is left to ask below one wildcard.
type nameSpent struct{ names, bytes bucket }

// newNameGuard makes a guard; no limit is zero.
func newNameGuard(l Limits) *nameGuard {
	return &nameGuard{
		label: l.Labels, minute: l.NamesMinute, perHour: l.BytesHour, now: time.Now,
		seen: map[string]bool{}, asked: map[string]bool{}, below: map[string]*nameSpent{},
	}
}

// admit says why a name may not be asked for at this moment; nil when it may. The wildcard
// is the one that allows it, without "*."; "" for a name that a rule gives in
// full, which is always admitted. Both are in normal form.
func (g *nameGuard) admit(name, wildcard string) error {
	if wildcard == "" {
		return nil
	}
	return g.spend(name, wildcard, strings.TrimSuffix(name, "."+wildcard), "below *."+wildcard)
}

// admitAsked is admit for a name that no rule knows, and that a human can be asked
// about: all of them share what one wildcard has.
func (g *nameGuard) admitAsked(name string) error {
	return g.spend(name, "", name, "that no rule names")
}

// spend takes a name out of what is left to ask. labels are those that its maker chose;
// which says in words what it counts among.
func (g *nameGuard) spend(name, wildcard, labels, which string) error {
	refuse := func(format string, args ...any) error {
		return &LimitError{name, fmt.Sprintf(format, args...)}
	}
	for label := range strings.SplitSeq(labels, ".") {
		if len(label) > g.label {
			return refuse("a label of %d bytes %s; at most %d are allowed", len(label), which, g.label)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	seen, most, all := g.seen, mapNames, "below wildcards"
	if wildcard == "" {
		seen, most, all = g.asked, mapAsked, which
	}
	if seen[name] {
		return nil
	}
	if len(seen) >= most {
		return refuse("more than %d different names %s", most, all)
	}
	spent, now := g.below[wildcard], g.now()
	if spent == nil {
		spent = &nameSpent{newBucket(g.minute, time.Minute, now), newBucket(g.perHour, time.Hour, now)}
		g.below[wildcard] = spent
	}
	if !spent.names.has(1, now) {
		return refuse("more than %d different names a minute %s", g.minute, which)
	}
	if !spent.bytes.has(len(labels), now) {
		return refuse("more than %d bytes of different names an hour %s", g.perHour, which)
	}
	spent.names.consume(1)
	spent.bytes.consume(len(labels))
	seen[name] = true
	return nil
}

// bucket lets a number of things through in each period, and as many at once.
type bucket struct {
	size, left float64
	each       time.Duration // for the whole bucket to fill
	at         time.Time
}

func newBucket(size int, each time.Duration, now time.Time) bucket {
	return bucket{size: float64(size), left: float64(size), each: each, at: now}
}

// has reports whether n are left.
func (b *bucket) has(n int, now time.Time) bool {
	if passed := now.Sub(b.at); passed > 0 {
		b.left = min(b.size, b.left+b.size*float64(passed)/float64(b.each))
		b.at = now
	}
	return b.left >= float64(n)
}

func (b *bucket) consume(n int) { b.left -= float64(n) }
