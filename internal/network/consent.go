package network

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
)

// An attempt that waits for a human is held where it would continue: an accepted
// connection of which nothing is read, or a request of which only the head was read.
// Nothing of it has left, and nothing was requested upstream. It occupies one of a
// bounded number of places, and ends with its client and with the run.

// approvalOrigin is the origin of a permit that a human gave, where the ruling names no rule.
const approvalOrigin = "approval"

// goneTick is how often a held attempt's client is checked for being still there.
const goneTick = 100 * time.Millisecond

// judgeMost is how often one attempt is judged if the rules change meanwhile.
const judgeMost = 4

var (
	errGone    = errors.New("the client went away before there was an answer")
	errCrowded = errors.New("too much waits for an answer already")
)

// wants reports whether rules of consent can be about a kind.
func (e *Engine) wants(k event.Kind) bool {
	return e.config.Gate != nil && (e.config.Wants == nil || e.config.Wants(k))
}

// mayAsk reports whether a human could be asked about a kind at this moment.
func (e *Engine) mayAsk(k event.Kind) bool {
	return e.wants(k) && (e.config.Asks == nil || e.config.Asks(k))
}

// askable reports whether a human can be asked about a name that no rule knows, so that
// it is answered: it could be the name of a host of the public network.
func askable(name string) bool {
	return strings.Contains(name, ".") && serviceOf(name) == ""
}

// judge applies the rules of consent to an attempt. If a human must decide, it waits
// for the decision as long as the client does. The process is looked up only if a rule
// could be about the attempt: that costs more than all the rest.
func (e *Engine) judge(ctx context.Context, a event.Attempt) event.Ruling {
	a.Cut = true
	if e.config.MayConcern != nil && !e.config.MayConcern(a) {
		return event.Ruling{Verdict: event.Allowed}
	}
	a.Cut, a.Process = false, e.client(ctx)
	r := e.config.Gate.Judge(a)
	if r.Verdict != event.Unknown {
		return r
	}
	if r.Wait == nil {
		return event.Ruling{Verdict: event.Denied, Rule: r.Rule, Reason: "nobody can be asked"}
	}
	ctx, done := e.patient(ctx)
	defer done()
	select {
	case e.waiting <- struct{}{}:
		defer func() { <-e.waiting }()
	default:
		var end context.CancelCauseFunc
		ctx, end = context.WithCancelCause(ctx)
		end(errCrowded) // Wait must be called also then: it takes the question back
	}
	answer := r.Wait(ctx)
	if cause := context.Cause(ctx); cause != nil {
		return event.Ruling{Verdict: event.Denied, Rule: cmp.Or(answer.Rule, r.Rule), Reason: cause.Error()}
	}
	answer.Rule = cmp.Or(answer.Rule, r.Rule)
	return answer
}

// patient is the context of something that may wait for a human: no deadline of
// the engine ends the session meanwhile, and its end is seen although nothing is
// read. done must be called.
func (e *Engine) patient(ctx context.Context) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	s := sessionOf(ctx)
	if s == nil {
		return ctx, func() { cancel(nil) }
	}
	s.held.Add(1)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(goneTick)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if hungUp(s.conn) {
					cancel(errGone)
				}
			}
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-ended
		s.held.Add(-1)
	}
}

// admit decides about a connection: by the rules and, where rules of consent are
// about it, by what they or a human say. A refusal is recorded.
func (e *Engine) admit(ctx context.Context, d Destination) (Permit, *Refusal) {
	if !e.wants(event.KindConnect) {
		if p, ok := e.bind(ctx, d); ok {
			return p, nil
		}
		return Permit{}, e.refuseUnknown(d)
	}
	for range judgeMost {
		was, permitted := e.permit(d)
		ruling := e.judge(ctx, connectAttempt(d, was, permitted))
		if ruling.Verdict != event.Allowed {
			r := e.refuse(d, denialReason(ruling), byConsent(ruling))
			return Permit{}, &r
		}
		p, ok := e.bind(ctx, d)
		switch {
		case ok != permitted || p.Kind != was.Kind: // the rules are others by now: it is another question
		case ok:
			return p, e.endWith(ctx, d, ruling)
		case ruling.Granted:
			return grantedPermit(d, ruling), e.endWith(ctx, d, ruling)
		default:
			return Permit{}, e.refuseUnknown(d)
		}
	}
	r := e.refuse(d, "the rules changed while it waited for an answer", unflagged)
	return Permit{}, &r
}

var errLapsed = errors.New("the approval that allowed it has ended")

// endWith ends a connection when the approval ends that it was opened on. It
// refuses one whose approval has ended already.
func (e *Engine) endWith(ctx context.Context, d Destination, r event.Ruling) *Refusal {
	if lapsed(r) != nil {
		refusal := e.refuse(d, errLapsed.Error(), byConsent(r))
		return &refusal
	}
	if s := sessionOf(ctx); s != nil && r.Over != nil {
		s.approvals.rulings = append(s.approvals.rulings, r)
		s.approvals.end = func(by event.Ruling) {
			e.refuse(d, "the approval that allowed it has ended, and so has the open connection", byConsent(by))
			s.cancel(errLapsed)
		}
		e.lapses(ctx, r, func() { s.approvals.endWith(r) })
	}
	return nil
}

