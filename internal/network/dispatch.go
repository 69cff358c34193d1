package network

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
)

// learned is the origin of what policy learn lets happen without a rule.
const learned = "policy learn"

// errObserved is why nothing leaves while a policy is learned by looking.
var errObserved = errors.New("no rule allows it, and it is only recorded")

// observing dials what rules permit and nothing that is only learned.
type observing struct{ upstream }

func (o observing) Dial(ctx context.Context, d Destination, p Permit) (net.Conn, error) {
	if p.Origin.File == learned {
		return nil, errObserved
	}
	return o.upstream.Dial(ctx, d, p)
}

// permit is what the rules say about d at this moment. While a policy is learned
// what no rule names is permitted too, under that name.
func (e *Engine) permit(d Destination) (Permit, bool) {
	p, ok := e.rules.Load().At(d.Name, d.Port)
	if ok || e.config.Learn == Off {
		return p, ok
	}
	p = Permit{Kind: policy.TCP, Origin: policy.Origin{File: learned}}
	switch d.Port {
	case 443:
		p.Kind, p.Terminate = policy.TLS, e.config.Authority != nil
	case 80:
		p.Kind = policy.HTTP
	}
	if d.Door == Forward {
		p.Kind, p.Terminate = policy.HTTP, false
	}
	_, err := netip.ParseAddr(d.Name)
	return p, err != nil // an address alone is no name to learn
}

// responder reports a decision to the client of a door. At most one of its functions is
// called, and only once.
type responder struct {
	allow func() error  // bytes follow; nil if there is nothing to send
	deny  func(Refusal) // and ends the connection
	fail  func(error)   // the upstream does not answer; ends the connection
}

// dispatch decides about a connection, records it and serves it. The record
// comes before anything leaves; where it is lost nothing does.
func (e *Engine) dispatch(ctx context.Context, c net.Conn, d Destination, reply responder) {
	if kind := e.decoyIn([]byte(d.Name)); kind != "" {
		reply.deny(e.refuse(d, decoyWords(kind, inName), highSeverity))
		return
	}
	permit, refusal := e.admit(ctx, d)
	switch {
	case refusal != nil:
		reply.deny(*refusal)
		return
	case d.Door == Forward && permit.Kind != policy.HTTP:
		reply.deny(e.refuse(d, "the rule allows "+string(permit.Kind)+", not HTTP in the clear", nearestRule(permit.Origin), unflagged))
		return
	}
	if permit.Origin.File == learned || e.config.Learn != Off && (permit.Kind == policy.TCP || permit.Kind == policy.TLS && !permit.Terminate) {
		e.observe(Observation{Name: d.Name, Port: d.Port, Kind: permit.Kind})
	}
	begun := time.Now()
	if err := e.emit(connectEvent(d, permit)); err != nil {
		reply.fail(err)
		return
	}
	s := sessionOf(ctx)
	var failure error
	defer func() { e.emit(closeEvent(d, permit, s, begun, failure)) }()
	if permit.Kind == policy.TCP {
		failure = e.serveBytes(ctx, c, d, permit, reply)
		return
	}
	if reply.allow != nil {
		if err := reply.allow(); err != nil {
			abort(c)
			return
		}
	}
	if s != nil && (permit.Kind == policy.HTTP || permit.Terminate) {
		s.counted = true
		c = countingConn{wrapped{c}, s}
	}
	if permit.Kind == policy.HTTP {
		e.serveHTTP(ctx, c, d, permit)
		return
	}
	e.serveTLS(ctx, c, d, permit)
}

// serveBytes passes bytes on without inspecting them. The upstream is dialled at once,
// because in many protocols the server speaks first.
func (e *Engine) serveBytes(ctx context.Context, c net.Conn, d Destination, p Permit, reply responder) error {
	up, err := e.dial.Dial(ctx, d, p)
	if err != nil {
		if r, decided := e.refuseDial(d, err, nearestRule(p.Origin)); decided {
			reply.deny(r)
		} else {
			reply.fail(err)
		}
		return err
	}
	if reply.allow != nil {
		if err := reply.allow(); err != nil {
			abort(up)
			abort(c)
			return err
		}
	}
	return e.relay(ctx, c, up, e.inspect(d))
}

// connectEvent is the event at the start of a connection. It says whether the requests on the
// connection can be seen: if not, no event has their paths and answers.
func connectEvent(d Destination, p Permit) event.Event {
	inspected := p.Kind == policy.HTTP || p.Kind == policy.TLS && p.Terminate
	return event.Event{
		Action: event.NetConnect, Object: d.String(), Verdict: event.Allowed, Rule: p.Origin.String(),
		Detail: map[string]string{"door": string(d.Door), "kind": string(p.Kind), "inspected": strconv.FormatBool(inspected)},
	}
}

// closeEvent is the event at the end of a connection; failure is nil if both sides had sent all.
func closeEvent(d Destination, p Permit, s *session, begun time.Time, failure error) event.Event {
	ev := connectEvent(d, p)
	ev.Action = event.NetClose
	ev.Detail["ms"] = strconv.FormatInt(time.Since(begun).Milliseconds(), 10)
	if s != nil {
		ev.Detail["in"] = strconv.FormatInt(s.in.Load(), 10)
		ev.Detail["out"] = strconv.FormatInt(s.out.Load(), 10)
	}
	if failure != nil {
		ev.Detail["reason"] = printable(failure.Error())
	}
	return ev
}

// String is host:port.
func (d Destination) String() string { return net.JoinHostPort(d.Name, strconv.Itoa(d.Port)) }
