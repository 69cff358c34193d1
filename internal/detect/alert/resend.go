package alert

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"time"

	"holdfast.dev/holdfast/internal/detect"
	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/record/audit"
)

// Backlog is the alerts of a record, with what it says of their delivery.
type Backlog struct {
	Ended  bool // the session has an end: without it nothing is known of any delivery
	Again  bool // also send what was delivered
	alerts []detect.Alert
	missed map[string][]string // by sink: which alerts it did not get
}

// ReadBacklog reads the record at path. With a *audit.DamageError it returns what
// could be read.
func ReadBacklog(ctx context.Context, path string) (*Backlog, error) {
	b := &Backlog{missed: map[string][]string{}}
	err := audit.Scan(ctx, path, runtime.GOMAXPROCS(0), func(r *audit.Record) (bool, error) {
		action, _ := r.Field("action")
		return action == event.AlertRaise || action == event.SessionEnd, nil
	}, func(r *audit.Record) error {
		e, err := r.Event()
		if err != nil {
			return err
		}
		if e.Action == event.AlertRaise {
			b.alerts = append(b.alerts, detect.AlertOf(e))
			return nil
		}
		b.Ended = true
		for k, v := range e.Detail {
			if i := strings.LastIndexByte(v, ' '); strings.HasPrefix(k, undelivered) && i > 0 {
				b.missed[v[:i]] = append(b.missed[v[:i]], v[i+1:])
			}
		}
		return nil
	})
	var damage *audit.DamageError
	if err != nil && !errors.As(err, &damage) {
		return nil, err
	}
	return b, errors.Join(err, b.complete(ctx, path))
}

// complete adds to the alerts what is in other events: the time of the last
// event that each is about, and the program.
func (b *Backlog) complete(ctx context.Context, path string) error {
	times, programs := map[uint64]time.Time{}, map[uint64]event.Process{}
	last, execs := map[uint64]bool{}, map[uint64]bool{}
	for _, a := range b.alerts {
		if len(a.Events) > 0 {
			last[slices.Max(a.Events)] = true
		}
		if a.Process.Exec != 0 {
			execs[a.Process.Exec] = true
		}
	}
	err := audit.Scan(ctx, path, runtime.GOMAXPROCS(0), func(r *audit.Record) (bool, error) {
		action, _ := r.Field("action")
		exec, _ := r.Field("exec")
		number, _ := exec.(int)
		return last[r.Seq()] || action == event.ProcExec && execs[uint64(number)], nil
	}, func(r *audit.Record) error {
		e, err := r.Event()
		if e.Action == event.ProcExec {
			programs[e.Process.Exec] = e.Process
		}
		times[e.Seq] = e.Time
		return err
	})
	for i := range b.alerts {
		a := &b.alerts[i]
		if p, known := programs[a.Process.Exec]; known {
			p.PID = a.Process.PID
			a.Process = p
		}
		if len(a.Events) > 0 && !times[slices.Max(a.Events)].IsZero() {
			a.Time = times[slices.Max(a.Events)]
		}
	}
	var damage *audit.DamageError
	if errors.As(err, &damage) {
		return nil // ReadBacklog reports it
	}
	return err
}

// wants reports whether an alert is to be sent to a sink.
func (b *Backlog) wants(sink string, n uint64) bool {
	return b.Again || !b.Ended || slices.ContainsFunc(b.missed[sink], func(set string) bool { return audit.HasNumber(set, n) })
}

// Resend hands the alerts of a record to the sinks that did not get them, and
// returns how many each sink gets and which other sinks did not get some.
func (d *Dispatcher) Resend(b *Backlog) (sent map[string]int, unknown []string) {
	sent = map[string]int{}
	for _, a := range b.alerts {
		d.raise(a, func(sink string) bool {
			if !b.wants(sink, a.N) {
				return false
			}
			sent[sink]++
			return true
		})
	}
	for sink := range b.missed {
		if !slices.ContainsFunc(d.queues, func(o *sinkQueue) bool { return o.name == sink }) {
			unknown = append(unknown, sink)
		}
	}
	slices.Sort(unknown)
	return sent, unknown
}
