package egress

import (
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// reader reads a connection with a buffer that is taken when there is something
// to read: one that is idle holds none.
type reader struct {
	raw syscall.RawConn

	// What read works on; fields, so that the closure is made once.
	steps *steps
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
		r.buf = r.steps.take(r.large)
		for {
			r.n, r.err = unix.Read(int(fd), *r.buf)
			if !errors.Is(r.err, unix.EINTR) {
				break
			}
		}
		if errors.Is(r.err, unix.EAGAIN) {
			r.steps.give(r.buf)
			r.buf, r.n, r.err = nil, 0, nil
			return false
		}
		return true
	}
	return r, nil
}

// step waits for bytes and writes them to dst. full says that more may be there.
func (r *reader) step(s *steps, large bool, dst io.Writer) (n int, full bool, err error) {
	r.steps, r.large, r.buf = s, large, nil
	if err := r.raw.Read(r.read); err != nil {
		if r.buf != nil {
			s.give(r.buf)
		}
		return 0, false, err
	}
	defer func() { s.give(r.buf); r.buf = nil }()
	switch {
	case r.err != nil:
		return 0, false, os.NewSyscallError("read", r.err)
	case r.n <= 0:
		return 0, false, io.EOF
	}
	n, err = dst.Write((*r.buf)[:r.n])
	return n, r.n == len(*r.buf), err
}

// splice lets the kernel move bytes as long as they come; it returns when none
// came for spliceWait. io.EOF is the end.
func splice(count *atomic.Int64, dst, src *net.TCPConn) (moved int64, err error) {
	defer src.SetReadDeadline(time.Time{})
	for {
		src.SetReadDeadline(time.Now().Add(spliceWait))
		slice := io.LimitedReader{R: src, N: spliceSlice}
		n, err := dst.ReadFrom(&slice)
		moved += n
		count.Add(n)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return moved, nil
		case err != nil:
			return moved, err
		case slice.N > 0:
			return moved, io.EOF
		}
	}
}
