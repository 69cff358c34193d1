package consent

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
)

// state is where a request stands.
type state int

const (
	recording state = iota // nobody has been asked yet
	waiting                // for an answer
	deciding               // somebody or something has decided; nobody else can
)

// pending is a Request that waits. Its fields are guarded by the lock of the
// desk, and once it is being decided those of Request do not change.
type pending struct {
	Request
	state   state
	ends    moment
	timer   *time.Timer
	waiters []*waiter
	decided ended // how, from the moment that state is deciding
}

// waiter is one attempt.
type waiter struct {
	attempt event.Attempt
	ruling  chan event.Ruling // with room for the one
	at      *pending          // guarded by the lock of the desk, as is gone
	gone    bool
}

// claim makes how the sole reason for which p ends. It reports false where it
// ends already.
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

// Ask is what is to become of an attempt that the rule (as file:line, with its
// reason) wants a human to decide. It returns at once: allowed where a live
// grant covers the attempt, denied where nobody can be asked, else with Wait.
func (d *Desk) Ask(a event.Attempt, rule, reason string) event.Ruling {
	a.Process.Argv, a.Interpreted = slices.Clone(a.Process.Argv), slices.Clone(a.Interpreted)
	a.Environment = slices.Clone(a.Environment)
	q := question{attempt: a, rule: rule, reason: reason}
	if !d.enter() {
		return d.refuse(q, outcomeClosed, "the run is over")
	}
	defer d.ops.Done()
	q.digest = d.digest(a)
	now := d.clock.moment()
	d.mu.Lock()
	if g := d.covering(a, now); g != nil {
		g.Used++
		used, over := g.Grant, g.over
		d.dropUsed(g)
		d.mu.Unlock()
		return d.use(q, used, over)
	}
	if d.config.Timeout <= 0 || len(d.config.Approvers) == 0 { // no answer would be taken
		d.mu.Unlock()
		return d.refuse(q, outcomeNobody, "a human would have to allow it, and this run asks nobody")
	}
	w, fresh, why := d.join(q, now)
	d.mu.Unlock()
	if why != "" {
		return d.refuse(q, outcomeLimit, why)
	}
	if fresh != nil {
		d.announce(fresh)
	}
	return event.Ruling{Verdict: event.Unknown, Rule: rule, Reason: reason, Wait: func(ctx context.Context) event.Ruling {
		return d.wait(ctx, q, w)
	}}
}

// Deny refuses an attempt because a rule says so without asking, and records it.
func (d *Desk) Deny(a event.Attempt, rule, reason string) event.Ruling {
	return d.refuse(question{attempt: a, rule: rule, reason: reason, digest: d.digest(a)}, outcomeRule, reason)
}

// question is what is asked.
type question struct {
	attempt              event.Attempt
	rule, reason, digest string
}

// covering is a grant that covers a; nil for none.
func (d *Desk) covering(a event.Attempt, now moment) *grant {
	for _, g := range d.grants {
		if g.live(now) && d.cover(&g.Covers, a) && g.Verify(d.GrantKey()) {
			return g
		}
	}
	return nil
}

// use records a use that was taken of g, and lets the attempt go on then, until over.
func (d *Desk) use(q question, g Grant, over <-chan struct{}) event.Ruling {
	d.changed()
	if err := d.recordUse(q, g); err != nil {
		return event.Ruling{Verdict: event.Denied, Rule: q.rule, Reason: "the use of an approval could not be recorded"}
	}
	return event.Ruling{Verdict: event.Allowed, Granted: true, Rule: q.rule, Reason: "allowed by " + g.By, Over: over}
}

// join puts a question to the request that asks the same, or to a fresh one; why
// says why it is not asked at all. The lock is held.
func (d *Desk) join(q question, now moment) (w *waiter, fresh *pending, why string) {
	w = &waiter{attempt: q.attempt, ruling: make(chan event.Ruling, 1)}
	if p := d.same[q.digest+q.rule]; p != nil && p.state != deciding {
		if len(p.waiters) >= d.config.Limits.Waiters {
			return nil, nil, "too many of the same wait already"
		}
		w.at = p
		p.waiters = append(p.waiters, w)
		p.Count = len(p.waiters)
		d.wake()
		return w, nil, ""
	}
	if why := d.limits.ask(q.digest, len(d.pending), now.mono); why != "" {
		return nil, nil, why
	}
	return w, d.open(q, []*waiter{w}, now), ""
}

