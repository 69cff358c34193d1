package consent

import (
	"crypto/ed25519"
	"fmt"
	"path"
	"slices"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
)

// decision is how a request ends.
type decision struct {
	outcome string
	reason  string
	answer  *Answer // where somebody gave one
	key     []byte  // that signed it
}

// Answer decides a request. An error means that nothing was decided by it, but
// for ErrRecord: then the request was denied.
func (d *Desk) Answer(s Signed) error {
	a := s.Answer
	if !d.enter() {
		return ErrClosed
	}
	defer d.ops.Done()
	if err := d.verify(s); err != nil {
		return fmt.Errorf("answering %s: %w", Visible(a.Request), err)
	}
	d.mu.Lock()
	p, err := d.answerable(a)
	if err == nil && p.ends.over(d.clock.moment()) {
		// The timer of a machine that slept has not fired yet.
		p.claim(outcomeTimeout)
		d.mu.Unlock()
		d.settle(p, decision{outcome: outcomeTimeout, reason: reasonTimeout})
		return fmt.Errorf("answering %s: %w: nobody answered in time", p.ID, ErrAnswered)
	}
	if err != nil {
		d.mu.Unlock()
		return fmt.Errorf("answering %s: %w", Visible(a.Request), err)
	}
	p.claim(outcomeAnswer)
	p.decided.by, p.decided.allow = a.By, a.Allow
	d.mu.Unlock()
	if err := d.settle(p, decision{outcome: outcomeAnswer, reason: a.Reason, answer: &a, key: s.Key}); err != nil {
		return fmt.Errorf("answering %s: %w: %w", p.ID, ErrRecord, err)
	}
	return nil
}

// verify checks who signed s, and that it is of this session.
func (d *Desk) verify(s Signed) error {
	known := slices.ContainsFunc(d.config.Approvers, func(k ed25519.PublicKey) bool { return k.Equal(ed25519.PublicKey(s.Key)) })
	if !known || !ed25519.Verify(s.Key, s.Answer.signed(), s.Signature) {
		return ErrForged
	}
	if s.Answer.Session != d.config.Session {
		return fmt.Errorf("%w: it is of the run %s", ErrMismatch, Visible(s.Answer.Session))
	}
	return s.Answer.check()
}

// longestText is how long a text of an answer may be, in bytes.
const longestText = 4096

// check says what of an answer can never be.
func (a Answer) check() error {
	bad := func(why string) error { return fmt.Errorf("%w: %s", ErrInvalid, why) }
	switch {
	case a.By == "":
		return bad("it does not say who answers")
	case len(a.By) > longestText || len(a.Via) > longestText || len(a.Reason) > longestText:
		return bad(fmt.Sprintf("one of its texts is longer than %d bytes", longestText))
	case !a.Allow && (a.Scope != "" || a.For != 0 || a.Uses != 0 || a.Directory):
		return bad("a denial has no scope")
	case !a.Allow:
		return nil
	case a.Uses < 0:
		return bad("it allows less than nothing")
	}
	switch a.Scope {
	case Once:
		if a.For != 0 || a.Uses > 1 || a.Directory {
			return bad("once is one use, of this alone")
		}
	case Session:
		if a.For != 0 {
			return bad("scope session has no time")
		}
	case For:
		if a.For <= 0 || a.For > Longest || a.For%time.Second != 0 {
			return bad(fmt.Sprintf("the time is not one of whole seconds up to %v", Longest))
		}
	default:
		return bad("its scope is none of once, session and for")
	}
	return nil
}

// answerable is the request that a is for. The lock is held.
func (d *Desk) answerable(a Answer) (*pending, error) {
	p := d.pending[a.Request]
	switch {
	case a.Grant != "":
		return nil, fmt.Errorf("%w: it takes back an approval", ErrMismatch)
	case p == nil && d.past.has(a.Request):
		return nil, fmt.Errorf("%w: %s", ErrAnswered, d.past.how(a.Request))
	case p == nil || p.state == recording:
		return nil, ErrUnknown
	case p.Nonce != a.Nonce:
		return nil, fmt.Errorf("%w: the request is another one of the same name", ErrMismatch)
	case p.Digest != a.Digest:
		return nil, fmt.Errorf("%w: what would happen is not what was shown", ErrMismatch)
	case p.state == deciding:
		return nil, fmt.Errorf("%w: %s", ErrAnswered, p.decided)
	}
	if why := p.Limited(); why != "" && a.Allow && a.Scope != Once {
		return nil, fmt.Errorf("%w: it can be allowed only once, for %s", ErrInvalid, why)
	}
	if a.Directory && (p.Attempt.Kind != event.KindFile || !path.IsAbs(p.Attempt.Path) || path.Dir(p.Attempt.Path) == "/") {
		return nil, fmt.Errorf("%w: it has no directory that could be allowed", ErrInvalid)
	}
	return p, nil
}

