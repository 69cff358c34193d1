package baseline

import (
	"slices"
	"strconv"
	"strings"

	"holdfast.dev/holdfast/internal/floor/event"
)

// What is counted of a run: events by their action, refusals, and what left the
// boundary. Reads are not counted: how many are seen depends on the level and
// the sensors of a run.
const (
	bytesOut = "bytes out"
	refusals = "refusals"
)

var counterNames = [...]string{
	event.ProcExec, event.FileWrite, event.FileMkdir, event.FileRename, event.FileUnlink, event.NetQuery, event.NetConnect, event.NetRequest,
	event.ToolCall, refusals, bytesOut,
}

// Trace is what one run involved. It takes the events of one session, and is
// for one goroutine.
type Trace struct {
	runDirs
	level    string
	tripwire bool
	seen     map[Thing]bool
	counts   [len(counterNames)]uint64
}

// Observe takes the next event.
func (t *Trace) Observe(e *event.Event) {
	t.begin(e)
	t.count(e)
	var room [3]Thing
	for _, one := range t.things(e, room[:0]) {
		if t.seen == nil {
			t.seen = map[Thing]bool{}
		}
		t.seen[one] = true
	}
}

// begin takes from the start of a session its directories and what is seen of it.
func (t *Trace) begin(e *event.Event) {
	if e.Action != event.SessionStart {
		return
	}
	t.workspace, t.home, t.level = e.Object, e.Detail["home"], e.Detail["level"]
	t.tripwire = strings.Contains(","+e.Detail["sensors"]+",", ","+string(event.Tripwire)+",")
}

// count counts an event, or those that it summarises, and returns which
// counters changed, as bits.
func (t *Trace) count(e *event.Event) (changed uint32) {
	switch e.Action {
	case event.RecordCut:
		for key, n := range e.Detail {
			if action, ok := strings.CutPrefix(key, "count."); ok {
				changed |= t.addCount(action, number(n))
			}
		}
		return changed
	case event.NetClose:
		changed |= t.addCount(bytesOut, number(e.Detail["out"]))
	case event.FileOpen, event.FileLookup:
		return 0
	case event.ProcExec:
		if e.Error == "ENOENT" { // a directory of PATH without the program
			return 0
		}
	}
	changed |= t.addCount(e.Action, 1+number(e.Detail["again"]))
	if e.Verdict == event.Denied {
		changed |= t.addCount(refusals, 1)
	}
	return changed
}

// addCount adds to a counter, if there is one of that name, and returns its bit.
func (t *Trace) addCount(name string, n uint64) uint32 {
	i := slices.Index(counterNames[:], name)
	if i < 0 || n == 0 {
		return 0
	}
	t.counts[i] += min(n, 1<<50)
	return 1 << i
}

// number reads a count; 0 for anything else.
func number(s string) uint64 {
	n, err := strconv.ParseUint(s, 10, 63)
	if err != nil {
		return 0 // ParseUint returns the maximum for a larger number
	}
	return n
}