// approvals are what a connection or a request was allowed by.
type approvals struct {
	rulings []event.Ruling
	end     func(by event.Ruling) // records that one of them has ended, and ends what it allowed
	once    sync.Once             // end is called for the first alone
}

func (a *approvals) endWith(by event.Ruling) { a.once.Do(func() { a.end(by) }) }

// over reports whether one of them has ended, and ends then what it allowed.
func (a *approvals) over() error {
	by := lapsed(a.rulings...)
	if by == nil {
		return nil
	}
	a.endWith(*by)
	return errLapsed
}

// approvalWriter checks before each write whether the data may still be sent: once a
// human has been told that an approval is withdrawn, nothing more leaves.
type approvalWriter struct {
	io.Writer
	over func() error
}

func (g approvalWriter) Write(p []byte) (int, error) {
	if err := g.over(); err != nil {
		return 0, err
	}
	return g.Writer.Write(p)
}

// lapsed returns the first ruling whose approval has ended; nil for none. Senders call
// it right before they send: what else ends the connection runs concurrently and may
// come too late.
func lapsed(rulings ...event.Ruling) *event.Ruling {
	for _, r := range rulings {
		select {
		case <-r.Over: // nil is never ready
			return &r
		default:
		}
	}
	return nil
}

// lapses calls end when the approval ends that r gave, unless ctx ends before. It
// is for what the engine waits for itself.
func (e *Engine) lapses(ctx context.Context, r event.Ruling, end func()) {
	if r.Over == nil {
		return
	}
	e.wait.Go(func() {
		select {
		case <-ctx.Done():
		case <-r.Over:
			if ctx.Err() == nil {
				end()
			}
		}
	})
}

// refuseUnknown refuses what no rule permits.
func (e *Engine) refuseUnknown(d Destination) *Refusal {
	reason, rule := e.rules.Load().nearest(d.Name, d.Port)
	if _, err := netip.ParseAddr(d.Name); err == nil && !e.rules.Load().Knows(d.Name) {
		reason = noName
	}
	opts := []refusalOption{func(r *refused) { r.Rule = rule }}
	for _, l := range e.config.NoLogin {
		if l.Host == (policy.HostPort{Host: d.Name, Port: d.Port}) && !e.rules.Load().Knows(d.Name) {
			reason, opts = "no rule allows it, for "+l.Title+" has no login: "+l.Text, []refusalOption{unflagged}
		}
	}
	r := e.refuse(d, reason, opts...)
	return &r
}

// connectAttempt is a connection as the rules of consent see it, without its process.
func connectAttempt(d Destination, p Permit, permitted bool) event.Attempt {
	kind := p.Kind
	if !permitted {
		kind = usualKind(d)
	}
	return event.Attempt{
		Kind: event.KindConnect, Host: d.Name, Port: d.Port,
		Protocol: string(kind), Known: permitted && p.Origin.File != learned,
	}
}

// client is the process that a connection is of, where that can be known.
func (e *Engine) client(ctx context.Context) event.Process {
	s := sessionOf(ctx)
	if e.config.Client == nil || s == nil {
		return event.Process{}
	}
	s.whose.Do(func() {
		local, err := addressOf(s.conn.RemoteAddr())
		remote := s.dialled
		if !remote.IsValid() {
			remote, _ = localAddress(s.conn)
		}
		if err == nil && remote.IsValid() {
			s.process = e.config.Client(local, remote)
		}
	})
	return s.process
}

// usualKind is what is spoken at a port, where no rule says it.
func usualKind(d Destination) policy.HostKind {
	switch {
	case d.Port == 443:
		return policy.TLS
	case d.Port == 80, d.Door == Forward:
		return policy.HTTP
	}
	return policy.TCP
}

// grantedPermit is what a human's answer permits: this name at this port, spoken
// as is usual there, at public addresses, with no credential.
func grantedPermit(d Destination, r event.Ruling) Permit {
	return Permit{Kind: usualKind(d), Origin: policy.Origin{File: cmp.Or(r.Rule, approvalOrigin)}, Granted: true}
}

// denialReason is why the rules of consent refuse something.
func denialReason(r event.Ruling) string { return cmp.Or(r.Reason, "a rule of consent denies it") }

// byConsent names the rule of consent that refused, or asked. No flag would allow it.
func byConsent(by event.Ruling) refusalOption {
	return func(r *refused) { r.Rule, r.Flag, r.layer = by.Rule, "", event.LayerConsent }
}

// hangupReporter is for connections that are no sockets of the kernel.
type hangupReporter interface{ HungUp() bool }

// hungUp reports whether the client of a connection has gone, or sent all it has to
// send. Nothing is read.
func hungUp(c net.Conn) bool {
	if c == nil {
		return false
	}
	_, c = outermost(c)
	if g, ok := c.(hangupReporter); ok {
		return g.HungUp()
	}
	return socketHungUp(c)
}

// socketHungUp asks the kernel whether the peer has closed, without reading and without
// disturbing a concurrent reader.
func socketHungUp(c net.Conn) bool {
	s, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return true // it is closed
	}
	gone := false
	err = raw.Control(func(fd uintptr) {
		p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
		n, err := unix.Poll(p, 0)
		gone = n > 0 && !errors.Is(err, unix.EINTR)
	})
	return gone || err != nil
}
