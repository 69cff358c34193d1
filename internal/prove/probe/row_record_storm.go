//go:build linux

package probe

import (
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"time"
)

// mostOfARecord is what a record may take of the disk, whatever is done, in
// bytes: what the launcher says that it does, and something for what it keeps
// besides.
const mostOfARecord = 288 << 20

func recordFloods() []Row {
	refs := []string{"CWE-779", "CWE-400"}
	flood := func(id, kind, title string, most int, cut bool) Row {
		return Row{ID: id, Title: title, Refs: refs, Action: "event-flood", Args: []string{"kind=" + kind, "most=" + strconv.Itoa(most)}, Drive: besideTheHost,
			Harmless: "it may do so; what counts is the record, the disk and the host", Timeout: 150 * time.Second, Oracle: bounded(cut)}
	}
	rows := []Row{
		flood("HST-032", "paths", "long paths fill the record", 40_000, true),
		flood("HST-032b", "refused", "calls that are refused fill the record", 450_000, true),
		flood("HST-032c", "creates", "files that are made fill the record", 450_000, true),
		flood("HST-032d", "lookups", "names that are not there fill the record", 100_000, false),
		flood("HST-032e", "connects", "connections fill the record", 20_000, false),
		flood("HST-032f", "execs", "programs that are started fill the record", 1_500, false),
		flood("HST-032g", "arguments", "programs with long arguments fill the record", 1_500, false),
		flood("HST-032h", "scripts", "programs that are not there fill the record", 50_000, false),
	}
	rows[0].Core = true
	return rows
}

// besideTheHost plays a row and measures before and meanwhile how long the host
// takes to start a program.
func besideTheHost(s *Session) {
	var before []time.Duration
	for range 11 {
		if took, ok := startOne(); ok {
			before = append(before, took)
		}
	}
	stop, took := make(chan struct{}), make(chan []time.Duration)
	go func() {
		var all []time.Duration
		for {
			select {
			case <-stop:
				took <- all
				return
			case <-time.After(50 * time.Millisecond):
				if one, ok := startOne(); ok {
					all = append(all, one)
				}
			}
		}
	}()
	s.Run(Command{Options: s.Row.Options})
	close(stop)
	during := median(<-took)
	if during > slowHost && during > slowdown*median(before) {
		s.World.remembered = fmt.Sprintf("the host took %v to start a program, and %v before", during, median(before))
	}
}

func startOne() (time.Duration, bool) {
	begun := time.Now()
	err := exec.Command("true").Run()
	return time.Since(begun), err == nil
}

// median is 0 of so few that they say nothing.
func median(all []time.Duration) time.Duration {
	if len(all) <= 5 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// slowHost is how long the start of a program may take on the host while inside
// as much as possible is done: a hundred times what it takes else. On a machine
// that other work keeps busy it may take that long anyway, and then slowdown
// times as long as before.
const (
	slowHost = 250 * time.Millisecond
	slowdown = 20
)

// bounded demands that a flood took no more than its share of the disk and of the
// machine, that the record says what it summarised and that it goes on.
func bounded(cut bool) func(*World, Observation) []string {
	return func(w *World, o Observation) []string {
		wants := []Attempt{{Action: "proc.exec", Arg: "after=the-flood"}, {Action: "session.end"}}
		if cut {
			wants = append(wants, Attempt{Action: "record.cut"})
		}
		var out []string
		// A run that was cut short has no end that could be recorded, and is judged as
		// one that was.
		if !o.TimedOut && o.Excess == "" {
			out = both(summarised, has(wants...))(w, o)
		}
		if rec, err := w.record(); err == nil && rec.Size > mostOfARecord {
			out = append(out, fmt.Sprintf("the record has grown to %d MiB", rec.Size>>20))
		}
		return append(out, noted(w, o)...)
	}
}

func recordStorms() []Row {
	return []Row{
		{ID: "HST-033", Core: true, Title: "a call that is refused by whoever it is reported to gets through, when many threads make it and signals arrive",
			Refs: []string{"seccomp_unotify(2)", "SECCOMP_USER_NOTIF_FLAG_CONTINUE"}, Action: "refused-storm", Args: []string{"most=60"}, Accept: Denials, Timeout: 90 * time.Second, Oracle: whole},
		{ID: "HST-033b", Title: "the arguments of a call that is refused change while it is decided",
			Refs: []string{"seccomp_unotify(2), time of check and time of use"}, Action: "register-race", Args: []string{"most=20000"}, Accept: Denials, Timeout: 60 * time.Second, Oracle: whole},
		{ID: "HST-033c", Core: true, Title: "the path of a call that is reported changes while it is looked at",
			Refs: []string{"seccomp_unotify(2), time of check and time of use"}, Action: "path-race", Args: []string{"most=20000"}, Accept: Denials, Timeout: 60 * time.Second, Oracle: whole},
		{ID: "HST-034", Core: true, Title: "programs are started in a storm, out of memory also and killed on the way, and some of them are in no record",
			Refs: []string{"execveat(2)", "memfd_create(2)"}, Action: "exec-storm", Args: []string{"most=" + strconv.Itoa(stormPrograms)}, Timeout: 90 * time.Second,
			Harmless: "programs may be started; what counts is that each is recorded", Oracle: eachRecorded},
	}
}

const stormPrograms = 200

func eachRecorded(w *World, o Observation) []string {
	var wants []Attempt
	for i := range stormPrograms {
		wants = append(wants, Attempt{Action: "proc.exec", Arg: "storm=" + strconv.Itoa(i+1)})
	}
	return recorded(wants...)(w, o)
}
