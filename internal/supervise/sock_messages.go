//go:build linux

package supervise

import (
	"encoding/binary"

	"holdfast.dev/holdfast/internal/floor/event"
)

const (
	msghdrSize  = 56   // struct msghdr; it begins with the name and its length
	mmsghdrSize = 64   // struct mmsghdr
	maxMessages = 1024 // UIO_MAXIOV: the kernel sends no more of them
	portalPID   = 3    // inside, of the process that hands out sockets
)

// messages records the addresses of sendmsg and sendmmsg, each once a call. A
// message without an address goes where its socket is connected, which was
// recorded then.
func (s *Supervisor) messages(c *call) {
	if s.config.View.Portal && c.proc.now.exec == 0 && c.proc.number() == portalPID {
		s.answer(c)
		return
	}
	// A descriptor in flight is closed by the kernel, long after the end where sockets are
	// nested, and a write through shared memory is reported when it is (unix_gc in
	// net/unix/garbage.c). Whether one comes along is not asked: another thread could
	// change the message meanwhile.
	s.hidden.Store(true)
	count, size := uint64(1), uint64(msghdrSize)
	if c.info.shape == shapeMessages {
		count, size = min(c.arg(c.info.arg)&0xffffffff, maxMessages), mmsghdrSize
	}
	var last *event.Event
	seen := map[string]bool{}
	for i := range count {
		e := &event.Event{Action: c.sockAction(), Verdict: event.Allowed}
		if !s.message(c, e, c.arg(c.info.path)+i*size) || seen[e.Object] {
			continue
		}
		seen[e.Object] = true
		if last != nil {
			s.observeMore(c, last)
		}
		last = e
	}
	if last == nil {
		s.answer(c)
		return
	}
	s.finish(c, last)
}

// message reads one struct msghdr, and reports whether it has an address, or could not
// be read.
func (s *Supervisor) message(c *call, e *event.Event, at uint64) bool {
	var head [12]byte
	if errno := s.memory.fill(c.tid, at, head[:]); errno != 0 {
		s.noteUnread(c, e, "address", errno)
		return true
	}
	name, size := binary.NativeEndian.Uint64(head[:]), int(int32(binary.NativeEndian.Uint32(head[8:])))
	if name == 0 || size == 0 {
		return false
	}
	s.sockAddress(c, e, name, min(size, 128)) // the kernel cuts it off
	return true
}

// observeMore records one of several events of a call that is not answered yet.
func (s *Supervisor) observeMore(c *call, e *event.Event) {
	e.Detail, e.Process = c.detail, c.proc.eventProcess()
	c.detail = nil
	s.observe(e)
}
