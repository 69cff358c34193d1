package network

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Sizes of the relay. A connection starts with small buffers, so that many slow ones
// hold little; one that fills its buffer gets a large one as long as there are some; a
// long one is moved by the kernel.
const (
	smallStep   = 16 << 10
	largeStep   = 128 << 10
	largeSteps  = 256       // large buffers in use at once: 32 MiB
	spliceAfter = 128 << 10 // most connections end before: a pipe is not worth its making
	spliceSlice = 16 << 20
	spliceWait  = time.Second // without a byte: the pipe is given back
	spliceHalf  = 256         // pipes at once
)

// relayPool holds the buffers and pipes that all relays of an engine share.
type relayPool struct {
	large, pipes     atomic.Int64 // in use
	smalls, larges   sync.Pool
	noPipe, noNotice bool // for measurements and tests: never splice; read as from any net.Conn
}

func newRelayPool() *relayPool {
	return &relayPool{
		smalls: sync.Pool{New: func() any { b := make([]byte, smallStep); return &b }},
		larges: sync.Pool{New: func() any { b := make([]byte, largeStep); return &b }},
	}
}

// getBuffer returns a buffer, a large one when one is wanted and free.
func (s *relayPool) getBuffer(large bool) *[]byte {
	if large {
		if s.large.Add(1) <= largeSteps {
			return s.larges.Get().(*[]byte)
		}
		s.large.Add(-1)
	}
	return s.smalls.Get().(*[]byte)
}

func (s *relayPool) putBuffer(b *[]byte) {
	if len(*b) == largeStep {
		s.large.Add(-1)
		s.larges.Put(b)
		return
	}
	s.smalls.Put(b)
}

// acquirePipe reports whether one more half may be spliced, and of how many it is the last
// one; 0 means no. releasePipe gives it back.
func (s *relayPool) acquirePipe() int64 {
	if s.noPipe {
		return 0
	}
	if n := s.pipes.Add(1); n <= spliceHalf {
		return n
	}
	s.pipes.Add(-1)
	return 0
}

func (s *relayPool) releasePipe() { s.pipes.Add(-1) }

// unreader is a connection of which bytes were already read. A read returns them first;
// a caller that takes them with unread continues with the connection that it returns.
type unreader interface {
	unread() (head []byte, rest net.Conn)
}

// replay returns c with head before what it still has to send. Close, deadlines and
// writing are c's.
func replay(c net.Conn, head []byte) net.Conn {
	if len(head) == 0 {
		return c
	}
	return &prefixConn{wrapped{c}, head}
}

type prefixConn struct {
	wrapped
	head []byte
}

func (r *prefixConn) Read(p []byte) (int, error) {
	if len(r.head) == 0 {
		return r.Conn.Read(p)
	}
	n := copy(p, r.head)
	r.head = r.head[n:]
	return n, nil
}

func (r *prefixConn) unread() ([]byte, net.Conn) {
	head := r.head
	r.head = nil
	return head, r.Conn
}

// outermost takes off what was only put around a connection to replay bytes, and
// returns those bytes in order.
func outermost(c net.Conn) (head []byte, rest net.Conn) {
	for {
		u, ok := c.(unreader)
		if !ok {
			return head, c
		}
		var more []byte
		more, c = u.unread()
		head = append(head, more...)
	}
}

// wrapped is a connection around another that can do what the other can.
type wrapped struct{ net.Conn }

// CloseWrite ends the writing half where the connection has halves.
func (w wrapped) CloseWrite() error { return closeWrite(w.Conn) }

// SetLinger lets abort reset what lies below.
func (w wrapped) SetLinger(sec int) error { return setLinger(w.Conn, sec) }

// closeWrite ends the writing half of c, or all of it where it has no halves.
func closeWrite(c net.Conn) error {
	if h, ok := c.(interface{ CloseWrite() error }); ok {
		return h.CloseWrite()
	}
	return c.Close()
}

// abort closes c so that its peer reads an error and not the end: what was cut
// off must not look complete.
func abort(c net.Conn) {
	setLinger(c, 0) // fails on a connection that is gone, where there is nothing to reset
	c.Close()
}

func setLinger(c net.Conn, sec int) error {
	if l, ok := c.(interface{ SetLinger(sec int) error }); ok {
		return l.SetLinger(sec)
	}
	return nil
}

// side is one end of a relay.
type side struct {
	net.Conn
	endSent atomic.Bool // the end of the other was passed on to it
}

// errCut is the error for a connection that ended without closing properly.
var errCut = errors.New("the connection was reset")

