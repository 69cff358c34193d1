package network

import (
	"context"
	"errors"
	"net"
	"strconv"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
)

// serveHostPort joins a connection to a service on the host's loopback. Which
// ones there are was decided when the doors were made; nothing that the client
// says changes where it goes.
func (e *Engine) serveHostPort(ctx context.Context, c net.Conn, port int) {
	d := Destination{Name: "localhost", Port: port, Door: HostService}
	if e.wants(event.KindConnect) {
		ruling := e.judge(ctx, event.Attempt{
			Kind: event.KindConnect, Host: d.Name, Port: port, Protocol: string(policy.TCP), Known: true,
		})
		if ruling.Verdict != event.Allowed {
			e.refuse(d, denialReason(ruling), byConsent(ruling))
			abort(c)
			return
		}
		if e.endWith(ctx, d, ruling) != nil {
			abort(c)
			return
		}
	}
	p := Permit{Kind: policy.TCP, Internal: true, Origin: policy.Origin{File: "--host-port " + strconv.Itoa(port)}}
	if e.emit(connectEvent(d, p)) != nil {
		abort(c)
		return
	}
	begun := time.Now()
	up, err := dialLoopback(ctx, e.limits, port)
	if err == nil {
		err = e.relay(ctx, c, up, e.inspect(d))
	} else {
		e.unreachable(d, err)
		abort(c)
	}
	e.emit(closeEvent(d, p, sessionOf(ctx), begun, err))
}

// dialLoopback tries IPv4 first: that is where most services listen alone.
func dialLoopback(ctx context.Context, limits Limits, port int) (net.Conn, error) {
	dialer := net.Dialer{Timeout: limits.DialTime}
	var all error
	for _, host := range []string{"127.0.0.1", "::1"} {
		c, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if err == nil {
			return c, nil
		}
		all = errors.Join(all, err)
	}
	return nil, all
}
