package alert

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"
)

// What waits for a sink at most. More than that is left to the spool, or lost:
// the least severe first, so that a flood of small alerts hides no great one.
const (
	mostItems = 1024
	mostBytes = 4 << 20
	stubborn  = 5  // attempts after which an alert lets others go first
	firstIDs  = 16 // that Undelivered names

	slowDisk = 250 * time.Millisecond // after that an alert is sent before it is in the spool
)

// item is an alert on its way to one sink.
type item struct {
	id    string
	body  []byte
	level int
	fresh bool // of this run
	born  time.Time
	tries int

	settled  bool     // it is in the spool, or never will be
	finished bool     // it was delivered, or refused for good
	gone     bool     // it does not wait any more, and was counted
	journal  *journal // where it is kept; nil for nowhere
	entry    uint64   // which it is there
}

// outlet is a sink with what waits for it. One goroutine sends and another does
// all that touches the spool, so that neither a slow disk nor a slow network
// holds up the other, and neither the run.
type outlet struct {
	name    string
	least   int // level
	timeout time.Duration
	sink    sink
	spool   *spool // nil keeps nothing
	timing  timing
	failed  func(string, error)
	wake    chan struct{} // something is to be sent
	unkept  chan struct{} // something is to be done in the spool
	end     chan struct{} // is closed when nothing is sent any more
	done    sync.WaitGroup

	mu      sync.Mutex // guards what follows
	waiting []*item
	ended   []*item // finished, which the spool does not know yet
	bytes   int
	report  Undelivered
	fails   int       // in a row
	after   time.Time // not to be tried before
	closing bool
	oldEnd  time.Time // when Close stops sending alerts of earlier runs
}

func (o *outlet) start(ctx context.Context) {
	o.done.Go(func() {
		defer close(o.end)
		o.deliver(ctx)
	})
	if o.spool != nil {
		o.done.Go(o.keep)
	}
}

// add takes an alert, in no more time than it takes to compare it with others.
func (o *outlet) add(it *item) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closing && it.fresh {
		o.drop(it)
		return
	}
	it.settled = it.settled || o.spool == nil
	it.born = time.Now()
	o.waiting = append(o.waiting, it)
	o.bytes += len(it.body)
	for len(o.waiting) > mostItems || o.bytes > mostBytes {
		least := 0
		for i, one := range o.waiting {
			if one.level <= o.waiting[least].level {
				least = i
			}
		}
		gone := o.waiting[least]
		o.take(gone)
		o.drop(gone)
	}
	nudge(o.unkept)
	nudge(o.wake)
}

// take removes an item from those that wait. o.mu is held.
func (o *outlet) take(it *item) {
	for i, one := range o.waiting {
		if one == it {
			o.waiting = append(o.waiting[:i], o.waiting[i+1:]...)
			o.bytes -= len(it.body)
			return
		}
	}
}

// drop counts an alert that this run will not deliver. o.mu is held.
func (o *outlet) drop(it *item) {
	it.gone = true
	switch {
	case !it.fresh:
		o.report.Old++
		return
	case it.journal != nil:
		o.report.Kept++
	default:
		o.report.Lost++
	}
	if len(o.report.First) < firstIDs {
		o.report.First = append(o.report.First, it.id)
	}
}

func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// keep writes to the spool what was raised and what is finished, and fetches what
// an earlier run left when nothing of another one waits.
func (o *outlet) keep() {
	for over := false; ; {
		o.mu.Lock()
		var raised []*item
		old := o.closing && (o.fails > 0 || time.Now().After(o.oldEnd))
		for _, it := range o.waiting {
			if !it.settled {
				raised = append(raised, it)
			}
			old = old || !it.fresh
		}
		ended := o.ended
		o.ended = nil
		o.mu.Unlock()
		for _, it := range raised {
			o.settle(it)
		}
		for _, it := range ended {
			it.journal.delivered(it.entry)
		}
		if over {
			o.spool.close()
			return
		}
		if !old {
			o.fetch()
		}
		select {
		case <-o.unkept:
		case <-o.end:
			over = true
		}
	}
}

func (o *outlet) settle(it *item) {
	j, entry := o.spool.keep(it.body)
	o.mu.Lock()
	defer o.mu.Unlock()
	it.journal, it.entry, it.settled = j, entry, true
	switch {
	case j == nil:
	case it.finished: // the disk was so slow that it was sent meanwhile
		o.ended = append(o.ended, it)
		nudge(o.unkept)
	case it.gone:
		o.report.Lost--
		o.report.Kept++
	}
	nudge(o.wake)
}

func (o *outlet) fetch() {
	items, aged := o.spool.left()
	o.mu.Lock()
	o.report.Aged += aged
	o.mu.Unlock()
	for _, it := range items {
		o.add(it)
	}
}