// relay passes bytes between a, the client, and b until both have sent all, one of them
// fails, or ctx ends; then both are closed. The end of one direction is passed on
// separately. Anything but that end aborts both, so that truncated data does not look
// complete. l inspects what a sends first.
func (e *Engine) relay(ctx context.Context, a, b net.Conn, l *inspector) error {
	s := sessionOf(ctx)
	if s != nil {
		if err := s.approvals.over(); err != nil { // while it was dialled
			abort(a)
			abort(b)
			return err
		}
	}
	if s == nil || s.counted {
		s = &session{} // what the caller counts itself is not counted twice
	}
	headA, a := outermost(a)
	headB, b := outermost(b)
	stop := context.AfterFunc(ctx, func() { abort(a); abort(b) })
	defer stop()
	defer a.Close()
	defer b.Close()

	client, server := &side{Conn: a}, &side{Conn: b}
	back := make(chan error, 1)
	go func() { back <- e.half(ctx, s, &s.in, client, server, headB, nil) }()
	err := e.half(ctx, s, &s.out, server, client, headA, l)
	if second := <-back; err == nil || errors.Is(err, net.ErrClosed) && second != nil {
		err = second
	}
	if err != nil {
		cutBoth(ctx, client.Conn, server.Conn)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// half passes on what src sends until its end, and then that end.
func (e *Engine) half(ctx context.Context, s *session, count *atomic.Int64, dst, src *side, head []byte, l *inspector) error {
	n, err := 0, error(nil)
	if len(head) > 0 {
		n, err = l.through(dst).Write(head)
		count.Add(int64(n))
	}
	switch of := sessionOf(ctx); {
	case err != nil:
	case of != nil && len(of.approvals.rulings) > 0: // what the kernel moves cannot be checked
		err = e.relayPool.copy(count, approvalWriter{l.through(dst.Conn), of.approvals.over}, src.Conn)
	default:
		err = e.relayPool.pump(count, dst.Conn, src.Conn, l)
	}
	if err == nil && isGone(src.Conn) && !src.endSent.Load() {
		err = errCut // the other half got the error for that
	}
	switch {
	case err == nil:
		s.halfClosed.Store(true)
		dst.endSent.Store(true)
		closeWrite(dst.Conn) // if that fails dst is gone, and its own half reports how
	case isGone(dst.Conn) && !isGone(src.Conn):
		// What it sent before it went may still be on its way, for example an answer to
		// a request that it did not want to read to the end. The other half passes that
		// on and ends on its own.
	default:
		cutBoth(ctx, dst.Conn, src.Conn)
	}
	return err
}

// cutBoth aborts both, but lets the kernel deliver before what they were sent.
func cutBoth(ctx context.Context, a, b net.Conn) {
	for pause := time.Millisecond; pause < lingerTime/2 && ctx.Err() == nil && unsent(a)+unsent(b) > 0; pause *= 2 {
		time.Sleep(pause)
	}
	abort(a)
	abort(b)
}

// pump copies src to dst until src ends.
func (s *relayPool) pump(count *atomic.Int64, dst, src net.Conn, l *inspector) error {
	to, ok := dst.(*net.TCPConn)
	from, ok2 := src.(*net.TCPConn)
	if !ok || !ok2 || s.noNotice {
		return s.copy(count, l.through(dst), src)
	}
	r, err := newReader(from)
	if err != nil {
		return err
	}
	moved := int64(0)
	large := false
	for {
		if moved >= spliceAfter {
			if n := s.acquirePipe(); n > 0 {
				err := splice(count, to, from, n)
				s.releasePipe()
				if err != nil && !errors.Is(err, errNoPipe) {
					return ignoreEnd(err)
				}
				moved = 0 // it fell silent and waits without a pipe, or there was none
			}
		}
		n, full, err := r.step(s, large, l.through(to))
		count.Add(int64(n))
		moved += int64(n)
		large = full
		if err != nil {
			return ignoreEnd(err)
		}
	}
}

// copy is pump for connections that cannot say when they are readable: each
// holds a small buffer while it waits.
func (s *relayPool) copy(count *atomic.Int64, dst io.Writer, src io.Reader) error {
	large := false
	for {
		b := s.getBuffer(large)
		n, err := src.Read(*b)
		if n > 0 {
			w, werr := dst.Write((*b)[:n])
			count.Add(int64(w))
			if werr != nil {
				err = werr
			}
		}
		large = n == len(*b)
		s.putBuffer(b)
		if err != nil {
			return ignoreEnd(err)
		}
	}
}

// ignoreEnd returns err, or nil for the regular end of a connection.
func ignoreEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
