package audit

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
)

// flood observes events of one kind.
func flood(t *testing.T, l *Log, n int, e event.Event) {
	t.Helper()
	for range n {
		e.N++
		if err := l.Observe(e); err != nil {
			t.Fatal(err)
		}
	}
}

// sizeOf is the size of the file, with unwritten lines.
func sizeOf(l *Log) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.size
}

func endWith(t *testing.T, l *Log, syscalls uint64) Report {
	t.Helper()
	ended(t, l, map[event.Sensor]int{event.Task: 1, event.Syscall: int(syscalls)})
	return verified(t, l.Path())
}

// TestFloodIsSummarised: above the rate, events are counted; those that are
// denied or marked are not hidden by others; nothing is lost silently.
func TestFloodIsSummarised(t *testing.T) {
	l := create(t, Options{MaxBytes: 1 << 30})
	now := l.now().Add(time.Minute) // time does not advance
	l.mu.Lock()
	for i := range l.budget.buckets {
		l.budget.buckets[i] = bucket{1000, now}
	}
	l.mu.Unlock()
	const n = 20_000
	for i := range uint64(n) {
		e := event.Event{Time: now, Sensor: event.Syscall, N: i + 1, Action: event.FileOpen, Object: "/x", Verdict: event.Allowed}
		switch {
		case i%100 == 0:
			e.Verdict = event.Denied
		case i%100 == 50:
			e.Detail = map[string]string{"mark": "credential"}
		}
		if err := l.Observe(e); err != nil {
			t.Fatal(err)
		}
	}
	r := endWith(t, l, n)
	r.want(t, Gaps, "stand summarised, not one by one")
	want := Count{Total: n, Standing: 1000 + n/100 + n/100, Summarised: n - 1000 - n/100 - n/100}
	if got := r.Sensors["syscall"]; got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	var cut uint64
	for _, e := range events(t, l.Path()) {
		if e.Action != event.RecordCut {
			continue
		}
		k, err := strconv.ParseUint(e.Detail["count."+event.FileOpen], 10, 64)
		if err != nil || e.Detail["count"] != e.Detail["count."+event.FileOpen] || e.Detail["reason"] != reasonRate || e.Sensor != event.Record {
			t.Errorf("%+v", e)
		}
		cut += k
	}
	if cut != want.Summarised {
		t.Errorf("%d are summarised, want %d", cut, want.Summarised)
	}
}

// TestFloodDoesNotFill: one kind takes at most two thirds of the space for
// observed events, so that there is room for others, and for decisions.
func TestFloodDoesNotFill(t *testing.T) {
	const limit = 1 << 20
	l := create(t, Options{MaxBytes: limit})
	flood(t, l, 10_000, event.Event{Sensor: event.Syscall, Action: event.FileOpen, Object: strings.Repeat("a", 200)})
	first := sizeOf(l)
	if first > limit*3/4*7/10 {
		t.Errorf("one kind of event took %d bytes of %d", first, limit)
	}
	flood(t, l, 10_000, event.Event{Sensor: event.Syscall, N: 10_000, Action: event.FileOpen, Verdict: event.Denied, Object: strings.Repeat("a", 200)})
	if sizeOf(l) == first {
		t.Error("there was no room for another kind")
	}
	if err := l.Observe(event.Event{Sensor: event.Egress, N: 1, Action: event.NetQuery, Object: "after-the-flood"}); err != nil {
		t.Fatal(err)
	}
	if err := l.Emit(event.Event{Sensor: event.Egress, N: 2, Action: event.NetConnect, Object: "decided"}); err != nil {
		t.Error("a decision was not recorded:", err)
	}
	ended(t, l, map[event.Sensor]int{event.Task: 1, event.Syscall: 20_000, event.Egress: 2})
	if st, err := os.Stat(l.Path()); err != nil || st.Size() > limit {
		t.Errorf("the log has %d bytes, %v", st.Size(), err)
	}
	r := verified(t, l.Path())
	r.want(t, Gaps, "stand summarised")
	if c := r.Sensors["syscall"]; c.Standing+c.Summarised != 20_000 || c.Missing+c.Dropped != 0 || r.Sensors["egress"].Standing != 2 {
		t.Errorf("%+v", r.Sensors)
	}
}

