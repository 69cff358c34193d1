package baseline

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Limits of a baseline. What runs inside makes the things that are learnt, and
// must not be able to make it grow without end.
const (
	MaxRuns   = 64   // that it was learnt from: bits of a set
	MaxThings = 4096 // of all kinds together
)

// Baseline is what is normal in a workspace. The zero value knows nothing.
type Baseline struct {
	Workspace string
	Runs      []Run // in the order in which they were learnt, at most MaxRuns

	things [kinds]map[string]uint64 // by name: the runs that involved it, a bit each by its index in Runs
}

// Run is one that was learnt from.
type Run struct {
	Session  string            `json:"session"`
	Start    time.Time         `json:"start"`            // of the run
	Learnt   time.Time         `json:"learnt"`           // when it was learnt from
	Verdict  string            `json:"verdict"`          // of its record
	Level    string            `json:"level"`            // of its record: standard or full
	Tripwire bool              `json:"tripwire"`         // look-ups outside the view were seen
	Anyway   []string          `json:"anyway,omitempty"` // why it would not have been learnt from without a human's decision
	Counts   map[string]uint64 `json:"counts,omitempty"` // how many events of an action there were, and bytes that left
}

// ErrFull means that a run involves more things than a baseline holds.
var ErrFull = errors.New("a baseline has no room for so many different things")

// Learn adds a run and returns what was not known before, in order. A run that was
// learnt before is learnt anew. If there are MaxRuns, the one that was learnt longest
// ago is dropped, with what it alone involved. After ErrFull the baseline is as it was.
func (b *Baseline) Learn(r Run, t *Trace) ([]Thing, error) {
	next := b.clone()
	next.Forget(r.Session)
	for len(next.Runs) >= MaxRuns {
		next.Forget(next.Runs[0].Session)
	}
	bit := uint64(1) << len(next.Runs)
	var fresh []Thing
	for one := range t.seen {
		if b.things[one.Kind][one.Name] == 0 {
			fresh = append(fresh, one)
		}
		if next.things[one.Kind] == nil {
			next.things[one.Kind] = map[string]uint64{}
		}
		next.things[one.Kind][one.Name] |= bit
	}
	if n := next.Len(); n > MaxThings {
		return nil, fmt.Errorf("%w: with this run there would be %d, %d are kept", ErrFull, n, MaxThings)
	}
	r.Level, r.Tripwire, r.Counts = t.level, t.tripwire, map[string]uint64{}
	for i, n := range t.counts {
		if n > 0 {
			r.Counts[counterNames[i]] = n
		}
	}
	next.Runs = append(next.Runs, r)
	*b = *next
	slices.SortFunc(fresh, func(a, b Thing) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) })
	return fresh, nil
}

func (b *Baseline) clone() *Baseline {
	c := &Baseline{Workspace: b.Workspace, Runs: slices.Clone(b.Runs)}
	for k := range b.things {
		c.things[k] = maps.Clone(b.things[k])
	}
	return c
}

// Forget removes what a run taught and no other did. It reports whether the run
// was learnt from.
func (b *Baseline) Forget(session string) bool {
	at := slices.IndexFunc(b.Runs, func(r Run) bool { return r.Session == session })
	if at < 0 {
		return false
	}
	b.Runs = slices.Delete(slices.Clone(b.Runs), at, at+1)
	below := uint64(1)<<at - 1
	for _, names := range b.things {
		for name, runs := range names {
			runs = runs&below | runs>>1&^below
			if runs == 0 {
				delete(names, name)
				continue
			}
			names[name] = runs
		}
	}
	return true
}

// Len is how many things are known.
func (b *Baseline) Len() int {
	n := 0
	for _, names := range b.things {
		n += len(names)
	}
	return n
}

// Known is one thing that is normal.
type Known struct {
	Name string
	Runs []string // the sessions that involved it
}

// Known lists what is known of a kind, in the order of the names.
func (b *Baseline) Known(k Kind) []Known {
	var out []Known
	for _, name := range slices.Sorted(maps.Keys(b.things[k])) {
		one := Known{Name: name}
		for i, r := range b.Runs {
			if b.things[k][name]>>i&1 != 0 {
				one.Runs = append(one.Runs, r.Session)
			}
		}
		out = append(out, one)
	}
	return out
}

// Most are the highest counts of the runs.
func (b *Baseline) Most() map[string]uint64 {
	out := map[string]uint64{}
	for _, r := range b.Runs {
		for name, n := range r.Counts {
			out[name] = max(out[name], n)
		}
	}
	return out
}
