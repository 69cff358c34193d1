package network

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A slot of a pipe, a page of its size, holds a piece of a segment, which is up to
// 32 KiB on loopback. So also a narrow pipe takes most of what comes at once, and
// one connection alone gains a little by a wide one. The pipes of net are all
// wide: 64 of them use up what a user may have (fs.pipe-user-pages-soft, 64 MiB),
// and those after that have two slots.
const (
	widePipe   = 1 << 20
	narrowPipe = 128 << 10
	leastPipe  = 32 << 10 // less is slower than copying
	widePipes  = 8        // with the narrow ones, 39 MiB
)

// pipe is what bytes pass through from one socket to another in the kernel.
type pipe struct {
	ends [2]int // to read from, and to write to
	held int    // bytes in it
	pool *sync.Pool

	// What the closures work on, which are made once.
	n                   int
	err                 error
	spliceIn, spliceOut func(fd uintptr) bool
}

// Pipes that no relay uses. They close when the collector takes them.
var wides, narrows sync.Pool

// scarce is until when no more pipes are asked for, in nanoseconds of Unix time:
// when this user has too many, asking costs more than a pipe would save.
var scarce atomic.Int64

// newPipe returns an empty pipe, nil when this user has too many.
func newPipe(wide bool) *pipe {
	pool, size := &narrows, narrowPipe
	if wide {
		pool, size = &wides, widePipe
	}
	if p, ok := pool.Get().(*pipe); ok {
		return p
	}
	now := time.Now()
	if now.UnixNano() < scarce.Load() {
		return nil
	}
	p := &pipe{pool: pool}
	if err := unix.Pipe2(p.ends[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return nil
	}
	unix.FcntlInt(uintptr(p.ends[0]), unix.F_SETPIPE_SZ, size) // the result is read below
	if size, err := unix.FcntlInt(uintptr(p.ends[0]), unix.F_GETPIPE_SZ, 0); err != nil || size < leastPipe {
		closeBoth(p.ends)
		scarce.Store(now.Add(spliceWait).UnixNano())
		return nil
	}
	runtime.AddCleanup(p, closeBoth, p.ends)
	p.spliceIn = func(fd uintptr) bool {
		p.n, p.err = spliceNonblock(int(fd), p.ends[1], spliceSlice)
		return !errors.Is(p.err, unix.EAGAIN)
	}
	p.spliceOut = func(fd uintptr) bool {
		for p.held > 0 {
			if p.n, p.err = spliceNonblock(p.ends[0], int(fd), p.held); p.err != nil {
				return !errors.Is(p.err, unix.EAGAIN)
			}
			p.held -= p.n
		}
		return true
	}
	return p
}

func closeBoth(ends [2]int) {
	unix.Close(ends[0])
	unix.Close(ends[1])
}

// spliceNonblock is splice(2) without waiting.
func spliceNonblock(from, to, most int) (int, error) {
	for {
		n, err := unix.Splice(from, nil, to, nil, most, unix.SPLICE_F_MOVE|unix.SPLICE_F_NONBLOCK)
		if !errors.Is(err, unix.EINTR) {
			return int(n), err
		}
	}
}

// errNoPipe is why bytes are copied though there are many.
var errNoPipe = errors.New("no pipe is available")

// splice lets the kernel move bytes as long as they come; it returns when none came for
// spliceWait. nth is how many halves do so at once. io.EOF is the end. No byte is in
// the pipe while it waits for more, so that whatever was read was also written.
func splice(count *atomic.Int64, dst, src *net.TCPConn, nth int64) error {
	from, err := src.SyscallConn()
	if err != nil {
		return err
	}
	to, err := dst.SyscallConn()
	if err != nil {
		return err
	}
	p := newPipe(nth <= widePipes)
	if p == nil {
		return errNoPipe
	}
	defer src.SetReadDeadline(time.Time{})
	until := time.Time{}
	for {
		if now := time.Now(); until.Sub(now) < spliceWait-spliceWait/8 { // a deadline costs more than a look at the clock
			until = now.Add(spliceWait)
			src.SetReadDeadline(until)
		}
		n, err := p.fill(from)
		if err == nil && n > 0 {
			err = p.drain(to, count)
			if err == nil {
				continue
			}
			return err // what is left in the pipe goes with it
		}
		p.pool.Put(p)
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil
		case err != nil:
			return err
		}
		return io.EOF
	}
}

// fill waits for bytes and takes them; none is the end.
func (p *pipe) fill(from syscall.RawConn) (int, error) {
	if err := from.Read(p.spliceIn); err != nil {
		return 0, err
	}
	if p.err != nil {
		return 0, fmt.Errorf("reading: %w", os.NewSyscallError("splice", p.err))
	}
	p.held = p.n
	return p.n, nil
}

// drain writes all that was taken.
func (p *pipe) drain(to syscall.RawConn, count *atomic.Int64) error {
	all := p.held
	err := to.Write(p.spliceOut)
	count.Add(int64(all - p.held))
	if err == nil && p.err != nil {
		err = fmt.Errorf("writing: %w", os.NewSyscallError("splice", p.err))
	}
	return err
}