// open makes a request, which is not shown before it is announced. The lock is
// held.
func (d *Desk) open(q question, waiters []*waiter, now moment) *pending {
	ends := now.add(d.config.Timeout)
	p := &pending{ends: ends, waiters: waiters, Request: Request{
		ID: d.newID(), Nonce: rand.Text(), Session: d.config.Session, Asked: now.wall, Expires: ends.wall,
		Attempt: q.attempt, Rule: q.rule, Reason: q.reason, Digest: q.digest, Count: len(waiters),
	}}
	for _, w := range waiters {
		w.at = p
	}
	d.pending[p.ID] = p
	d.same[q.digest+q.rule] = p
	return p
}

// newID is a name that nothing of the desk has or had lately.
func (d *Desk) newID() string {
	for {
		id := strings.ToLower(rand.Text()[:6])
		if d.pending[id] == nil && !d.past.has(id) && !slices.ContainsFunc(d.grants, func(g *grant) bool { return g.ID == id }) {
			return id
		}
	}
}

// announce records a request, and then shows it.
func (d *Desk) announce(p *pending) {
	var chain []Asker
	if d.config.Chain != nil {
		chain = d.config.Chain(p.Attempt.Process)
	}
	writable := d.writable(p.Attempt)
	d.mu.Lock()
	p.Chain, p.Writable = chain, writable
	shown := p.Request
	d.mu.Unlock()
	err := d.recordRequest(shown)
	d.mu.Lock()
	p.state = waiting
	if v := d.stillborn(p, err); v.outcome != "" {
		p.claim(v.outcome)
		d.mu.Unlock()
		d.settle(p, v)
		return
	}
	p.timer = time.AfterFunc(d.config.Timeout, func() { d.expire(p) })
	shown = p.Request
	d.wake()
	d.mu.Unlock()
	if d.config.Notify != nil {
		go d.config.Notify(shown)
	}
}

// stillborn is why a request ends before it is shown. The lock is held.
func (d *Desk) stillborn(p *pending, err error) decision {
	switch {
	case err != nil:
		return decision{outcome: outcomeRecord, reason: "the request could not be recorded"}
	case d.closed:
		return decision{outcome: outcomeClosed, reason: reasonClosed}
	case len(p.waiters) == 0:
		return decision{outcome: outcomeGone, reason: reasonGone}
	}
	return decision{}
}

func (d *Desk) writable(a event.Attempt) bool {
	if a.Kind != event.KindExec || d.config.Writable == nil {
		return false
	}
	return d.config.Writable(a.Process.Executable) || a.Script != "" && d.config.Writable(a.Script)
}

// expire ends a request that nobody answered.
func (d *Desk) expire(p *pending) {
	if !d.enter() {
		return
	}
	defer d.ops.Done()
	d.mu.Lock()
	mine := p.claim(outcomeTimeout)
	d.mu.Unlock()
	if mine {
		d.settle(p, decision{outcome: outcomeTimeout, reason: "nobody answered in time"})
	}
}

// wait returns what was decided of an attempt, and takes it back when ctx ends.
func (d *Desk) wait(ctx context.Context, q question, w *waiter) event.Ruling {
	select {
	case r := <-w.ruling:
		return r
	case <-ctx.Done():
	}
	d.mu.Lock()
	select {
	case r := <-w.ruling: // it was decided before
		d.mu.Unlock()
		return r
	default:
	}
	p := w.at
	last := d.leave(p, w)
	d.wake()
	d.mu.Unlock()
	if last {
		defer d.ops.Done()
		d.settle(p, decision{outcome: outcomeGone, reason: reasonGone})
	}
	return event.Ruling{Verdict: event.Denied, Rule: q.rule, Reason: reasonGone}
}

// leave takes w off its request, and reports whether it was the last there and
// the request ends with it: then the caller settles it, as one of d.ops. The
// lock is held.
func (d *Desk) leave(p *pending, w *waiter) bool {
	w.gone = true
	if p.state == deciding {
		return false // whoever decides passes over it
	}
	p.waiters = slices.DeleteFunc(p.waiters, func(o *waiter) bool { return o == w })
	p.Count = len(p.waiters)
	if len(p.waiters) > 0 || d.closed || !p.claim(outcomeGone) {
		return false
	}
	d.ops.Add(1)
	return true
}

// Pending are the requests that wait, the oldest first.
func (d *Desk) Pending() []Request {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []Request
	for _, p := range d.pending {
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
