//go:build linux

package supervise

import (
	"fmt"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	maxTracers  = 64 // threads that wait for an execution to be through; more executions wait for one of them
	idleTracers = 2  // that stay when there is nothing to do
)

// traced is an execution that continues under trace: the program that really runs is
// compared with what was judged, before its first instruction.
type traced struct {
	call *call
	was  *execution
}

// tracers is threads that trace. A thread that traces must make every request
// about what it traces itself. The lock of the Supervisor guards the fields.
type tracers struct {
	jobs   chan *traced
	ended  chan struct{} // closed when there will be none any more
	queue  []*traced
	count  int
	idle   int
	closed bool
}

// trace lets an execution go on under trace, beside the receiver.
func (s *Supervisor) trace(j *traced) {
	t := &s.tracers
	if t.jobs == nil {
		t.jobs, t.ended = make(chan *traced), make(chan struct{})
	}
	select {
	case t.jobs <- j:
		t.idle--
		return
	default:
	}
	if t.count == maxTracers {
		t.queue = append(t.queue, j)
		return
	}
	t.count++
	s.reading.Add(1)
	go s.tracer(j)
}

// tracer is one thread that traces, and nothing else.
func (s *Supervisor) tracer(j *traced) {
	defer s.reading.Done()
	runtime.LockOSThread() // and ends with its goroutine, unless it is the first of this program
	for j != nil && s.follow(j) {
		j = s.nextTraced()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &s.tracers
	t.count--
	if len(t.queue) > 0 {
		t.count++
		next := t.queue[0]
		t.queue = t.queue[1:]
		s.reading.Add(1)
		go s.tracer(next)
	}
}

// nextTraced waits for the next execution to trace, nil for none.
func (s *Supervisor) nextTraced() *traced {
	t := &s.tracers
	s.mu.Lock()
	if len(t.queue) > 0 {
		j := t.queue[0]
		t.queue = t.queue[1:]
		s.mu.Unlock()
		return j
	}
	if t.idle >= idleTracers || t.closed {
		s.mu.Unlock()
		return nil
	}
	t.idle++
	s.mu.Unlock()
	select {
	case j := <-t.jobs:
		return j
	case <-t.ended:
		return nil
	}
}

// endTracers lets the threads end that have nothing to do. The lock is held.
func (s *Supervisor) endTracers() {
	if t := &s.tracers; !t.closed {
		t.closed = true
		if t.ended != nil {
			close(t.ended)
		}
	}
}

// follow lets one execution continue and checks its result. False means that this
// thread must not be used again.
//
// The thread is made to stop before its call proceeds (PTRACE_INTERRUPT), so that it
// stops in any case: when it executed (PTRACE_EVENT_EXEC), before the first instruction
// of the new program, and when that failed, on its way back. So this ends however the
// execution does, except if the kernel does not come back from it. Nothing of ours is
// locked meanwhile: seizing waits for another thread of the same process that executes.
func (s *Supervisor) follow(j *traced) (again bool) {
	c := j.call
	errno, seized := s.attach(c)
	refusal := unix.Errno(0)
	switch errno {
	case 0:
	case unix.ECHILD: // its next call has to do
		s.mu.Lock()
		j.was.untraced = errno
		s.mu.Unlock()
	default:
		s.recordUntraceable(j, errno)
		refusal = unix.EPERM
	}
	if e := s.listener.answer(c.id, refusal); !s.handleAnswered(e) && e != unix.ENOENT {
		return false
	}
	if errno != 0 {
		return errno == unix.ECHILD || !seized
	}
	r, errno := nextReport()
	switch {
	case errno != 0:
		return false
	case r.ended:
		return true
	case r.event != unix.PTRACE_EVENT_EXEC:
		if r.event == unix.PTRACE_EVENT_STOP {
			r.sig = 0 // of ours, or of a stop of the process, which resumes on its own
		}
		return release(r.pid, r.sig)
	}
	if !s.verify(j) {
		_ = unix.Kill(r.pid, unix.SIGKILL) // its number is its own while it is traced
		return release(r.pid, 0)
	}
	return release(r.pid, 0)
}

// attach begins to trace the caller, and stops it. ECHILD is for a child of ours: its
// waiter would take the stops for its end.
func (s *Supervisor) attach(c *call) (errno syscall.Errno, seized bool) {
	if c.proc.parent == s.table.self {
		return unix.ECHILD, false
	}
	if errno = seize(c.tid); errno != 0 {
		return errno, false
	}
	errno = interrupt(c.tid)
	s.awaitSleep(c.tid)
	return errno, true
}

// recordUntraceable records that an execution is refused after all: the program that would
// run could not be compared with what was judged.
func (s *Supervisor) recordUntraceable(j *traced, errno syscall.Errno) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := j.call.proc
	j.was.doomed, p.pending, p.now = true, nil, j.was.before
	s.running.Store(p.pid, p.now.exec)
	s.recordProcess(p, map[string]string{"not_executed": strconv.FormatUint(j.was.exec, 10), "reason": "it cannot be traced: " + unix.ErrnoName(errno)})
}

// release detaches a thread that stopped, or that died meanwhile.
func release(pid, sig int) bool {
	for detach(pid, sig) != 0 {
		r, errno := nextReport()
		if errno != 0 || r.ended {
			return errno == 0
		}
	}
	return true
}

// awaitSleep waits, before Linux 6.17, until the caller sleeps again: an answer that comes
// while it wakes up is taken for no answer there, and the call is restarted.
func (s *Supervisor) awaitSleep(tid int) {
	if linux6(17) {
		return
	}
	name := fmt.Sprintf("/proc/%d/stat", tid)
	buf := make([]byte, 512)
	for end := time.Now().Add(50 * time.Millisecond); time.Now().Before(end); time.Sleep(50 * time.Microsecond) {
		if sleepsDeep(name, buf) {
			return
		}
	}
}
