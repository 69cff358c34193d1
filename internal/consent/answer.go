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
	answer  *Answer // if there was one
	key     []byte  // that signed the answer
}

// Answer decides a request. An error means that the answer decided nothing,
// except for ErrRecord: then the request was denied.
func (q *Queue) Answer(s Signed) error {
	a := s.Answer
	if !q.enter() {
		return ErrClosed
	}
	defer q.ops.Done()
	if err := q.verify(s); err != nil {
		return fmt.Errorf("answering %s: %w", Visible(a.Request), err)
	}
	q.mu.Lock()
	p, err := q.answerable(a)
	if err == nil && p.ends.reached(q.clock.moment()) {
		// If the machine slept, the timer has not fired yet.
		p.claim(outcomeTimeout)
		q.mu.Unlock()
		q.settle(p, decision{outcome: outcomeTimeout, reason: reasonTimeout})
		return fmt.Errorf("answering %s: %w: nobody answered in time", p.ID, ErrAnswered)
	}
	if err != nil {
		q.mu.Unlock()
		return fmt.Errorf("answering %s: %w", Visible(a.Request), err)
	}
	p.claim(outcomeAnswer)
	p.decided.by, p.decided.allow = a.By, a.Allow
	q.mu.Unlock()
	if err := q.settle(p, decision{outcome: outcomeAnswer, reason: a.Reason, answer: &a, key: s.Key}); err != nil {
		return fmt.Errorf("answering %s: %w: %w", p.ID, ErrRecord, err)
	}
	return nil
}

// verify checks the signer of s, and that s is of this session.
func (q *Queue) verify(s Signed) error {
	known := slices.ContainsFunc(q.config.Approvers, func(k ed25519.PublicKey) bool { return k.Equal(ed25519.PublicKey(s.Key)) })
	if !known || !ed25519.Verify(s.Key, s.Answer.signedText(), s.Signature) {
		return ErrForged
	}
	if s.Answer.Session != q.config.Session {
		return fmt.Errorf("%w: it belongs to the run %s", ErrMismatch, Visible(s.Answer.Session))
	}
	return s.Answer.check()
}

// longestText is how long a text of an answer may be, in bytes.
const longestText = 4096

// check returns what in an answer can never be valid.
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
		return bad("it allows a negative number of uses")
	}
	switch a.Scope {
	case Once:
		if a.For != 0 || a.Uses > 1 || a.Directory {
			return bad("scope once is a single use of this request alone")
		}
	case Session:
		if a.For != 0 {
			return bad("scope session has no time")
		}
	case For:
		if a.For <= 0 || a.For > Longest || a.For%time.Second != 0 {
			return bad(fmt.Sprintf("the time must be in whole seconds, at most %v", Longest))
		}
	default:
		return bad("its scope is not once, session or for")
	}
	return nil
}

