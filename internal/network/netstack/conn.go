package netstack

import (
	"bytes"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"syscall"
	"time"

	"gvisor.dev/gvisor/pkg/tcpip"
	"gvisor.dev/gvisor/pkg/waiter"
)

// conn is a connection of the stack as a net.Conn. Its errors are those that a
// socket has: gVisor's own adapter gives out texts, and code that asks for
// ECONNRESET or a deadline would not recognise them.
type conn struct {
	stack         *Stack
	ep            tcpip.Endpoint
	queue         *waiter.Queue
	local, remote *net.TCPAddr
	closed        chan struct{}
	once          sync.Once

	readMu, writeMu sync.Mutex // one reader, one writer at a time
	readBy, writeBy deadline
}

func newConn(s *Stack, ep tcpip.Endpoint, q *waiter.Queue, local, remote netip.AddrPort) *conn {
	return &conn{
		stack: s, ep: ep, queue: q,
		local:  net.TCPAddrFromAddrPort(local),
		remote: net.TCPAddrFromAddrPort(remote),
		closed: make(chan struct{}),
		readBy: deadline{passed: make(chan struct{})}, writeBy: deadline{passed: make(chan struct{})},
	}
}

// HungUp reports whether the client has closed, or its half: nothing is read.
func (c *conn) HungUp() bool { return c.ep.Readiness(ended)&ended != 0 }

const ended = waiter.EventHUp | waiter.EventErr | waiter.EventRdHUp

// Read reads what has arrived, up to len(b) bytes; io.EOF after the client
// closed its half.
func (c *conn) Read(b []byte) (int, error) {
	c.readMu.Lock()
	defer c.readMu.Unlock()
	if len(b) == 0 {
		return 0, nil
	}
	var n int
	err := c.await(&c.readBy, waiter.ReadableEvents|ended, func() tcpip.Error {
		w := tcpip.SliceWriter(b)
		got, err := c.ep.Read(&w, tcpip.ReadOptions{})
		n = got.Count
		return err
	})
	if err == io.EOF {
		return n, err
	}
	return n, c.wrap("read", err)
}

// Write writes all of b, or returns an error and how much went out.
func (c *conn) Write(b []byte) (int, error) {
	c.writeMu.Lock()
	defer c.writeMu.Unlock()
	done := 0
	for done < len(b) {
		err := c.await(&c.writeBy, waiter.WritableEvents|ended, func() tcpip.Error {
			n, err := c.ep.Write(bytes.NewReader(b[done:]), tcpip.WriteOptions{})
			done += int(n)
			return err
		})
		if err != nil {
			return done, c.wrap("write", err)
		}
	}
	return done, nil
}

// await does op, again after each of events while it would block.
func (c *conn) await(d *deadline, events waiter.EventMask, op func() tcpip.Error) error {
	var entry waiter.Entry
	var ready chan struct{}
	passed := d.wait()
	for {
		select {
		case <-c.closed:
			return net.ErrClosed
		case <-passed:
			return os.ErrDeadlineExceeded
		default:
		}
		err := op()
		if _, blocks := err.(*tcpip.ErrWouldBlock); !blocks {
			return c.explain(err)
		}
		if ready == nil { // what came between op and here is found by doing op once more
			entry, ready = waiter.NewChannelEntry(events)
			c.queue.EventRegister(&entry)
			defer c.queue.EventUnregister(&entry)
			continue
		}
		select {
		case <-c.closed:
		case <-passed:
		case <-ready:
		}
	}
}

// explain returns the error of a socket that corresponds to err.
func (c *conn) explain(err tcpip.Error) error {
	if err == nil {
		return nil
	}
	select {
	case <-c.closed:
		return net.ErrClosed
	default:
	}
	switch err.(type) {
	case *tcpip.ErrClosedForReceive:
		return io.EOF
	case *tcpip.ErrClosedForSend:
		return syscall.EPIPE
	case *tcpip.ErrConnectionReset:
		return syscall.ECONNRESET
	case *tcpip.ErrConnectionAborted, *tcpip.ErrAborted:
		return syscall.ECONNABORTED
	case *tcpip.ErrTimeout:
		return syscall.ETIMEDOUT
	case *tcpip.ErrNotConnected:
		return syscall.ENOTCONN
	}
	return named("tcp", err)
}

func (c *conn) wrap(op string, err error) error {
	if err == nil {
		return nil
	}
	return &net.OpError{Op: op, Net: "tcp", Source: c.local, Addr: c.remote, Err: err}
}

// Close closes both halves; what was written is still sent. As with a socket, the
// client sees a reset if it sent data that was not read.
func (c *conn) Close() error {
	err := net.ErrClosed
	c.once.Do(func() {
		err = nil
		close(c.closed)
		c.ep.Close()
		c.stack.leave(c.queue, c.ep)
	})
	return c.wrap("close", err)
}

// abort is Close with a reset.
func (c *conn) abort() {
	c.ep.SocketOptions().SetLinger(tcpip.LingerOption{Enabled: true})
	c.Close() // the caller that closed before has seen its error
}

// CloseWrite ends the half towards the client, which reads EOF.
func (c *conn) CloseWrite() error {
	select {
	case <-c.closed:
		return c.wrap("close", net.ErrClosed)
	default:
	}
	return c.wrap("close", c.explain(c.ep.Shutdown(tcpip.ShutdownWrite)))
}

// SetLinger is that of *net.TCPConn: with 0, Close resets the connection and
// drops what was not sent; other values change nothing.
func (c *conn) SetLinger(sec int) error {
	c.ep.SocketOptions().SetLinger(tcpip.LingerOption{Enabled: sec == 0})
	return nil
}

// LocalAddr is the address that the client dialled.
func (c *conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr is the client's.
func (c *conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline sets both deadlines; the zero time means none.
func (c *conn) SetDeadline(t time.Time) error {
	c.readBy.set(t)
	c.writeBy.set(t)
	return nil
}

// SetReadDeadline ends a Read that waits, and later ones, at t.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.readBy.set(t)
	return nil
}

// SetWriteDeadline ends a Write that waits, and later ones, at t.
func (c *conn) SetWriteDeadline(t time.Time) error {
	c.writeBy.set(t)
	return nil
}

// deadline is a channel that is closed at a time which may change.
type deadline struct {
	mu     sync.Mutex
	timer  *time.Timer // nil for none
	passed chan struct{}
}

func (d *deadline) wait() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.passed
}

func (d *deadline) set(t time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil && !d.timer.Stop() {
		<-d.passed // the timer fired: its function closes the channel, and does not need the lock
	}
	d.timer = nil
	select {
	case <-d.passed:
		d.passed = make(chan struct{})
	default:
	}
	switch left := time.Until(t); {
	case t.IsZero():
	case left <= 0:
		close(d.passed)
	default:
		passed := d.passed
		d.timer = time.AfterFunc(left, func() { close(passed) })
	}
}
