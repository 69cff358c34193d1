//go:build linux

package supervise

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/sys"
)

const (
	maxHeld = 256                    // calls that wait for an answer at a time; one more is refused
	patrol  = 100 * time.Millisecond // how often to check whether the waiting callers are still there
)

// holding is the calls that wait for a human. The lock of the Supervisor guards
// its fields.
type holding struct {
	calls   map[uint64]*heldCall // by the number of the notification
	work    chan func()
	closed  bool
	patrols bool // lookAfter runs
}

// heldCall is one of them.
type heldCall struct {
	end    context.CancelFunc
	tid    int
	broken bool // by a signal that its program has a handler for
}

// holdCall leaves a call unanswered until there is a ruling, or its caller is gone. Then it
// runs next with the lock, on a thread with the ids of the receiver. It returns false
// when too many calls wait already. The lock is held.
func (s *Supervisor) holdCall(c *call, r event.Ruling, next func(event.Ruling)) bool {
	return s.wait(c.notification, func(ctx context.Context) {
		r := await(ctx, r)
		s.held.work <- func() { next(r) }
	})
}

// wait leaves a call unanswered and does something about it beside the receiver,
// without the lock and on any thread. Its context ends when the caller is gone.
func (s *Supervisor) wait(n *notification, do func(context.Context)) bool {
	h := &s.held
	if h.closed || len(h.calls) >= maxHeld {
		return false
	}
	if h.calls == nil {
		h.calls, h.work = map[uint64]*heldCall{}, make(chan func(), maxHeld)
		s.working.Add(1)
		go s.worker(h.work)
	}
	ctx, cancel := context.WithCancel(context.Background())
	h.calls[n.id] = &heldCall{end: cancel, tid: int(n.pid)}
	if !h.patrols {
		h.patrols = true
		go s.lookAfter()
	}
	s.waiting.Add(1)
	go func() {
		defer s.waiting.Done()
		defer cancel()
		do(ctx)
	}()
	return true
}

// await is the ruling, or a denial when ctx ends, whatever the gate does.
func await(ctx context.Context, r event.Ruling) event.Ruling {
	if r.Wait == nil {
		return r
	}
	ruling := make(chan event.Ruling, 1)
	go func() { ruling <- r.Wait(ctx) }()
	select {
	case answer := <-ruling:
		return answer
	case <-ctx.Done():
		return event.Ruling{Verdict: event.Denied, Rule: r.Rule, Reason: "it was not answered before the run ended"}
	}
}

// forgetHeld forgets a call that waited. The lock is held. A call interrupted by a signal
// returns EINTR, as any blocking call would.
func (s *Supervisor) forgetHeld(c *call) {
	if h := s.held.calls[c.id]; h != nil && h.broken && c.refused {
		c.refusal = unix.EINTR
		c.add("reason", "a signal came that the program handles")
	}
	delete(s.held.calls, c.id)
}

// worker runs what comes next for calls that waited.
func (s *Supervisor) worker(work <-chan func()) {
	defer s.working.Done()
	runtime.LockOSThread() // and ends with it, see become
	s.takeIDs()
	for next := range work {
		s.mu.Lock()
		next()
		s.mu.Unlock()
	}
}

// lookAfter cancels calls whose callers are gone, and all of them once the record is
// broken: these are refused then.
func (s *Supervisor) lookAfter() {
	for {
		time.Sleep(patrol)
		s.mu.Lock()
		if len(s.held.calls) == 0 {
			s.held.patrols = false
			s.mu.Unlock()
			return
		}
		for id, h := range s.held.calls {
			h.broken = h.broken || s.asksToStop(h.tid)
			if h.broken || s.failed.err() != nil || !s.listener.valid(id) {
				h.end()
			}
		}
		s.mu.Unlock()
	}
}

// stops are the signals that ask a program to end. While a call waits for an answer only
// the death of its caller interrupts it, so a program that handles one of these would not
// get to its handler before a human answers.
const stops = 1<<(unix.SIGINT-1) | 1<<(unix.SIGTERM-1) | 1<<(unix.SIGHUP-1) | 1<<(unix.SIGQUIT-1)

// asksToStop reports whether such a signal waits for a thread.
func (s *Supervisor) asksToStop(tid int) bool {
	text := readAt(s.table.dir, strconv.Itoa(tid)+"/status", make([]byte, 4096))
	set := func(name string) (bits uint64) {
		for _, field := range sys.StatusField(text, name) {
			bits, _ = strconv.ParseUint(field, 16, 64)
		}
		return bits
	}
	return (set("SigPnd")|set("ShdPnd"))&set("SigCgt")&^set("SigBlk")&stops != 0
}

// cancelHeld refuses all calls that wait, and all that would from now on. It returns when
// each has its answer; an error means that the host's file system does not return from a
// change. The lock is not held.
func (s *Supervisor) cancelHeld() error {
	h := &s.held
	s.mu.Lock()
	h.closed = true
	for _, held := range h.calls {
		held.end()
	}
	s.mu.Unlock()
	all := make(chan struct{})
	go func() {
		s.waiting.Wait()
		close(all)
	}()
	select {
	case <-all:
	case <-time.After(closeWait):
		return errors.New("ending the record of system calls: a change outside has not finished")
	}
	s.mu.Lock()
	if h.work != nil {
		close(h.work)
		h.work = nil
	}
	s.endTracers()
	s.mu.Unlock()
	s.working.Wait()
	return nil
}
