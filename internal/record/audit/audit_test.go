package audit

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
)

// create begins a log in a directory of its own.
func create(t testing.TB, o Options) *Log {
	t.Helper()
	if o.Session == "" {
		o.Session = "20261122T010203.004-abcdefgh"
	}
	l, err := Create(filepath.Join(t.TempDir(), "state", "log"), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// eventful are events of every shape that a record can have.
func eventful() []event.Event {
	at := time.Date(2026, 11, 22, 1, 2, 3, 4000, time.UTC)
	sys := event.Syscall
	return []event.Event{
		{Time: at, Sensor: event.Task, N: 1, Action: event.SessionStart, Object: "/work/\xff\xfe", Verdict: event.Allowed, Detail: map[string]string{"": "", "sensors": "task,syscall,tripwire,egress"}},
		{Time: at.Add(time.Second), Sensor: sys, N: 1, Action: event.ProcExec, Object: "./a b", Resolved: "/bin/sh", Verdict: event.Allowed, Process: event.Process{
			PID: 7, Exec: 1, Parent: 6, ParentExec: 3, Executable: "/bin/busybox", SHA256: sum("x"), Cwd: "/", Argv: []string{"", "-c", "echo \"\u202e\x1b[31m\"\n{\"seq\":9}", "\x80"},
		}},
		{Time: at.Add(1500 * time.Millisecond), Sensor: sys, N: 2, Action: event.FileWrite, Object: "é\u2028\x00\x7f\u0080", Verdict: event.Denied,
			Layer: event.LayerReadonly, Rule: "policy.yaml:12", Error: "EROFS", Process: event.Process{PID: 7}, Detail: map[string]string{"mode": "0644", "bytes": "\xc3"}},
		{Sensor: sys, N: 3, Action: event.SysCall, Object: "ptrace"},
		{Time: at, Sensor: event.Detect, N: 1, Action: event.AlertRaise, Object: "FS-01", Detail: map[string]string{"severity": "critical"}},
		{Time: at, Sensor: event.Egress, N: 1, Action: event.NetQuery, Object: "example.org", Verdict: event.Denied},
	}
}

// sample writes a small log of every kind of line and returns its path. Its
// parts are deterministic except for the times.
func sample(t testing.TB) string {
	t.Helper()
	l := create(t, Options{Detail: map[string]string{"level": "standard"}})
	for _, e := range eventful() {
		delete(e.Detail, "")
		if err := l.Emit(e); err != nil {
			t.Fatal(err)
		}
	}
	ended(t, l, map[event.Sensor]int{event.Task: 2, event.Syscall: 3, event.Detect: 1, event.Egress: 1})
	return l.Path()
}

// ended ends a session in which the sensors had these counts of events.
func ended(t testing.TB, l *Log, counts map[event.Sensor]int) {
	t.Helper()
	d := map[string]string{"status": "0"}
	for s, n := range counts {
		d[countPrefix+string(s)] = fmt.Sprint(n)
	}
	if err := l.Emit(event.Event{Sensor: event.Task, N: uint64(counts[event.Task]), Action: event.SessionEnd, Detail: d}); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// verified is the report on a log.
func verified(t testing.TB, path string) Report {
	t.Helper()
	r, err := Verify(context.Background(), path, VerifyOptions{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// want fails unless the verdict and one of the problems are as given.
func (r Report) want(t testing.TB, v Verdict, problem string) {
	t.Helper()
	found := problem == ""
	for _, p := range r.Problems {
		found = found || strings.Contains(p.String(), problem)
	}
	if r.Verdict != v || !found {
		t.Errorf("the log is %v, %v, %q; want %v with %q", r.Verdict, r.Problems, r.Notes, v, problem)
	}
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// events reads all events of a log.
func events(t testing.TB, path string) []event.Event {
	t.Helper()
	var all []event.Event
	err := Scan(context.Background(), path, 2, nil, func(r *Record) error {
		e, err := r.Event()
		all = append(all, e)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	path := sample(t)
	got := events(t, path)
	want := eventful()
	delete(want[0].Detail, "")
	if len(got) != len(want)+2 || got[0].Action != event.RecordBegin || got[0].Detail["level"] != "standard" {
		t.Fatalf("%d events: %+v", len(got), got)
	}
	for i, w := range want {
		g := got[i+1]
		if w.Time.IsZero() {
			w.Time = g.Time
		}
		w.Seq, w.Session = g.Seq, "20261122T010203.004-abcdefgh"
		if len(w.Detail) == 0 {
			w.Detail = nil
		}
		if !reflect.DeepEqual(g, w) {
			t.Errorf("read\n%+v, written\n%+v", g, w)
		}
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("the record is %v, %v", st.Mode(), err)
	}
	for _, dir := range []string{"log", "keys", "heads"} {
		if st, err := os.Stat(filepath.Join(filepath.Dir(filepath.Dir(path)), dir)); err != nil || st.Mode().Perm() != 0o700 {
			t.Errorf("%s is %v, %v", dir, st.Mode(), err)
		}
	}
	verified(t, path).want(t, Complete, "")
}

// TestContentForgesNothing: whatever a name contains, a record is one line, and
// nothing in it can control a terminal, except characters above ASCII, which
// are data in a file.
func TestContentForgesNothing(t *testing.T) {
	content := read(t, sample(t))
	for line := range bytes.Lines(content) {
		for i, c := range line {
			if c < ' ' && (c != '\n' || i != len(line)-1) {
				t.Errorf("byte %d of %q is a control character", i, line)
			}
		}
	}
	if n := bytes.Count(content, []byte("\n")); n != 10 { // 8 events, 2 checkpoints
		t.Errorf("%d lines:\n%s", n, content)
	}
}

func TestManyWriters(t *testing.T) {
	l := create(t, Options{})
	const writers, each = 8, 500
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			put := l.Observe
			if w%2 == 0 {
				put = l.Emit
			}
			for i := range each {
				e := event.Event{Sensor: event.Sensor(fmt.Sprint("s", w)), N: uint64(i + 1), Action: event.FileOpen, Object: "/x"}
				if err := put(e); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	counts := map[event.Sensor]int{event.Task: 1}
	for w := range writers {
		counts[event.Sensor(fmt.Sprint("s", w))] = each
	}
	ended(t, l, counts)
	r := verified(t, l.Path())
	r.want(t, Complete, "")
	if r.Lines < writers*each || r.Checkpoints < writers*each/checkpointAt || r.Sensors["s3"] != (Count{Total: each, Standing: each}) {
		t.Errorf("%+v", r)
	}
	if err := l.Emit(event.Event{Action: event.FileOpen}); err == nil {
		t.Error("a log that has ended takes events")
	}
}

// TestObservedIsWrittenSoon: an event is written within 10 ms, and nothing runs
// when there is nothing to write.
func TestObservedIsWrittenSoon(t *testing.T) {
	l := create(t, Options{})
	if l.timers.flush != nil {
		t.Error("a timer runs for nothing")
	}
	if err := l.Observe(event.Event{Sensor: event.Syscall, N: 1, Action: event.FileOpen, Object: "/soon"}); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	for !bytes.Contains(read(t, l.Path()), []byte("/soon")) {
		if time.Since(start) > 20*time.Second { // of a busy machine
			t.Fatal("it is not written")
		}
		time.Sleep(time.Millisecond)
	}
	ticks := func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.timers.flush != nil
	}
	for start = time.Now(); ticks(); time.Sleep(time.Millisecond) {
		if time.Since(start) > 20*time.Second {
			t.Fatal("a timer runs for nothing")
		}
	}
}

// TestCheckpoints: after 1024 records, after a second, at serious alerts and at
// the end.
func TestCheckpoints(t *testing.T) {
	l := create(t, Options{})
	stops := func() int { return verified(t, l.Path()).Checkpoints }
	n := uint64(0)
	add := func(action, severity string) {
		n++
		if err := l.Emit(event.Event{Sensor: event.Syscall, N: n, Action: action, Detail: map[string]string{"severity": severity}}); err != nil {
			t.Fatal(err)
		}
	}
	add(event.AlertRaise, "low")
	l.mu.Lock()
	l.disarm(&l.timers.checkpoint) // a pause of a second gives one
	l.timers.checkpoint = time.NewTimer(time.Hour)
	l.mu.Unlock()
	add(event.FileOpen, "critical")
	if got := stops(); got != 0 {
		t.Fatalf("%d checkpoints", got)
	}
	add(event.AlertRaise, "high")
	if got := stops(); got != 1 {
		t.Fatalf("%d checkpoints after an alert", got)
	}
	for range checkpointAt {
		add(event.FileOpen, "")
	}
	if got := stops(); got != 2 {
		t.Fatalf("%d checkpoints after %d records", got, n)
	}
	add(event.FileOpen, "")
	for start := time.Now(); stops() < 3; time.Sleep(20 * time.Millisecond) {
		if time.Since(start) > 10*time.Second {
			t.Fatal("no checkpoint after some seconds")
		}
	}
	ended(t, l, map[event.Sensor]int{event.Task: 1, event.Syscall: int(n)})
	r := verified(t, l.Path())
	r.want(t, Complete, "")
	if r.Checkpoints != 4 || r.Signed != uint64(r.Lines) {
		t.Errorf("%+v", r)
	}
}

func TestValidSession(t *testing.T) {
	for id, want := range map[string]bool{
		"a": true, "20261122T090000-ab12cd34ef56": true, "A-b_c.9": true, strings.Repeat("a", 64): true,
		"": false, ".a": false, "-a": false, "a/b": false, "a\n": false, "é": false, strings.Repeat("a", 65): false,
	} {
		if got := ValidSession(id); got != want {
			t.Errorf("%q: %v", id, got)
		}
		if l, err := Create(filepath.Join(t.TempDir(), "log"), Options{Session: id}); (err == nil) != want {
			t.Errorf("%q: %v", id, err)
		} else if err == nil {
			l.Close()
		}
	}
}

// TestOneLogASession: a session's log never has two writers, and is never continued.
func TestOneLogASession(t *testing.T) {
	l := create(t, Options{Session: "once"})
	if _, err := Create(filepath.Dir(l.Path()), Options{Session: "once"}); err == nil {
		t.Error("a second log of the same session")
	}
}
