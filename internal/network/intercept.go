package network

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
)

// accept takes connections of one door until it is closed. Whatever else accept
// reports passes: a peer that is gone again, or no descriptor being free, which
// the kernel keeps connections waiting for.
func (e *Engine) accept(l listener) {
	pause := acceptPause
	for {
		c, err := l.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) || e.ctx.Err() != nil {
				return
			}
			if pause == acceptPauses {
				e.refuse(Destination{Name: "connections"}, "connections cannot be accepted: "+err.Error(), unflagged)
			}
			select {
			case <-time.After(pause):
			case <-e.ctx.Done():
				return
			}
			pause = min(2*pause, acceptPauses)
			continue
		}
		pause = acceptPause
		if !e.connSlots.acquire(e.ctx) {
			e.refuse(Destination{Name: "connections"}, "too many connections are open", unflagged)
			abort(c)
			continue
		}
		ctx, s, ok := e.begin(c)
		if !ok {
			e.connSlots.release()
			abort(c)
			return
		}
		e.wait.Go(func() {
			defer e.connSlots.release()
			defer c.Close()
			defer e.end(s)
			l.serve(ctx, c)
		})
	}
}

// localAddress is the destination of a connection that was accepted in its place.
func localAddress(c net.Conn) (netip.AddrPort, error) { return addressOf(c.LocalAddr()) }

func addressOf(a net.Addr) (netip.AddrPort, error) {
	if t, ok := a.(*net.TCPAddr); ok {
		at := t.AddrPort()
		return netip.AddrPortFrom(at.Addr().Unmap().WithZone(""), at.Port()), nil
	}
	if a == nil {
		return netip.AddrPort{}, errors.New("the connection has no address")
	}
	return netip.ParseAddrPort(a.String())
}

// intercept decides about a connection to an address. What the client says about its
// destination counts only as far as it confirms the name of that address.
func (e *Engine) intercept(ctx context.Context, c net.Conn, destination func(net.Conn) (netip.AddrPort, error)) {
	d := Destination{Door: Intercepted}
	at, err := destination(c)
	if err != nil {
		e.refuse(d, "its destination cannot be determined: "+err.Error(), unflagged)
		abort(c)
		return
	}
	if s := sessionOf(ctx); s != nil {
		s.dialled = at
	}
	d.Port = int(at.Port())
	if d.Port == 53 {
		e.server.serveTCP(c)
		return
	}
	reason := e.resolve(&d, at.Addr())
	if reason != "" {
		e.turnAway(ctx, c, e.refuse(d, reason))
		return
	}
	e.dispatch(ctx, c, d, responder{
		deny: func(r Refusal) { e.turnAway(ctx, c, r) },
		fail: func(error) { abort(c) },
	})
}

const noName = "no name maps to that address"

// resolve sets d to the name that belongs to an address, or to the address itself if
// the policy names it or a human can be asked about it. Otherwise it says why not.
func (e *Engine) resolve(d *Destination, a netip.Addr) (reason string) {
	a = a.Unmap()
	d.Name = a.String()
	if name, ok := e.names.Name(a); ok {
		d.Name = name
		return ""
	}
	if a.IsLoopback() || a.IsUnspecified() {
		return "services of the host's loopback are reached through host ports"
	}
	if e.rules.Load().Knows(d.Name) {
		return ""
	}
	reason = noName
	reach, words := classify(a)
	if reach == public && !synthetic.Contains(a) && e.mayAsk(event.KindConnect) {
		return ""
	}
	if reach != public && !synthetic.Contains(a) {
		reason += ", " + words
		if reach == internal {
			reason += "; a rule that names it needs internal: true"
		}
	}
	return reason
}
