package netstack

import (
	"net"
	"net/netip"
	"sync"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/tcpip/transport/tcp"
	"gvisor.dev/gvisor/pkg/waiter"
)

// listener is the net.Listener of a Stack.
type listener struct {
	stack  *Stack
	queue  chan *conn // as many as connections may be open: an admitted one always fits
	closed chan struct{}
	once   sync.Once
}

// Accept returns the next connection. Its handshake is complete.
func (l *listener) Accept() (net.Conn, error) {
	select { // a listener that is closed hands out nothing, also where something waits
	case <-l.closed:
		return nil, l.fail(net.ErrClosed)
	case <-l.stack.done:
		return nil, l.fail(l.stack.cause())
	default:
	}
	select {
	case c := <-l.queue:
		return c, nil
	case <-l.closed:
		return nil, l.fail(net.ErrClosed)
	case <-l.stack.done:
		return nil, l.fail(l.stack.cause())
	}
}

func (l *listener) fail(err error) error {
	return &net.OpError{Op: "accept", Net: "tcp", Addr: l.Addr(), Err: err}
}

// Close refuses new connections and resets those that were not accepted.
func (l *listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	l.drain()
	return nil
}

// drain resets what waits in the queue.
func (l *listener) drain() {
	for {
		select {
		case c := <-l.queue:
			c.abort()
		default:
			return
		}
	}
}

// over reports whether no caller will accept any more.
func (l *listener) over() bool {
	select {
	case <-l.closed:
		return true
	case <-l.stack.done:
		return true
	default:
		return false
	}
}

// Addr is the unspecified address: the listener serves all.
func (l *listener) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv6unspecified} }

// handle takes one SYN through the handshake. The stack calls it on a
// goroutine of its own.
func (s *Stack) handle(r *tcp.ForwarderRequest) {
	q := new(waiter.Queue)
	if !s.enter(q) {
		r.Complete(true)
		return
	}
	defer s.work.Done()
	id := r.ID()
	local := endpointAddr(id.LocalAddress, id.LocalPort)
	remote := endpointAddr(id.RemoteAddress, id.RemotePort)
	ep, err := r.CreateEndpoint(q)
	r.Complete(err != nil)
	if err != nil {
		s.leave(q, nil)
		return
	}
	c := newConn(s, ep, q, local, remote)
	s.mu.Lock()
	delete(s.pending, q)
	s.mu.Unlock()
	s.listener.queue <- c
	if s.listener.over() {
		s.listener.drain()
	}
}

// enter counts a connection; false where it is one too many or the stack is
// closed.
func (s *Stack) enter(q *waiter.Queue) bool {
	if s.listener.over() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return false
	}
	s.sweep(time.Now())
	if s.used >= s.limits.connections {
		return false
	}
	s.used++
	s.pending[q] = struct{}{}
	s.work.Add(1)
	return true
}

// leave is the end of a connection's handshake or of its owner's interest. It
// counts on until ep has sent what was written.
func (s *Stack) leave(q *waiter.Queue, ep tcpip.Endpoint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pending, q)
	if ep == nil || gone(ep) {
		s.used--
		return
	}
	s.leaving[ep] = time.Now().Add(lingering)
}

// sweep forgets connections that have gone since their owner closed them, and
// resets those that do not go: a client that takes no data would otherwise hold
// the buffer of each connection that it ever opened. Locked: s.mu.
func (s *Stack) sweep(now time.Time) {
	if len(s.leaving) < 64 && s.used < s.limits.connections {
		return
	}
	for ep, until := range s.leaving {
		if !gone(ep) {
			if now.Before(until) {
				continue
			}
			ep.Abort()
		}
		delete(s.leaving, ep)
		s.used--
	}
}

// gone reports whether nothing of ep is left to be sent.
func gone(ep tcpip.Endpoint) bool {
	switch tcp.EndpointState(ep.State()) {
	case tcp.StateClose, tcp.StateError, tcp.StateTimeWait:
		return true
	}
	return false
}

func endpointAddr(a tcpip.Address, port uint16) netip.AddrPort {
	ip, _ := netip.AddrFromSlice(a.AsSlice()) // an address of a segment has 4 or 16 bytes
	return netip.AddrPortFrom(ip, port)
}
