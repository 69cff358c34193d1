package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
)

// faulty breaks one operation of a log's file.
type faulty struct {
	*os.File
	write, sync int // which one fails, from 1; 0 for none
	kept        int // bytes that a failing write writes all the same; -1 for all
	slow        time.Duration
	writes      atomic.Int64
	syncs       atomic.Int64
}

var errFault = errors.New("input/output error")

func (f *faulty) Write(b []byte) (int, error) {
	time.Sleep(f.slow)
	if n := f.writes.Add(1); f.write == 0 || n < int64(f.write) {
		return f.File.Write(b)
	} else if n > int64(f.write) {
		panic("the file is written to after a failure")
	}
	kept := b
	if f.kept >= 0 {
		kept = b[:min(f.kept, len(b))]
	}
	if n, err := f.File.Write(kept); err != nil {
		return n, err
	}
	return 0, errFault
}

func (f *faulty) Sync() error {
	time.Sleep(f.slow)
	n := f.syncs.Add(1)
	if f.sync != 0 && n > int64(f.sync) {
		panic("the file is synced after a failure")
	}
	if f.sync != 0 && n == int64(f.sync) {
		return errFault
	}
	return f.File.Sync()
}

// withFault begins a log with a faulty file.
func withFault(t *testing.T, f *faulty, o Options) (*Log, error) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "log")
	o.Session, o.MaxBytes = "fault", MaxBytes
	o.Keys, o.Heads = defaultDirs(dir, "", "")
	for _, d := range []string{dir, o.Heads} {
		if err := makePrivateDir(d); err != nil {
			t.Fatal(err)
		}
	}
	k, err := loadKey(o.Keys)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "fault"+suffix)
	if f.File, err = os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.File.Close() })
	return begin(f, path, k, o)
}

// failures receives the error of each call of Failed.
type failures chan error

