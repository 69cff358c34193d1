//go:build !linux

package network

import (
	"errors"
	"io"
	"net"
	"sync/atomic"
)

// reader reads a connection; where there is no notice of bytes to come it holds a
// small buffer while it waits.
type reader struct{ c *net.TCPConn }

func newReader(c *net.TCPConn) (*reader, error) { return &reader{c}, nil }

func (r *reader) step(s *steps, large bool, dst io.Writer) (n int, full bool, err error) {
	b := s.take(large)
	defer s.give(b)
	n, err = r.c.Read(*b)
	if n > 0 {
		var werr error
		n, werr = dst.Write((*b)[:n])
		if werr != nil {
			err = werr
		}
	}
	return n, n == len(*b), err
}

// errNoPipe is what splice says where there is none.
var errNoPipe = errors.New("there is no pipe")

// splice moves nothing: pump goes on with steps.
func splice(_ *atomic.Int64, _, _ *net.TCPConn, _ int64) error { return errNoPipe }

// isGone and unsent are not known here.
func isGone(net.Conn) bool { return false }
func unsent(net.Conn) int  { return 0 }
