package consent

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
)

// state is the state of a request.
type state int

const (
	recording state = iota // no human has been asked yet
	waiting                // for an answer
	deciding               // it is decided; nothing else can decide it
)

// pending is a Request that waits. Its fields are guarded by the lock of the
// queue, and once it is being decided those of Request do not change.
type pending struct {
	Request
	state   state
	ends    moment
	timer   *time.Timer
	waiters []*waiter
	decided requestEnd // how, once state is deciding
}

// waiter is one attempt.
type waiter struct {
	attempt event.Attempt
	ruling  chan event.Ruling // has room for one ruling
	at      *pending          // guarded by the lock of the queue, as is gone
	gone    bool
}

// claim makes how the only reason for which p ends. It returns false if p already ends.
func (p *pending) claim(how string) bool {
	if p.state != waiting {
		return false
	}
	p.state, p.decided.outcome = deciding, how
	if p.timer != nil {
		p.timer.Stop()
	}
	return true
}

// Ask decides about an attempt that the rule (as file:line, with its reason)
// wants a human to decide. It returns at once: allowed if a live grant covers
// the attempt, denied if no human can be asked, else with Wait.
func (q *Queue) Ask(a event.Attempt, rule, reason string) event.Ruling {
	a.Process.Argv, a.Interpreted = slices.Clone(a.Process.Argv), slices.Clone(a.Interpreted)
	a.Environment = slices.Clone(a.Environment)
	asked := question{attempt: a, rule: rule, reason: reason}
	if !q.enter() {
		return q.refuse(asked, outcomeClosed, "the run is over")
	}
	defer q.ops.Done()
	asked.digest = q.digest(a)
	now := q.clock.moment()
	q.mu.Lock()
	if g := q.coveringGrant(a, now); g != nil {
		g.Used++
		used, over := g.Grant, g.over
		q.dropUsed(g)
		q.mu.Unlock()
		return q.use(asked, used, over)
	}
	if q.config.Timeout <= 0 || len(q.config.Approvers) == 0 { // no answer would be accepted
		q.mu.Unlock()
		return q.refuse(asked, outcomeNobody, "a human would have to allow it, and this run asks nobody")
	}
	w, fresh, why := q.join(asked, now)
	q.mu.Unlock()
	if why != "" {
		return q.refuse(asked, outcomeLimit, why)
	}
	if fresh != nil {
		q.publish(fresh)
	}
	return event.Ruling{Verdict: event.Unknown, Rule: rule, Reason: reason, Wait: func(ctx context.Context) event.Ruling {
		return q.wait(ctx, asked, w)
	}}
}

// Deny refuses an attempt because a rule says so without asking, and records it.
func (q *Queue) Deny(a event.Attempt, rule, reason string) event.Ruling {
	return q.refuse(question{attempt: a, rule: rule, reason: reason, digest: q.digest(a)}, outcomeRule, reason)
}

// question is what is asked.
type question struct {
	attempt              event.Attempt
	rule, reason, digest string
}

// coveringGrant is a grant that covers a; nil for none.
func (q *Queue) coveringGrant(a event.Attempt, now moment) *grant {
	for _, g := range q.grants {
		if g.live(now) && q.cover(&g.Covers, a) && g.Verify(q.GrantKey()) {
			return g
		}
	}
	return nil
}

// use records a use that was taken of g, and then allows the attempt, until over.
func (q *Queue) use(asked question, g Grant, over <-chan struct{}) event.Ruling {
	q.notifyWatchers()
	if err := q.recordUse(asked, g); err != nil {
		return event.Ruling{Verdict: event.Denied, Rule: asked.rule, Reason: "the use of an approval could not be recorded"}
	}
	return event.Ruling{Verdict: event.Allowed, Granted: true, Rule: asked.rule, Reason: "allowed by " + g.By, Over: over}
}

// join adds a question to the request that asks the same, or to a fresh one;
// why says why it is not asked at all. The lock is held.
func (q *Queue) join(asked question, now moment) (w *waiter, fresh *pending, why string) {
	w = &waiter{attempt: asked.attempt, ruling: make(chan event.Ruling, 1)}
	if p := q.same[asked.digest+asked.rule]; p != nil && p.state != deciding {
		if len(p.waiters) >= q.config.Limits.Waiters {
			return nil, nil, "too many identical requests are already waiting"
		}
		w.at = p
		p.waiters = append(p.waiters, w)
		p.Count = len(p.waiters)
		q.wake()
		return w, nil, ""
	}
	if why := q.limits.admit(asked.digest, len(q.pending), now.mono); why != "" {
		return nil, nil, why
	}
	return w, q.newPending(asked, []*waiter{w}, now), ""
}

