package consent

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
)

// Config is what a Queue needs.
type Config struct {
	Session   string
	Sink      event.Sink          // where requests, answers and uses are recorded; what cannot be recorded is denied
	Grant     ed25519.PrivateKey  // signs grants; nil: one of this queue alone
	Approvers []ed25519.PublicKey // an answer needs the signature of one of them; without any, no human is asked
	Timeout   time.Duration       // how long a request waits; 0: no human is asked and everything is denied
	Limits    Limits

	// Notify is called with each new request, in a goroutine of its own that
	// nothing waits for.
	Notify func(Request)

	Chain    func(event.Process) []Asker // the asking programs, the nearest first; nil: not known
	Writable func(path string) bool      // whether what runs inside may write that file; nil: not known
	Now      func() time.Time            // wall clock; nil: time.Now
}

// Limits bound how much a human is asked. What is beyond them is denied without
// asking. A zero field has the default in its comment.
type Limits struct {
	Pending   int           // requests that wait at a time: 16
	PerMinute int           // new requests within a minute: 30
	Waiters   int           // identical attempts that wait on one request: 256
	Again     int           // how often the same is asked about after it was denied: 3
	Calm      time.Duration // how long nothing is asked about after PerMinute, nor the same after Again: 5 minutes
}

func (l Limits) complete() Limits {
	or := func(n *int, value int) {
		if *n == 0 {
			*n = value
		}
	}
	or(&l.Pending, 16)
	or(&l.PerMinute, 30)
	or(&l.Waiters, 256)
	or(&l.Again, 3)
	if l.Calm == 0 {
		l.Calm = 5 * time.Minute
	}
	return l
}

// Queue keeps the requests of a run until they are answered. Its methods may be
// called from several goroutines at once.
type Queue struct {
	config Config
	key    [32]byte // of digests; without it, a secret cannot be found by trying
	clock  clock
	ops    sync.WaitGroup // work in progress that Close waits for

	mu       sync.Mutex
	closed   bool
	pending  map[string]*pending // by id
	same     map[string]*pending // by digest and rule
	grants   []*grant
	recent   recent
	limits   limiter
	watchers map[*watcher]struct{}
	attended int
}

// New makes a queue. Nothing is started.
func New(c Config) (*Queue, error) {
	if c.Session == "" || c.Sink == nil {
		return nil, errors.New("making a queue for approvals: a session and a record are needed")
	}
	if c.Grant == nil {
		_, key, err := ed25519.GenerateKey(rand.Reader)
		if err != nil {
			return nil, fmt.Errorf("making a key for grants: %w", err)
		}
		c.Grant = key
	}
	if len(c.Grant) != ed25519.PrivateKeySize {
		return nil, errors.New("making a queue for approvals: the key for grants is not an ed25519 key")
	}
	for _, k := range c.Approvers {
		if len(k) != ed25519.PublicKeySize {
			return nil, errors.New("making a queue for approvals: an approver's key is not an ed25519 key")
		}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	c.Limits = c.Limits.complete()
	d := &Queue{
		config: c, clock: clock{wall: c.Now, start: time.Now()}, limits: newLimiter(c.Limits),
		pending: map[string]*pending{}, same: map[string]*pending{}, watchers: map[*watcher]struct{}{},
	}
	rand.Read(d.key[:])
	return d, nil
}

// GrantKey is the key by which the queue's grants are verified.
func (q *Queue) GrantKey() ed25519.PublicKey { return q.config.Grant.Public().(ed25519.PublicKey) }

// enter joins the work that Close waits for; false after Close.
func (q *Queue) enter() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	q.ops.Add(1)
	return true
}

// Close denies everything that waits, and returns when no work of the queue is
// in progress any more. What is asked afterwards is denied.
func (q *Queue) Close() {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		q.ops.Wait()
		return
	}
	q.closed = true
	var waiting []*pending
	for _, p := range q.pending {
		if p.claim(outcomeClosed) {
			waiting = append(waiting, p)
		}
	}
	for _, g := range q.grants {
		g.stop()
	}
	q.grants = nil
	q.mu.Unlock()
	for _, p := range waiting {
		q.settle(p, decision{outcome: outcomeClosed, reason: reasonClosed})
	}
	q.ops.Wait()
	q.flush()
	q.unwatch()
}

// clock reads two clocks: a wall clock that is set back must not make anything
// last longer, and a monotonic one stops while the machine sleeps.
type clock struct {
	wall  func() time.Time
	start time.Time
}

func (c clock) moment() moment { return moment{c.wall().Round(0), time.Since(c.start)} }

// moment is a point in time by both clocks.
type moment struct {
	wall time.Time
	mono time.Duration // since the queue was made
}

func (m moment) add(d time.Duration) moment { return moment{m.wall.Add(d), m.mono + d} }

// reached reports whether m has come by either clock.
func (m moment) reached(now moment) bool { return !now.wall.Before(m.wall) || now.mono >= m.mono }
