package alert

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"holdfast.dev/holdfast/internal/detect"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/policy"
	"holdfast.dev/holdfast/internal/record/audit"
)

// recorded is a run with alerts: each is recorded and raised.
type recorded struct {
	t    *testing.T
	log  *audit.Log
	path string
	n    uint64 // alerts
}

func newRecorded(t *testing.T) *recorded {
	t.Helper()
	dir := t.TempDir()
	log, err := audit.Create(filepath.Join(dir, "log"), audit.Options{Session: "s1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	return &recorded{t: t, log: log, path: filepath.Join(dir, "log", "s1.jsonl")}
}

func (r *recorded) emit(e event.Event) uint64 {
	r.t.Helper()
	e.Session = "s1"
	if e.Time.IsZero() {
		e.Time = time.Now()
	}
	seq, err := r.log.Put(e)
	if err != nil {
		r.t.Fatal(err)
	}
	return seq
}

// raise records an execution and an alert about it, and raises the alert.
func (r *recorded) raise(d *Dispatcher, severity detect.Severity, object string) {
	r.t.Helper()
	a := sample(severity, object)
	r.n++
	a.N, a.Process.Exec = r.n, r.n
	a.Events = []uint64{r.emit(event.Event{Sensor: event.Syscall, N: r.n, Time: a.Time, Action: event.ProcExec, Process: a.Process})}
	e := a.Event()
	e.Sensor, e.N = event.Detect, a.N
	r.emit(e)
	d.Raise(a)
}

func (r *recorded) end(detail map[string]string) {
	r.emit(event.Event{Sensor: event.Task, N: 1, Action: event.SessionEnd, Verdict: event.Allowed, Detail: detail})
}

// again sends what is in the record, and returns the result.
func (r *recorded) again(change func(*Backlog), sinks ...policy.AlertSink) (sent map[string]int, unknown []string) {
	r.t.Helper()
	b, err := ReadBacklog(r.t.Context(), r.path)
	if err != nil {
		r.t.Fatal(err)
	}
	if change != nil {
		change(b)
	}
	d := opened(r.t, Options{NoBound: true}, sinks...)
	sent, unknown = d.Resend(b)
	noErrors(r.t, d.Close())
	return sent, unknown
}

func bodies(all []request) (out []string) {
	for _, r := range all {
		out = append(out, r.header.Get("Holdfast-Alert-Id")+" "+r.body)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// TestResendSendsWhatWasNotDelivered has a server that fails and one that is slow,
// beside one that works. What is sent again is what was sent before, to the byte.
func TestResendSendsWhatWasNotDelivered(t *testing.T) {
	for name, breakIt := range map[string]func(*hook){
		"fails": func(h *hook) { h.answer(500) },
		"slow":  func(h *hook) { h.delay.Store(int64(time.Minute)) },
	} {
		t.Run(name, func(t *testing.T) {
			broken, works := newHook(t), newHook(t)
			breakIt(broken)
			s := broken.sink()
			s.Timeout = 100 * time.Millisecond
			r := newRecorded(t)
			d := opened(t, Options{Grace: 300 * time.Millisecond}, s, works.sink())
			for i := range 5 {
				r.raise(d, "high", fmt.Sprint("/R&D <", i, ">"))
			}
			works.wait(t, 5)
			begun := time.Now()
			u := onlyOne(t, d.Close())
			if took := time.Since(begun); took > 15*time.Second || len(u.Alerts) != 5 || strings.Contains(u.Error(), "S3CR3T") {
				t.Errorf("took %v: %v %+v", took, u, u)
			}
			detail := Detail([]*Undelivered{u})
			if len(detail) != 1 || detail["undelivered.1"] != "webhook http://"+broken.Listener.Addr().String()+" 1-5" {
				t.Errorf("the record says %q", detail)
			}
			r.end(detail)

			broken.answer(200)
			broken.delay.Store(0)
			before := len(broken.taken())
			s.Timeout = time.Minute // or a slow machine sends one twice
			sent, unknown := r.again(nil, s, works.sink())
			got := bodies(broken.taken()[before:])
			if len(sent) != 1 || len(unknown) != 0 || len(works.taken()) != 5 || !slices.Equal(got, bodies(works.taken())) {
				t.Errorf("sent %v, unknown %v, %d requests to the other;\ngot %q\nwant %q", sent, unknown, len(works.taken()), got, bodies(works.taken()))
			}
		})
	}
}

func TestResendOfARunThatWasKilled(t *testing.T) {
	h := newHook(t)
	r := newRecorded(t)
	d := opened(t, Options{}, h.sink())
	for _, severity := range []detect.Severity{"low", "critical", "info"} {
		r.raise(d, severity, "/x")
	}
	noErrors(t, d.Close())
	if sent, _ := r.again(nil, h.sink()); len(sent) != 1 || len(h.taken()) != 4 || len(bodies(h.taken())) != 2 {
		t.Errorf("%v of %d requests: %q", sent, len(h.taken()), bodies(h.taken()))
	}
	r.end(nil)
	if sent, _ := r.again(nil, h.sink()); len(sent) != 0 || len(h.taken()) != 4 {
		t.Errorf("all was delivered, and then %v", sent)
	}
	r.again(func(b *Backlog) { b.Again = true }, h.sink())
	if len(h.taken()) != 6 {
		t.Errorf("%d requests", len(h.taken()))
	}
}

func TestResendHasNoBound(t *testing.T) {
	h, other := newHook(t), newHook(t)
	r := newRecorded(t)
	d := opened(t, Options{}, policy.AlertSink{Kind: "file", Address: filepath.Join(t.TempDir(), "alerts")})
	for i := range mostItems + 10 {
		r.raise(d, "high", fmt.Sprint("/", i))
	}
	noErrors(t, d.Close())
	lost := name(h.sink()) + " 1-" + fmt.Sprint(mostItems+10)
	r.end(map[string]string{"undelivered.1": lost, "undelivered.2": name(other.sink()) + " 3"})
	_, unknown := r.again(nil, h.sink())
	if len(bodies(h.taken())) != mostItems+10 || !slices.Equal(unknown, []string{name(other.sink())}) {
		t.Errorf("%d came, unknown is %q", len(bodies(h.taken())), unknown)
	}
}
