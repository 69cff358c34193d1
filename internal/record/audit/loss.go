package audit

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
)

// How losses are reported.
const (
	reportAfter = time.Second      // likewise, after reportMany reports: a flood of days fills no disk with reports
	reportSlow  = 10 * time.Second // likewise, once there were reportMany: a flood of days fills no disk with reports
	reportMany  = 300
	maxRanges   = 200 // intervals of one report: they fit into a detail
	maxActions  = 100 // counts of one report
)

// loss is the events of one sensor that are not recorded one by one.
type loss struct {
	action  string // RecordCut or RecordDrop
	sensor  event.Sensor
	reason  string
	count   uint64
	numbers ranges
	coarse  bool // numbers is one interval, which may include events that are recorded
	actions map[string]uint64
}

// lossKey groups losses: each key has its own report.
type lossKey struct {
	action string
	sensor event.Sensor
	reason string
}

// losses are the losses that are not reported yet.
type losses struct {
	open    map[lossKey]*loss
	reports int
}

// countLoss counts an event that is not recorded. mu is held.
func (l *Log) countLoss(action string, e *event.Event, reason string) {
	key := lossKey{action, e.Sensor, reason}
	x := l.losses.open[key]
	if x == nil {
		x = &loss{action: action, sensor: e.Sensor, reason: reason, actions: map[string]uint64{}}
		if l.losses.open == nil {
			l.losses.open = map[lossKey]*loss{}
		}
		l.losses.open[key] = x
		after := reportAfter
		if l.losses.reports >= reportMany {
			after = reportSlow
		}
		l.arm(&l.timers.losses, after, l.reportLosses)
	}
	x.count++
	name := e.Action
	if x.actions[name] == 0 && len(x.actions) >= maxActions || !plainKey(name) || len(name) > maxKey/2 {
		name = "other"
	}
	x.actions[name]++
	if e.N == 0 {
		return
	}
	x.numbers.add(interval{e.N, e.N})
	switch {
	case x.coarse, len(x.numbers) >= maxRanges && l.size+4*maxText > l.max:
		// The log is full: it may grow only with time.
		x.coarse = true
		x.numbers = ranges{{x.numbers[0].from, x.numbers[len(x.numbers)-1].to}}
	case len(x.numbers) >= maxRanges:
		l.reportLosses() // its error is kept
	}
}

// reportLosses records the losses since the last report. mu is held.
func (l *Log) reportLosses() error {
	l.disarm(&l.timers.losses)
	keys := slices.SortedFunc(maps.Keys(l.losses.open), func(a, b lossKey) int {
		return cmp.Or(cmp.Compare(a.sensor, b.sensor), cmp.Compare(a.action, b.action), cmp.Compare(a.reason, b.reason))
	})
	for _, key := range keys {
		x := l.losses.open[key]
		delete(l.losses.open, key)
		l.losses.reports++
		e, err := l.appendOwn(x.action, string(x.sensor), x.detail())
		if err != nil {
			return l.fail(err)
		}
		if noted := l.noted; noted != nil { // without mu: it may record something
			l.notifying.Go(func() { noted(e) })
		}
	}
	return nil
}

// Settle records the losses so far, and returns when Options.Noted has returned for each.
// Noted is not called for later losses, so that the caller can close what Noted uses.
func (l *Log) Settle() error {
	l.mu.Lock()
	err := l.usable()
	if err == nil {
		err = l.reportLosses()
	}
	l.noted = nil
	l.mu.Unlock()
	l.notifying.Wait()
	if err != nil {
		return fmt.Errorf("recording what was lost: %w", err)
	}
	return nil
}

// detail describes what was lost, with "ranges" only if "from" and "to" do not suffice.
func (x *loss) detail() map[string]string {
	d := map[string]string{"of": string(x.sensor), "reason": x.reason, "count": strconv.FormatUint(x.count, 10)}
	if n := len(x.numbers); n > 0 {
		d["from"] = strconv.FormatUint(x.numbers[0].from, 10)
		d["to"] = strconv.FormatUint(x.numbers[n-1].to, 10)
		if n > 1 {
			d["ranges"] = x.numbers.String()
		}
	}
	for action, n := range x.actions {
		d["count."+action] = strconv.FormatUint(n, 10)
	}
	return d
}