// deliver sends until the run is over and nothing waits, or ctx ends.
func (o *outlet) deliver(ctx context.Context) {
	for ctx.Err() == nil {
		it, wait, over := o.next()
		if over {
			return
		}
		if it == nil {
			o.pause(ctx, wait)
			continue
		}
		one, cancel := ctx, context.CancelFunc(func() {})
		if o.timeout > 0 {
			one, cancel = context.WithTimeout(ctx, o.timeout)
		}
		err := o.sink.send(one, it.body)
		cancel()
		if err != nil && ctx.Err() != nil {
			return // Close waits no longer; what failed before says more than that
		}
		o.result(it, err)
	}
}

// next is what to send now: what was tried least, then the most severe, then
// what is of this run, then the first. Without one it says how long to wait, 0
// for until something happens, or that all is over.
func (o *outlet) next() (best *item, wait time.Duration, over bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	pending := 0
	for _, it := range o.waiting {
		if o.closing && !it.fresh && (o.fails > 0 || now.After(o.oldEnd)) {
			continue // the end of the run does not wait for these
		}
		pending++
		if left := slowDisk - now.Sub(it.born); !it.settled && left > 0 {
			wait = max(wait, left)
		} else if best == nil || it.before(best) {
			best = it
		}
	}
	if pending == 0 && o.closing {
		return nil, 0, true
	}
	if left := o.after.Sub(now); left > 0 && pending > 0 {
		return nil, left, false
	}
	return best, wait, false
}

func (it *item) before(other *item) bool {
	if a, b := it.tries/stubborn, other.tries/stubborn; a != b {
		return a < b
	}
	if it.level != other.level {
		return it.level > other.level
	}
	return it.fresh && !other.fresh
}

// pause waits for something to do; 0 is without end.
func (o *outlet) pause(ctx context.Context, wait time.Duration) {
	var timer <-chan time.Time
	if wait > 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		timer = t.C
	}
	select {
	case <-o.wake:
	case <-timer:
	case <-ctx.Done():
	}
}

// result takes in how an attempt ended.
func (o *outlet) result(it *item, err error) {
	var final *refusal
	var later *busy
	o.mu.Lock()
	first := err != nil && o.report.Err == nil
	if err != nil {
		o.report.Err = err
	}
	finished := err == nil || errors.As(err, &final)
	if finished {
		o.take(it)
		o.fails, o.after = 0, time.Time{}
	} else {
		it.tries++
		o.fails++
		wait := o.timing.after(o.fails)
		if errors.As(err, &later) {
			wait = max(wait, min(later.after, o.timing.most))
		}
		o.after = time.Now().Add(wait)
	}
	if it.finished = finished; finished && it.journal != nil {
		o.ended = append(o.ended, it)
		nudge(o.unkept)
	}
	if final != nil {
		o.refused(it)
	}
	o.mu.Unlock()
	if first && o.failed != nil {
		go o.failed(o.name, err)
	}
}

// refused counts an alert that the sink will never take. o.mu is held.
func (o *outlet) refused(it *item) {
	if !it.fresh {
		o.report.Aged++
		return
	}
	o.report.Lost++
	if len(o.report.First) < firstIDs {
		o.report.First = append(o.report.First, it.id)
	}
}

// after is how long to wait after so many failures in a row: twice as long each
// time, and not at the same moment as all others who wait for the same server.
func (t timing) after(fails int) time.Duration {
	d := t.most
	if fails < 30 {
		d = min(t.most, t.first<<(fails-1))
	}
	return d/2 + rand.N(d/2+1)
}

// close says that the run is over: what waits is tried again at once.
func (o *outlet) close(deadline time.Time) {
	o.mu.Lock()
	o.closing, o.after = true, time.Time{}
	o.oldEnd = time.Now().Add(o.timing.old)
	if o.oldEnd.After(deadline) {
		o.oldEnd = deadline
	}
	if o.fails > 1 {
		o.fails = 1 // what is left of the grace is for more than one attempt
	}
	o.mu.Unlock()
	nudge(o.wake)
}

// finish waits for the goroutines, which Close's deadline ends, and reports. A
// disk or terminal that hangs is left behind.
func (o *outlet) finish(deadline time.Time) error {
	ended := make(chan struct{})
	go func() { o.done.Wait(); close(ended) }()
	select {
	case <-ended:
		if s, ok := o.sink.(interface{ close() }); ok {
			s.close()
		}
	case <-time.After(time.Until(deadline) + o.timing.old):
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, it := range o.waiting {
		o.drop(it)
	}
	o.waiting = nil
	u := o.report
	if u.Kept+u.Lost+u.Old+u.Aged == 0 {
		return nil
	}
	u.Sink = o.name
	return &u
}