// settle ends a request that was claimed: it records how, and then tells all who
// wait. The error is of the record; with one nobody is allowed anything.
func (d *Desk) settle(p *pending, v decision) error {
	var g *grant
	if v.answer != nil && v.answer.Allow {
		g = d.grant(p, *v.answer)
	}
	err := d.recordAnswer(p.Request, v, g)
	if err != nil {
		g = nil
		v.outcome, v.reason = outcomeRecord, "the answer could not be recorded"
	}
	d.mu.Lock()
	delete(d.pending, p.ID)
	if d.same[p.Digest+p.Rule] == p {
		delete(d.same, p.Digest+p.Rule)
	}
	now := d.clock.moment()
	if g == nil {
		d.limits.denied(p.Digest, v.outcome, now.mono)
	}
	p.decided.at = now.wall
	d.past.add(p.ID, p.decided)
	taken, rest := d.share(p, g, now)
	var again *pending
	if len(rest) > 0 && g != nil {
		again, v.outcome, v.reason = d.reopen(p, rest, now)
	}
	d.wake()
	d.mu.Unlock()
	q := question{attempt: p.Attempt, rule: p.Rule, reason: p.Reason, digest: p.Digest}
	for _, t := range taken {
		q.attempt = t.w.attempt
		t.w.ruling <- d.use(q, t.grant, g.over)
	}
	switch {
	case again != nil:
		d.announce(again)
	case g != nil && len(rest) > 0:
		for _, w := range rest {
			w.ruling <- d.refuse(q, v.outcome, v.reason)
		}
	default:
		for _, w := range rest {
			w.ruling <- event.Ruling{Verdict: event.Denied, Rule: p.Rule, Reason: v.text()}
		}
	}
	return err
}

// text is what whoever is refused is told.
func (v decision) text() string {
	if v.answer == nil || v.outcome != outcomeAnswer {
		return v.reason
	}
	if v.reason == "" {
		return "denied by " + v.answer.By
	}
	return "denied by " + v.answer.By + ": " + v.reason
}

// taking is a waiter that has a use of a grant.
type taking struct {
	w     *waiter
	grant Grant // after the use
}

// share makes g live, and gives each waiter of p a use of it while there are
// any, in the order in which they came; rest are those without one. The lock is
// held.
func (d *Desk) share(p *pending, g *grant, now moment) (taken []taking, rest []*waiter) {
	for _, w := range p.waiters {
		switch {
		case w.gone:
		case g != nil && !d.closed && g.live(now):
			g.Used++
			taken = append(taken, taking{w, g.Grant})
		default:
			rest = append(rest, w)
		}
	}
	if g != nil && !d.closed && g.Scope != Once {
		if g.live(now) {
			d.grants = append(d.grants, g)
		}
		if g.For() > 0 { // also where it is used up: what it allowed stands on it
			g.timer = time.AfterFunc(g.For(), func() { d.lapse(g) })
		}
	}
	return taken, rest
}

// reopen asks anew for those who got no use of an answer. The lock is held.
func (d *Desk) reopen(p *pending, rest []*waiter, now moment) (again *pending, outcome, why string) {
	if d.closed {
		return nil, outcomeClosed, reasonClosed
	}
	if why := d.limits.ask(p.Digest, len(d.pending), now.mono); why != "" {
		return nil, outcomeLimit, why
	}
	q := question{attempt: rest[0].attempt, rule: p.Rule, reason: p.Reason, digest: p.Digest}
	return d.open(q, rest, now), "", ""
}

// Revoke takes a grant back: nothing that is asked afterwards is covered by it, and
// what stands on it ends.
func (d *Desk) Revoke(s Signed) error {
	a := s.Answer
	if !d.enter() {
		return ErrClosed
	}
	defer d.ops.Done()
	err := d.verify(s)
	if err == nil && (a.Grant == "" || a.Request != "" || a.Allow) {
		err = fmt.Errorf("%w: it takes nothing back", ErrMismatch)
	}
	if err != nil {
		return fmt.Errorf("taking back %s: %w", Visible(a.Grant), err)
	}
	d.mu.Lock()
	i := slices.IndexFunc(d.grants, func(g *grant) bool { return g.ID == a.Grant })
	if i < 0 {
		d.mu.Unlock()
		return fmt.Errorf("taking back %s: %w: it is used up, over, or was taken back", Visible(a.Grant), ErrUnknown)
	}
	g := d.grants[i]
	g.stop()
	d.grants = slices.Delete(d.grants, i, i+1)
	d.wake()
	d.mu.Unlock()
	defer g.end() // whether or not it can be recorded
	if err := d.recordRevoke(g.Grant, s); err != nil {
		return fmt.Errorf("taking back %s, which holds: %w", g.ID, err)
	}
	return nil
}