// newPending makes a request, which is not shown before it is published. The lock is held.
func (q *Queue) newPending(asked question, waiters []*waiter, now moment) *pending {
	ends := now.add(q.config.Timeout)
	p := &pending{ends: ends, waiters: waiters, Request: Request{
		ID: q.newID(), Nonce: rand.Text(), Session: q.config.Session, Asked: now.wall, Expires: ends.wall,
		Attempt: asked.attempt, Rule: asked.rule, Reason: asked.reason, Digest: asked.digest, Count: len(waiters),
	}}
	for _, w := range waiters {
		w.at = p
	}
	q.pending[p.ID] = p
	q.same[asked.digest+asked.rule] = p
	return p
}

// newID is an id that nothing in the queue has, or had lately.
func (q *Queue) newID() string {
	for {
		id := strings.ToLower(rand.Text()[:6])
		if q.pending[id] == nil && !q.recent.has(id) && !slices.ContainsFunc(q.grants, func(g *grant) bool { return g.ID == id }) {
			return id
		}
	}
}

// publish records a request, and then shows it.
func (q *Queue) publish(p *pending) {
	var chain []Asker
	if q.config.Chain != nil {
		chain = q.config.Chain(p.Attempt.Process)
	}
	writable := q.writable(p.Attempt)
	q.mu.Lock()
	p.Chain, p.Writable = chain, writable
	shown := p.Request
	q.mu.Unlock()
	err := q.recordRequest(shown)
	q.mu.Lock()
	p.state = waiting
	if v := q.endBeforeShown(p, err); v.outcome != "" {
		p.claim(v.outcome)
		q.mu.Unlock()
		q.settle(p, v)
		return
	}
	p.timer = time.AfterFunc(q.config.Timeout, func() { q.expire(p) })
	shown = p.Request
	q.wake()
	q.mu.Unlock()
	if q.config.Notify != nil {
		go q.config.Notify(shown)
	}
}

// endBeforeShown returns why a request ends before it is shown; its outcome is
// "" if it is to be shown. The lock is held.
func (q *Queue) endBeforeShown(p *pending, err error) decision {
	switch {
	case err != nil:
		return decision{outcome: outcomeRecord, reason: "the request could not be recorded"}
	case q.closed:
		return decision{outcome: outcomeClosed, reason: reasonClosed}
	case len(p.waiters) == 0:
		return decision{outcome: outcomeGone, reason: reasonGone}
	}
	return decision{}
}

func (q *Queue) writable(a event.Attempt) bool {
	if a.Kind != event.KindExec || q.config.Writable == nil {
		return false
	}
	return q.config.Writable(a.Process.Executable) || a.Script != "" && q.config.Writable(a.Script)
}

// expire ends a request without an answer.
func (q *Queue) expire(p *pending) {
	if !q.enter() {
		return
	}
	defer q.ops.Done()
	q.mu.Lock()
	mine := p.claim(outcomeTimeout)
	q.mu.Unlock()
	if mine {
		q.settle(p, decision{outcome: outcomeTimeout, reason: "nobody answered in time"})
	}
}

// wait returns the decision on an attempt, and takes the attempt back when ctx ends.
func (q *Queue) wait(ctx context.Context, asked question, w *waiter) event.Ruling {
	select {
	case r := <-w.ruling:
		return r
	case <-ctx.Done():
	}
	q.mu.Lock()
	select {
	case r := <-w.ruling: // it was decided before
		q.mu.Unlock()
		return r
	default:
	}
	p := w.at
	last := q.leave(p, w)
	q.wake()
	q.mu.Unlock()
	if last {
		defer q.ops.Done()
		q.settle(p, decision{outcome: outcomeGone, reason: reasonGone})
	}
	return event.Ruling{Verdict: event.Denied, Rule: asked.rule, Reason: reasonGone}
}

// leave removes w from its request, and reports whether it was the last one and thereby
// ends the request: then the caller settles it, as one of q.ops. The lock is held.
func (q *Queue) leave(p *pending, w *waiter) bool {
	w.gone = true
	if p.state == deciding {
		return false // settle skips it
	}
	p.waiters = slices.DeleteFunc(p.waiters, func(o *waiter) bool { return o == w })
	p.Count = len(p.waiters)
	if len(p.waiters) > 0 || q.closed || !p.claim(outcomeGone) {
		return false
	}
	q.ops.Add(1)
	return true
}

// Pending returns the requests that wait, the oldest first.
func (q *Queue) Pending() []Request {
	q.mu.Lock()
	defer q.mu.Unlock()
	var list []Request
	for _, p := range q.pending {
		if p.state == waiting {
			list = append(list, p.Request)
		}
	}
	slices.SortFunc(list, func(a, b Request) int {
		if c := a.Asked.Compare(b.Asked); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return list
}