// answerable returns the request that a is for. The lock is held.
func (q *Queue) answerable(a Answer) (*pending, error) {
	p := q.pending[a.Request]
	switch {
	case a.Grant != "":
		return nil, fmt.Errorf("%w: it revokes an approval", ErrMismatch)
	case p == nil && q.recent.has(a.Request):
		return nil, fmt.Errorf("%w: %s", ErrAnswered, q.recent.endText(a.Request))
	case p == nil || p.state == recording:
		return nil, ErrUnknown
	case p.Nonce != a.Nonce:
		return nil, fmt.Errorf("%w: the request is another one with the same name", ErrMismatch)
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

// settle ends a request that was claimed: it records how, and then informs all
// waiters. The error is of the record; with one, no waiter is allowed anything.
func (q *Queue) settle(p *pending, v decision) error {
	var g *grant
	if v.answer != nil && v.answer.Allow {
		g = q.grant(p, *v.answer)
	}
	err := q.recordAnswer(p.Request, v, g)
	if err != nil {
		g = nil
		v.outcome, v.reason = outcomeRecord, "the answer could not be recorded"
	}
	q.mu.Lock()
	delete(q.pending, p.ID)
	if q.same[p.Digest+p.Rule] == p {
		delete(q.same, p.Digest+p.Rule)
	}
	now := q.clock.moment()
	if g == nil {
		q.limits.noteDenial(p.Digest, v.outcome, now.mono)
	}
	p.decided.at = now.wall
	q.recent.add(p.ID, p.decided)
	taken, rest := q.share(p, g, now)
	var again *pending
	if len(rest) > 0 && g != nil {
		again, v.outcome, v.reason = q.reopen(p, rest, now)
	}
	q.wake()
	q.mu.Unlock()
	asked := question{attempt: p.Attempt, rule: p.Rule, reason: p.Reason, digest: p.Digest}
	for _, t := range taken {
		asked.attempt = t.w.attempt
		t.w.ruling <- q.use(asked, t.grant, g.over)
	}
	switch {
	case again != nil:
		q.publish(again)
	case g != nil && len(rest) > 0:
		for _, w := range rest {
			w.ruling <- q.refuse(asked, v.outcome, v.reason)
		}
	default:
		for _, w := range rest {
			w.ruling <- event.Ruling{Verdict: event.Denied, Rule: p.Rule, Reason: v.text()}
		}
	}
	return err
}

// text is the reason for a refused waiter.
func (v decision) text() string {
	if v.answer == nil || v.outcome != outcomeAnswer {
		return v.reason
	}
	if v.reason == "" {
		return "denied by " + v.answer.By
	}
	return "denied by " + v.answer.By + ": " + v.reason
}

// grantedUse is a waiting attempt with the use of a grant that is reserved for it.
type grantedUse struct {
	w     *waiter
	grant Grant // after the use
}

// share makes g live, and gives each waiter of p a use of it while there are any,
// in the order of their arrival; rest are those without one. The lock is held.
func (q *Queue) share(p *pending, g *grant, now moment) (taken []grantedUse, rest []*waiter) {
	for _, w := range p.waiters {
		switch {
		case w.gone:
		case g != nil && !q.closed && g.live(now):
			g.Used++
			taken = append(taken, grantedUse{w, g.Grant})
		default:
			rest = append(rest, w)
		}
	}
	if g != nil && !q.closed && g.Scope != Once {
		if g.live(now) {
			q.grants = append(q.grants, g)
		}
		if g.For() > 0 { // even if it is used up: what it allowed depends on it
			g.timer = time.AfterFunc(g.For(), func() { q.lapse(g) })
		}
	}
	return taken, rest
}

// reopen makes a new request for the waiters that got no use of an answer. The lock is held.
func (q *Queue) reopen(p *pending, rest []*waiter, now moment) (again *pending, outcome, why string) {
	if q.closed {
		return nil, outcomeClosed, reasonClosed
	}
	if why := q.limits.admit(p.Digest, len(q.pending), now.mono); why != "" {
		return nil, outcomeLimit, why
	}
	asked := question{attempt: rest[0].attempt, rule: p.Rule, reason: p.Reason, digest: p.Digest}
	return q.newPending(asked, rest, now), "", ""
}

// Revoke takes a grant back: it covers nothing that is asked afterwards, and
// what depends on it ends.
func (q *Queue) Revoke(s Signed) error {
	a := s.Answer
	if !q.enter() {
		return ErrClosed
	}
	defer q.ops.Done()
	err := q.verify(s)
	if err == nil && (a.Grant == "" || a.Request != "" || a.Allow) {
		err = fmt.Errorf("%w: it revokes nothing", ErrMismatch)
	}
	if err != nil {
		return fmt.Errorf("revoking %s: %w", Visible(a.Grant), err)
	}
	q.mu.Lock()
	i := slices.IndexFunc(q.grants, func(g *grant) bool { return g.ID == a.Grant })
	if i < 0 {
		q.mu.Unlock()
		return fmt.Errorf("revoking %s: %w: it is used up, expired or already revoked", Visible(a.Grant), ErrUnknown)
	}
	g := q.grants[i]
	g.stop()
	q.grants = slices.Delete(q.grants, i, i+1)
	q.wake()
	q.mu.Unlock()
	defer g.end() // whether or not it can be recorded
	if err := q.recordRevoke(g.Grant, s); err != nil {
		return fmt.Errorf("revoking %s, which holds: %w", g.ID, err)
	}
	return nil
}