func (f failures) one(t *testing.T) {
	t.Helper()
	select {
	case err := <-f:
		if !errors.Is(err, errFault) && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("it failed with %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("nobody is told of the failure")
	}
	select {
	case err := <-f:
		t.Errorf("it failed again: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
}

// TestFaults breaks every write and every sync in each way. Everything
// acknowledged is in the log; after the failure nothing is acknowledged, and
// the log does not pass for whole.
func TestFaults(t *testing.T) {
	for write := range 8 {
		for _, kept := range []int{0, -1, 1, 100, 700} {
			t.Run(fmt.Sprintf("write %d, of which %d bytes are kept", write+2, kept), func(t *testing.T) {
				faults(t, &faulty{write: write + 2, kept: kept})
			})
		}
	}
	for sync := range 3 {
		t.Run(fmt.Sprintf("sync %d", sync+1), func(t *testing.T) { faults(t, &faulty{sync: sync + 1}) })
	}
	for _, kept := range []int{0, -1, 50} {
		l, err := withFault(t, &faulty{write: 1, kept: kept}, Options{})
		if err == nil {
			l.Close()
			t.Error("a log begins that cannot be written")
		}
	}
}

func faults(t *testing.T, f *faulty) {
	told := make(failures, 10)
	l, err := withFault(t, f, Options{Failed: func(err error) { told <- err }})
	if err != nil {
		t.Fatal(err)
	}
	acknowledged := uint64(0)
	failed := false
	// However slow the disk is: checkpoints go together while one is synced.
	for n, start := uint64(1), time.Now(); !failed && (n < 40 || f.sync > 0 && time.Since(start) < 10*time.Second); n++ {
		e := event.Event{Sensor: event.Syscall, N: n, Action: event.AlertRaise, Object: "/x"}
		if n%3 == 0 { // it gets a checkpoint
			e.Detail = map[string]string{"severity": "high"}
			time.Sleep(2 * time.Millisecond)
		}
		put := l.Emit
		if n%2 == 0 {
			put = l.Observe
		}
		if err := put(e); err != nil {
			if !errors.Is(err, errFault) {
				t.Errorf("it fails with %v", err)
			}
			failed = true
		} else if n%2 == 1 {
			acknowledged = n
		}
	}
	if failed {
		for _, put := range []func(event.Event) error{l.Emit, l.Observe} {
			if err := put(event.Event{Action: event.SessionEnd}); !errors.Is(err, errFault) {
				t.Errorf("after the failure: %v", err)
			}
		}
	}
	if err := l.Close(); !errors.Is(err, errFault) {
		t.Errorf("the end: %v", err)
	}
	told.one(t)
	r := verified(t, l.Path())
	r.want(t, Gaps, "")
	if got := r.Sensors["syscall"].Standing; got < acknowledged {
		t.Errorf("%d events stand, %d were acknowledged", got, acknowledged)
	}
}

// TestFaultOfTheEnd: the last write and the last sync matter as much. If only
// the acknowledgement of the last write is lost, the log is whole.
func TestFaultOfTheEnd(t *testing.T) {
	for _, c := range []struct {
		fault   *faulty
		verdict Verdict
	}{
		{&faulty{write: 3}, Gaps},
		{&faulty{write: 3, kept: 200}, Gaps},
		{&faulty{write: 3, kept: -1}, Complete},
		{&faulty{sync: 1}, Complete},
	} {
		told := make(failures, 10)
		l, err := withFault(t, c.fault, Options{Failed: func(err error) { told <- err }})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Emit(event.Event{Sensor: event.Task, N: 1, Action: event.SessionEnd, Detail: map[string]string{"count.task": "1"}}); err != nil {
			t.Fatal(err)
		}
		l.mu.Lock()
		l.disarm(&l.timers.checkpoint) // or after a second it is the third write
		l.mu.Unlock()
		if err := l.Close(); !errors.Is(err, errFault) {
			t.Errorf("%+v: %v", c.fault, err)
		}
		told.one(t)
		verified(t, l.Path()).want(t, c.verdict, "")
		if left, err := filepath.Glob(filepath.Join(filepath.Dir(l.keeper.path), "*")); err != nil || len(left) > 0 {
			t.Errorf("%+v: a head is kept of what may not be on the disk: %q, %v", c.fault, left, err)
		}
	}
}

// TestAShortLogIsSyncedOnce: a run that is over before its first checkpoint waits for
// the disk once, at its end.
func TestAShortLogIsSyncedOnce(t *testing.T) {
	fault := &faulty{}
	l, err := withFault(t, fault, Options{})
	if err != nil {
		t.Fatal(err)
	}
	l.mu.Lock()
	l.disarm(&l.timers.checkpoint) // on a very busy machine a second passes
	l.mu.Unlock()
	ended(t, l, map[event.Sensor]int{event.Task: 1})
	if n := fault.syncs.Load(); n != 1 {
		t.Errorf("it is synced %d times", n)
	}
	verified(t, l.Path()).want(t, Complete, "")
	if _, err := os.Stat(l.keeper.path); err != nil {
		t.Error(err)
	}
}

// TestNoHead: if the head cannot be kept, the log fails.
func TestNoHead(t *testing.T) {
	told := make(failures, 10)
	l := create(t, Options{Failed: func(err error) { told <- err }})
	if err := os.RemoveAll(filepath.Dir(l.keeper.path)); err != nil {
		t.Fatal(err)
	}
	if err := l.Emit(event.Event{Sensor: event.Detect, N: 1, Action: event.AlertRaise, Detail: map[string]string{"severity": "high"}}); err != nil {
		t.Fatal(err)
	}
	told.one(t)
	if err := l.Emit(event.Event{Sensor: event.Detect, N: 2}); err == nil {
		t.Error("it goes on")
	}
}

// TestSlow: a slow disk slows the writer, and the number of waiting events is bounded.
func TestSlow(t *testing.T) {
	f := &faulty{}
	l, err := withFault(t, f, Options{})
	if err != nil {
		t.Fatal(err)
	}
	f.slow = 20 * time.Millisecond
	const n = 5000
	for i := range n {
		if err := l.Observe(typicalEvent(uint64(i + 1))); err != nil {
			t.Fatal(err)
		}
		l.mu.Lock()
		if len(l.buf) > 2*flushAt {
			t.Errorf("%d bytes wait", len(l.buf))
		}
		l.mu.Unlock()
	}
	start := time.Now()
	if err := l.Emit(event.Event{Sensor: event.Task, N: 1, Action: event.SessionEnd, Detail: map[string]string{"count.task": "1", "count.syscall": fmt.Sprint(n)}}); err != nil {
		t.Fatal(err)
	}
	if time.Since(start) < f.slow {
		t.Error("it was acknowledged before it was written")
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	verified(t, l.Path()).want(t, Complete, "")
}

// typicalEvent is an event of the most frequent kind.
func typicalEvent(n uint64) event.Event {
	return event.Event{Sensor: event.Syscall, N: n, Action: event.FileOpen, Object: "/usr/lib/some/where", Verdict: event.Allowed}
}

// TestDetailKeys: what cannot be written is refused, and its loss is recorded.
func TestDetailKeys(t *testing.T) {
	l := create(t, Options{})
	bad := event.Event{Sensor: event.Syscall, N: 1, Action: event.FileOpen, Detail: map[string]string{"a\"b": "x"}}
	if err := l.Emit(bad); err == nil {
		t.Error("a key that is none")
	}
	bad.N = 2
	if err := l.Observe(bad); err != nil {
		t.Errorf("who observes is stopped: %v", err)
	}
	ended(t, l, map[event.Sensor]int{event.Task: 1, event.Syscall: 2})
	verified(t, l.Path()).want(t, Gaps, `2 events of "syscall" (1-2) were dropped`)
}

// TestOnDisk: what a head outside covers was synced before.
func TestOnDisk(t *testing.T) {
	f := &faulty{}
	l, err := withFault(t, f, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for n := range uint64(20) {
		e := event.Event{Sensor: event.Detect, N: n + 1, Action: event.AlertRaise, Detail: map[string]string{"severity": "high"}}
		if err := l.Emit(e); err != nil {
			t.Fatal(err)
		}
	}
	for start := time.Now(); f.syncs.Load() == 0; time.Sleep(time.Millisecond) {
		if time.Since(start) > 10*time.Second {
			t.Fatal("no checkpoint is synced")
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if head := read(t, l.keeper.path); !bytes.Contains(head, []byte("\n"+stateEnd+"\n")) {
		t.Errorf("the head is\n%s", head)
	}
	if _, err := Verify(context.Background(), filepath.Join(t.TempDir(), "none"+suffix), VerifyOptions{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a log that is not there: %v", err)
	}
}
