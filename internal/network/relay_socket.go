package network

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// reader reads a connection with a buffer that is taken when there is something
// to read: one that is idle holds none.
type reader struct {
	raw syscall.RawConn

	// What read works on; fields, so that the closure is made once.
	pool  *relayPool
	large bool
	buf   *[]byte
	n     int
	err   error
	read  func(fd uintptr) bool
}

func newReader(c *net.TCPConn) (*reader, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	r := &reader{raw: raw}
	r.read = func(fd uintptr) bool {
		r.buf = r.pool.getBuffer(r.large)
		for {
			r.n, r.err = unix.Read(int(fd), *r.buf)
			if !errors.Is(r.err, unix.EINTR) {
				break
			}
		}
		if errors.Is(r.err, unix.EAGAIN) {
			r.pool.putBuffer(r.buf)
			r.buf, r.n, r.err = nil, 0, nil
			return false
		}
		return true
	}
	return r, nil
}

// step waits for bytes and writes them to dst. full means that more may be there.
func (r *reader) step(s *relayPool, large bool, dst io.Writer) (n int, full bool, err error) {
	r.pool, r.large, r.buf = s, large, nil
	if err := r.raw.Read(r.read); err != nil {
		if r.buf != nil {
			s.putBuffer(r.buf)
		}
		return 0, false, err
	}
	defer func() { s.putBuffer(r.buf); r.buf = nil }()
	switch {
	case r.err != nil:
		return 0, false, os.NewSyscallError("read", r.err)
	case r.n <= 0:
		return 0, false, io.EOF
	}
	n, err = dst.Write((*r.buf)[:r.n])
	return n, r.n == len(*r.buf), err
}

// tcpClose is the state of a connection that is over, by a reset for instance
// (net/tcp_states.h).
const tcpClose = 7

// isGone reports whether the kernel has given up a connection that is still open here.
func isGone(c net.Conn) bool {
	gone := false
	control(c, func(fd int) {
		info, err := unix.GetsockoptTCPInfo(fd, unix.SOL_TCP, unix.TCP_INFO)
		gone = err == nil && info.State == tcpClose
	})
	return gone
}

// unsent is how many bytes written to c its peer has not confirmed; 0 if that is
// unknown or will not change.
func unsent(c net.Conn) int {
	n := 0
	control(c, func(fd int) {
		if queued, err := unix.IoctlGetInt(fd, unix.TIOCOUTQ); err == nil {
			n = queued
		}
	})
	if n > 0 && isGone(c) {
		return 0
	}
	return n
}

// control calls f with the descriptor of a TCP connection that is open.
func control(c net.Conn, f func(fd int)) {
	t, ok := c.(*net.TCPConn)
	if !ok {
		return
	}
	if raw, err := t.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) { f(int(fd)) }) // fails on a closed one, about which nothing can be learned
	}
}
