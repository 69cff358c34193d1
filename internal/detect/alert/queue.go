package alert

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Limits of what waits for a sink. Above them the least severe is dropped
// first, so that a flood of small alerts hides no great one.
const (
	mostItems    = 1024
	mostBytes    = 4 << 20
	triesInFront = 5 // attempts after which an alert lets others go first
)

// item is an alert on its way to one sink.
type item struct {
	n     uint64 // detect.Alert.N
	body  []byte
	level int
	tries int
}

// sinkQueue is a sink with the alerts that wait for it. One goroutine sends, so that a slow
// sink holds up neither the run nor another sink.
type sinkQueue struct {
	name     string
	recorded bool // the record has what it did not get
	noBound  bool // mostItems and mostBytes do not hold
	least    int  // level
	timeout  time.Duration
	sink     sink
	timing   timing
	failed   func(string, error)
	wake     chan struct{} // something is to be sent
	end      chan struct{} // closed when nothing more is sent

	mu      sync.Mutex // guards what follows
	waiting []*item
	bytes   int
	missed  []uint64  // alerts that were dropped or refused; detection bounds how many a run has
	err     error     // the last failure
	fails   int       // in a row
	after   time.Time // not to be tried before
	closing bool
}

// add queues an alert; it takes no longer than comparing it with others.
func (o *sinkQueue) add(it *item) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closing {
		o.missed = append(o.missed, it.n)
		return
	}
	o.waiting = append(o.waiting, it)
	o.bytes += len(it.body)
	for !o.noBound && (len(o.waiting) > mostItems || o.bytes > mostBytes) {
		least := 0
		for i, one := range o.waiting {
			if one.level <= o.waiting[least].level {
				least = i
			}
		}
		o.giveUp(o.waiting[least])
	}
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// remove removes an item from those that wait. o.mu is held.
func (o *sinkQueue) remove(it *item) {
	if i := slices.Index(o.waiting, it); i >= 0 {
		o.waiting = slices.Delete(o.waiting, i, i+1)
		o.bytes -= len(it.body)
	}
}

// giveUp gives up an alert: the sink does not get it from this run. o.mu is held.
func (o *sinkQueue) giveUp(it *item) {
	o.remove(it)
	o.missed = append(o.missed, it.n)
}

// deliver sends until the run is over and nothing waits, or ctx ends.
func (o *sinkQueue) deliver(ctx context.Context) {
	defer close(o.end)
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
			return // Close waits no longer; the failure before says more than that
		}
		o.result(it, err)
	}
}

// next returns what to send now: what was tried least, then the most severe,
// then the first. Without one it returns how long to wait, 0 until something
// happens, or that all is over.
func (o *sinkQueue) next() (best *item, wait time.Duration, over bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.waiting) == 0 {
		return nil, 0, o.closing
	}
	if left := time.Until(o.after); left > 0 {
		return nil, left, false
	}
	for _, it := range o.waiting {
		if best == nil || it.before(best) {
			best = it
		}
	}
	return best, 0, false
}

func (it *item) before(other *item) bool {
	if a, b := it.tries/triesInFront, other.tries/triesInFront; a != b {
		return a < b
	}
	return it.level > other.level
}

// pause waits for something to do; 0 means without limit.
func (o *sinkQueue) pause(ctx context.Context, wait time.Duration) {
	var timer <-chan time.Time
	if wait > 0 {
		timer = time.After(wait)
	}
	select {
	case <-o.wake:
	case <-timer:
	case <-ctx.Done():
	}
}

// result notes the result of an attempt.
func (o *sinkQueue) result(it *item, err error) {
	var final *refusal
	var later *retryLater
	o.mu.Lock()
	first := err != nil && o.err == nil
	if err != nil {
		o.err = err
	}
	switch {
	case err == nil:
		o.remove(it)
		o.fails, o.after = 0, time.Time{}
	case errors.As(err, &final):
		o.giveUp(it)
		o.fails, o.after = 0, time.Time{}
	default:
		it.tries++
		o.fails++
		wait := o.timing.after(o.fails)
		if errors.As(err, &later) {
			wait = max(wait, min(later.after, o.timing.most))
		}
		o.after = time.Now().Add(wait)
	}
	o.mu.Unlock()
	if first && o.failed != nil {
		go o.failed(o.name, err)
	}
}

// after is how long to wait after so many failures in a row: twice as long each
// time, with a random part, so that not all senders try again at the same moment.
func (t timing) after(fails int) time.Duration {
	d := t.most
	if fails < 30 {
		d = min(t.most, t.first<<(fails-1))
	}
	return d/2 + rand.N(d/2+1)
}

// close says that the run is over: what waits is tried again at once.
func (o *sinkQueue) close() {
	o.mu.Lock()
	o.closing, o.after = true, time.Time{}
	o.fails = min(o.fails, 1) // leaves time for more than one attempt in the rest of the grace
	o.mu.Unlock()
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// finish waits for the goroutine, which Close's deadline ends, and returns what was
// not delivered; nil for nothing. It does not wait for a hanging disk or terminal.
func (o *sinkQueue) finish(deadline time.Time) *Undelivered {
	select {
	case <-o.end:
		if s, ok := o.sink.(interface{ close() }); ok {
			s.close()
		}
	case <-time.After(time.Until(deadline) + closeMargin):
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.waiting) > 0 {
		o.giveUp(o.waiting[0])
	}
	if len(o.missed) == 0 {
		return nil
	}
	return &Undelivered{Sink: o.name, Alerts: o.missed, Recorded: o.recorded, Err: o.err}
}
