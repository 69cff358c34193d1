package cli_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/record/audit"
)

// record SESSION FILE [running] makes the log of a run from a file of events, one a
// line in JSON. Session, numbers and counts are filled in, and missing times, a second
// apart. {ff} is replaced by the byte 0xff, which JSON cannot hold, and {Nx} by N
// letters. The log stays open until the end of the script when it is running.
func record(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: record SESSION FILE [running]")
	}
	dir := filepath.Join(ts.Getenv("XDG_STATE_HOME"), "holdfast", "log")
	log, err := audit.Create(dir, audit.Options{Session: args[0], Detail: map[string]string{"level": "standard"}})
	ts.Check(err)
	t := transcript{log: log, at: time.Date(2040, 1, 2, 3, 4, 5, 0, time.UTC), counts: map[event.Sensor]uint64{}}
	for line := range strings.Lines(ts.ReadFile(args[1])) {
		if strings.TrimSpace(line) != "" {
			ts.Check(t.add(line))
		}
	}
	if len(args) > 2 {
		ts.Defer(func() { log.Close() })
		return
	}
	ts.Check(log.Close())
}

type transcript struct {
	log    *audit.Log
	at     time.Time
	counts map[event.Sensor]uint64
}

func (t *transcript) add(line string) error {
	var e event.Event
	d := json.NewDecoder(strings.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&e); err != nil {
		return fmt.Errorf("%s: %w", line, err)
	}
	e.Object, e.Resolved, e.Process.Cwd = wild(e.Object), wild(e.Resolved), wild(e.Process.Cwd)
	for i, a := range e.Process.Argv {
		e.Process.Argv[i] = wild(a)
	}
	for k, v := range e.Detail {
		e.Detail[k] = wild(v)
	}
	if e.Action == event.SessionStart && e.Detail["sensors"] == "" && e.Detail["boundary"] == "" {
		if e.Detail == nil {
			e.Detail = map[string]string{}
		}
		e.Detail["sensors"] = "task,egress,syscall,tripwire"
	}
	t.at = t.at.Add(time.Second)
	if e.Time.IsZero() {
		e.Time = t.at
	}
	if e.Sensor == "" {
		e.Sensor = event.Syscall
	}
	if e.Sensor != event.Record { // the log numbers its own
		t.counts[e.Sensor]++
		e.N = t.counts[e.Sensor]
	}
	if e.Action == event.SessionEnd {
		for sensor, n := range t.counts {
			e.Detail["count."+string(sensor)] = fmt.Sprint(n)
		}
	}
	return t.log.Emit(e)
}

// wild replaces placeholders by what JSON cannot hold or is tedious to type.
func wild(s string) string {
	s = strings.ReplaceAll(s, "{ff}", "\xff")
	before, rest, found := strings.Cut(s, "{")
	var n int
	if _, err := fmt.Sscanf(rest, "%dx}", &n); !found || err != nil {
		return s
	}
	_, after, _ := strings.Cut(rest, "}")
	return before + strings.Repeat("x", n) + after
}