// TestFull: recording fails, so that the attempt does not happen; the end of
// the session is recorded, and what was refused is counted.
func TestFull(t *testing.T) {
	l := create(t, Options{MaxBytes: 64 << 10})
	n, refused := uint64(0), uint64(0)
	for range 2000 {
		n++
		if err := l.Emit(event.Event{Sensor: event.Syscall, N: n, Action: event.ProcExec, Object: "/bin/true"}); err != nil {
			refused++
		}
	}
	if refused == 0 || refused == n {
		t.Fatalf("%d of %d were refused", refused, n)
	}
	grown := sizeOf(l)
	if grown > 70<<10 {
		t.Errorf("the log has %d bytes", grown)
	}
	r := endWith(t, l, n)
	r.want(t, Gaps, "were dropped, as the log itself says")
	if got := r.Sensors["syscall"]; got != (Count{Total: n, Standing: n - refused, Dropped: refused}) {
		t.Errorf("%+v of %d, %d refused", got, n, refused)
	}
}

// TestReportsDoNotFill: however long a flood goes on over a full log, and
// however its events are mixed, the log grows by time and not by events.
func TestReportsDoNotFill(t *testing.T) {
	l := create(t, Options{MaxBytes: 64 << 10})
	n := uint64(0)
	put := func(k int) {
		for range k {
			n++
			e := event.Event{Sensor: event.Syscall, N: n, Action: event.ProcExec, Object: "/bin/true"}
			if n%2 == 0 {
				l.Observe(e)
			} else {
				l.Emit(e) // in the end it is an error
			}
		}
	}
	put(5_000)
	before := sizeOf(l)
	put(20_000)
	if grown := sizeOf(l) - before; grown > 20<<10 {
		t.Errorf("%d bytes more", grown)
	}
	r := endWith(t, l, n)
	c := r.Sensors["syscall"]
	if r.Verdict != Gaps || c.Missing != 0 || c.Standing+c.Summarised+c.Dropped != n {
		t.Errorf("%v, %+v of %d, %q", r.Verdict, c, n, r.Problems)
	}
}

// TestBudget: unused tokens are saved up to the burst, and a class does not
// take another's.
func TestBudget(t *testing.T) {
	now := time.Unix(1000, 0)
	b := newBudget(1<<40, now)
	taken := func(class int) int {
		for n := 0; ; n++ {
			if !b.buckets[class].takeToken(now) {
				return n
			}
		}
	}
	for _, c := range []struct {
		after time.Duration
		class int
		want  int
	}{
		{0, classPlain, burst},
		{0, classDenied, burst},
		{time.Second, classPlain, refill},
		{0, classPlain, 0},
		{time.Hour, classPlain, burst},
		{0, classMarked, burst},
	} {
		now = now.Add(c.after)
		if got := taken(c.class); got != c.want {
			t.Errorf("%d of class %d after %v, want %d", got, c.class, c.after, c.want)
		}
	}
}

// TestAccounts compares the counts of the sensors with the log.
func TestAccounts(t *testing.T) {
	open := func(n uint64) event.Event { return event.Event{Sensor: event.Syscall, N: n, Action: event.FileOpen} }
	gone := func(action string, d ...string) event.Event {
		m := map[string]string{}
		for i := 0; i < len(d); i += 2 {
			m[d[i]] = d[i+1]
		}
		return event.Event{Sensor: event.Record, Action: action, Detail: m}
	}
	for _, c := range []struct {
		name    string
		events  []event.Event
		total   int
		verdict Verdict
		problem string
	}{
		{"all", []event.Event{open(1), open(2), open(3)}, 3, Complete, ""},
		{"out of order", []event.Event{open(2), open(3), open(1)}, 3, Complete, ""},
		{"one is missing", []event.Event{open(1), open(3)}, 3, Gaps, `1 events of "syscall" (2) are missing, and nothing accounts for them`},
		{"the last are missing", []event.Event{open(1)}, 3, Gaps, `2 events of "syscall" (2-3) are missing`},
		{"all are missing", nil, 3, Gaps, `3 events of "syscall" (1-3) are missing`},
		{"one stands twice", []event.Event{open(1), open(2), open(2)}, 2, Gaps, `the events 2 of "syscall" are recorded twice`},
		{"more than there were", []event.Event{open(1), open(2)}, 1, Gaps, `had 1 events by the end of the session, but the log has one with the number 2`},
		{"without a number", []event.Event{open(1), open(0)}, 1, Gaps, `1 events of "syscall" have no number`},
		{"dropped", []event.Event{open(1), gone(event.RecordDrop, "of", "syscall", "from", "2", "to", "3", "reason", "x")}, 3, Gaps, `2 events of "syscall" (2-3) were dropped`},
		{"summarised", []event.Event{open(2), gone(event.RecordCut, "of", "syscall", "from", "1", "to", "4", "ranges", "1,3-4", "count", "3")}, 4, Gaps, `3 events of "syscall" (1,3-4) stand summarised`},
		{"summarised in part", []event.Event{gone(event.RecordCut, "of", "syscall", "from", "1", "to", "4", "ranges", "1,3-4")}, 4, Gaps, `1 events of "syscall" (2) are missing`},
		{"a range the wrong way", []event.Event{gone(event.RecordCut, "of", "syscall", "from", "4", "to", "1")}, 0, Gaps, "it does not say what was lost"},
		{"ranges that contradict", []event.Event{gone(event.RecordCut, "of", "syscall", "from", "1", "to", "4", "ranges", "1,3")}, 0, Gaps, "contradicts itself"},
		{"another sensor's", []event.Event{open(1), gone(event.RecordDrop, "of", "egress", "from", "2", "to", "2")}, 2, Gaps, `1 events of "syscall" (2) are missing`},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := create(t, Options{})
			for _, e := range c.events {
				if err := l.Emit(e); err != nil {
					t.Fatal(err)
				}
			}
			endWith(t, l, uint64(c.total)).want(t, c.verdict, c.problem)
		})
	}
}

