//go:build linux

package supervise

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"holdfast.dev/holdfast/internal/floor/event"
)

// TestWhatCannotBeTracedIsNotExecuted: the program that runs is compared, under trace,
// with what was approved. A process that is already traced cannot be seized (EPERM,
// ptrace(2)), so its execution is refused and the record says so.
func TestWhatCannotBeTracedIsNotExecuted(t *testing.T) {
	dir := makeTree(t)
	ended := make(chan syscall.Errno, 1)
	h := &human{ask: (&human{}).about("touch")}
	h.answer = func(a event.Attempt) event.Ruling {
		began := make(chan syscall.Errno)
		go traceUntilEnd(a.Process.PID, began, ended)
		if errno := <-began; errno != 0 {
			t.Errorf("tracing %d before the supervisor does: %v", a.Process.PID, errno)
		}
		return event.Ruling{Verdict: event.Allowed, Granted: true}
	}
	r := start(t, []string{"/bin/sh", "-c", "(exec /usr/bin/touch made); echo status $?"}, in(dir), gate(h, event.KindExec))
	status := r.wait()
	if _, err := os.Lstat(dir + "/made"); err == nil || status != 0 || !strings.HasSuffix(r.out.String(), "status 126\n") {
		t.Errorf("it was executed: status %d, %s", status, r.out.String())
	}
	was, e := event.Event{}, r.last(event.ProcSeen)
	for _, one := range r.eventsOf(event.ProcExec) {
		if one.Object == "/usr/bin/touch" {
			was = one
		}
	}
	if e.Detail["reason"] != "it cannot be traced: EPERM" || e.Detail["not_executed"] == "" || e.Process.PID != was.Process.PID || e.Detail["not_executed"] != strconv.FormatUint(was.Process.Exec, 10) {
		t.Errorf("the record has %+v\nof %+v", e, was)
	}
	if errno := <-ended; errno != 0 {
		t.Errorf("following it: %v", errno)
	}
}

// traceUntilEnd traces a process as another tracer would, until it ended. A thread
// that traces must do all of that itself.
func traceUntilEnd(pid int, began, ended chan<- syscall.Errno) {
	runtime.LockOSThread()
	errno := seize(pid)
	began <- errno
	for errno == 0 {
		r, failed := nextReport()
		if failed != 0 || r.ended {
			errno = failed
			break
		}
		errno = detach(r.pid, r.sig)
	}
	ended <- errno
}
