package baseline

import (
	"fmt"
	"sync"

	"holdfast.dev/holdfast/internal/floor/event"
)

// A count is new if it is more than so many times the most of any run that was
// learnt from, and above a floor: four files instead of one are not new.
const (
	Times      = 4
	floor      = 100     // events
	floorBytes = 1 << 20 // that left the boundary
)

// maxReported is how many new things of a kind are remembered, each of which is
// reported once. Later ones are reported without a name.
const maxReported = 1024

// Unnamed is the name of a new thing after too many others.
const Unnamed = "…"

// Checker finds what is new by a baseline in the events of one session. It can
// be used by several goroutines at once.
type Checker struct {
	load func() (*Baseline, error)

	mu       sync.Mutex // guards what follows
	trace    Trace
	most     [len(counterNames)]uint64
	compares [kinds]bool
	reported uint32 // counters that were reported, a bit each
	seen     [kinds]map[string]bool
}

// Open makes a checker by the baseline in a file, which is read at the first
// event or by Load. Without the file nothing is known, and nothing is new.
func Open(file string) *Checker {
	return &Checker{load: sync.OnceValues(func() (*Baseline, error) { return ReadFile(file) })}
}

// Against makes a checker by a baseline.
func Against(b *Baseline) *Checker {
	return &Checker{load: func() (*Baseline, error) { return b, nil }}
}

// Load reads the baseline, unless it was read before. Without it nothing is
// new, and the error says why.
func (c *Checker) Load() error {
	_, err := c.load()
	return err
}

// News appends what is new about an event: each thing once in a session.
// Without a baseline of the workspace nothing is new.
func (c *Checker) News(e *event.Event, into []Thing) []Thing {
	b, err := c.load()
	if err != nil || len(b.Runs) == 0 {
		return into
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e.Action == event.SessionStart {
		c.begin(e, b)
	}
	var room [3]Thing
	for _, one := range c.trace.things(e, room[:0]) {
		if b.things[one.Kind][one.Name] == 0 && c.compares[one.Kind] {
			into = c.report(one, into)
		}
	}
	return c.excess(c.trace.count(e), into)
}

// begin prepares for a session. Reads are compared only if a run that was
// learnt from was seen as closely.
func (c *Checker) begin(e *event.Event, b *Baseline) {
	c.trace.begin(e)
	most := b.Most()
	for i, n := range counterNames {
		c.most[i] = most[n]
	}
	for k := range c.compares {
		c.compares[k] = true
	}
	c.compares[Read], c.compares[RefusedRead] = false, false
	for _, r := range b.Runs {
		c.compares[Read] = c.compares[Read] || r.Level == "full"
		c.compares[RefusedRead] = c.compares[RefusedRead] || r.Level == "full" || r.Tripwire || !c.trace.tripwire && c.trace.level != "full"
	}
}

// report appends a thing unless it was reported before.
func (c *Checker) report(one Thing, into []Thing) []Thing {
	seen := c.seen[one.Kind]
	if seen[one.Name] {
		return into
	}
	if seen == nil {
		seen = map[string]bool{}
		c.seen[one.Kind] = seen
	}
	if len(seen) >= maxReported {
		one.Name = Unnamed
	} else {
		seen[one.Name] = true
	}
	return append(into, one)
}

// excess returns those of the changed counters that are far above what they ever were.
func (c *Checker) excess(changed uint32, into []Thing) []Thing {
	for i := range counterNames {
		least := uint64(floor)
		if counterNames[i] == bytesOut {
			least = floorBytes
		}
		least = max(least, Times*c.most[i])
		if changed&^c.reported>>i&1 != 0 && c.trace.counts[i] > least {
			c.reported |= 1 << i
			into = append(into, Thing{Count, fmt.Sprintf("%s more than %d", counterNames[i], least)})
		}
	}
	return into
}