// TestEndOfSession: a log that was closed says whether the session has an end.
func TestEndOfSession(t *testing.T) {
	l := create(t, Options{})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	verified(t, l.Path()).want(t, Complete, "") // nothing happened, and that is recorded

	l = create(t, Options{})
	flood(t, l, 3, event.Event{Sensor: event.Syscall, Action: event.FileOpen})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	verified(t, l.Path()).want(t, Gaps, "the session has no end in the log")

	l = create(t, Options{})
	for n := range 2 {
		if err := l.Emit(event.Event{Sensor: event.Task, N: uint64(n + 1), Action: event.SessionEnd, Detail: map[string]string{"count.task": "2"}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	verified(t, l.Path()).want(t, Gaps, "the session ends a second time")

	l = create(t, Options{})
	flood(t, l, 1, event.Event{Sensor: event.Syscall, Action: event.FileOpen})
	if err := l.Emit(event.Event{Sensor: event.Task, N: 1, Action: event.SessionEnd, Detail: map[string]string{"count.task": "1"}}); err != nil {
		t.Fatal(err)
	}
	flood(t, l, 1, event.Event{Sensor: event.Syscall, N: 1, Action: event.FileOpen})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	r := verified(t, l.Path())
	r.want(t, Gaps, `does not say how many events "syscall" had`)
	r.want(t, Gaps, "events came after the end of the session")
}

func TestRanges(t *testing.T) {
	var r ranges
	for _, c := range []struct {
		add  interval
		want string
	}{
		{interval{5, 5}, "5"}, {interval{7, 9}, "5,7-9"}, {interval{6, 6}, "5-9"}, {interval{1, 2}, "1-2,5-9"},
		{interval{9, 9}, "1-2,5-9"}, {interval{2, 6}, "1-9"}, {interval{20, 30}, "1-9,20-30"}, {interval{10, 19}, "1-30"},
	} {
		if r.add(c.add); r.String() != c.want {
			t.Errorf("after %v: %v; want %s", c.add, r, c.want)
		}
		if again, ok := parseRanges(r.String()); !ok || fmt.Sprint(again) != fmt.Sprint(r) {
			t.Errorf("%q is read as %v", r.String(), again)
		}
	}
	a, _ := parseRanges("1-10,20,30-40")
	b, _ := parseRanges("2-3,10-20,35")
	if got := a.without(b).String(); got != "1,4-9,30-34,36-40" {
		t.Error(got)
	}
	u, twice := unionOf([]interval{{5, 9}, {1, 2}, {8, 12}, {3, 3}, {1, 1}})
	if u.String() != "1-3,5-12" || twice.String() != "1,8-9" {
		t.Error(u, twice)
	}
	for _, bad := range []string{"", "0", "3-2", "1,1", "2,1", "-", "1-", "x", "18446744073709551615"} {
		if r, ok := parseRanges(bad); ok {
			t.Errorf("%q is %v", bad, r)
		}
	}
}
