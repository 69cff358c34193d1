//go:build linux

package supervise

import (
	"maps"
	"strconv"
	"sync"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
)

// How look-ups and denials are bounded: the same by the same process within a window is
// counted. So is whatever comes when so many different ones are remembered.
const (
	floodWindow = time.Second
	floodKeys   = 4096
)

type floodKey struct {
	pid                           int
	action, how, object, resolved string
}

type flooded struct {
	event event.Event
	since time.Time
	count int // after the first
}

// flood hands events over, and counts repetitions instead.
type flood struct {
	out    func(event.Event)
	marked func(event.Event) bool

	mu     sync.Mutex // guards what follows
	held   map[floodKey]*flooded
	others map[int]*flooded // by process: those beyond floodKeys
	timer  *time.Timer
	closed bool
}

func newFlood(out func(event.Event), marked func(event.Event) bool) *flood {
	if marked == nil {
		marked = func(event.Event) bool { return false }
	}
	return &flood{out: out, marked: marked, held: map[floodKey]*flooded{}, others: map[int]*flooded{}}
}

// add hands e over, or counts it.
func (f *flood) add(e event.Event) { f.addBy(e, e.Detail["call"]) }

// addBy is add for an event that says otherwise how it was done.
func (f *flood) addBy(e event.Event, how string) {
	key := floodKey{e.Process.PID, e.Action, how, e.Object, e.Resolved}
	f.mu.Lock()
	seen := f.held[key]
	if seen == nil && len(f.held) >= floodKeys && !f.marked(e) {
		seen = f.other(e)
	}
	if seen != nil {
		seen.count++
		f.mu.Unlock()
		return
	}
	if len(f.held) < floodKeys {
		f.held[key] = &flooded{event: e, since: time.Now()}
	}
	if f.timer == nil && !f.closed {
		f.timer = time.AfterFunc(floodWindow, f.tick)
	}
	f.mu.Unlock()
	f.out(e)
}

// other returns what counts events of e's process that are not remembered
// one by one; nil when e is the first. The caller holds f.mu.
func (f *flood) other(e event.Event) *flooded {
	pid := e.Process.PID
	if f.others[pid] == nil && len(f.others) >= floodKeys {
		pid = 0 // of all the rest
	}
	seen := f.others[pid]
	if seen == nil {
		f.others[pid] = &flooded{event: e, since: time.Now()}
	}
	return seen
}

// tick hands over what was counted in windows that ended.
func (f *flood) tick() {
	f.mu.Lock()
	out := f.drain(time.Now().Add(-floodWindow))
	f.timer = nil
	if len(f.held)+len(f.others) > 0 && !f.closed {
		f.timer = time.AfterFunc(floodWindow/4, f.tick)
	}
	f.mu.Unlock()
	for _, e := range out {
		f.out(e)
	}
}

// drain takes out what began before a moment. The caller holds f.mu.
func (f *flood) drain(before time.Time) []event.Event {
	var out []event.Event
	for key, s := range f.held {
		if s.since.After(before) {
			continue
		}
		delete(f.held, key)
		if s.count > 0 {
			out = append(out, s.summary(false))
		}
	}
	for pid, s := range f.others {
		if s.since.After(before) {
			continue
		}
		delete(f.others, pid)
		if s.count > 0 {
			out = append(out, s.summary(true))
		}
	}
	return out
}

// summary is the event of repetitions. Mixed ones are of different names.
func (s *flooded) summary(mixed bool) event.Event {
	e := s.event
	e.Detail = maps.Clone(e.Detail)
	e.Detail["count"] = strconv.Itoa(s.count)
	if mixed {
		e.Object, e.Resolved = "/", ""
		e.Detail["names"] = "different"
	}
	return e
}

// close hands over everything that was counted.
func (f *flood) close() {
	f.mu.Lock()
	f.closed = true
	if f.timer != nil {
		f.timer.Stop()
	}
	out := f.drain(time.Now().Add(time.Hour))
	f.mu.Unlock()
	for _, e := range out {
		f.out(e)
	}
}
