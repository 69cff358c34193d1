//go:build linux

package probe

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"time"
)

// mostOfARecord is how much of the disk a record may take, whatever is done, in
// bytes: the limit that the launcher declares, and some for what else it keeps.
const mostOfARecord = 288 << 20

// besideTheHost plays a row and measures, before and during it, how long the host
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

// median returns 0 for too few values.
func median(all []time.Duration) time.Duration {
	if len(all) <= 5 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// slowHost is how long starting a program on the host may take while the inside
// does as much as possible: a hundred times the usual. On a machine busy with
// other work it may take that long anyway; then the limit is slowdown times as
// long as before.
const (
	slowHost = 250 * time.Millisecond
	slowdown = 20
)

// bounded demands that a flood took no more than its share of the disk and of the
// machine, and that the record declares what it summarised and continues.
func bounded(cut bool) func(*World, Observation) []string {
	return func(w *World, o Observation) []string {
		wants := []Attempt{{Action: "proc.exec", Arg: "after=the-flood"}, {Action: "session.end"}}
		if cut {
			wants = append(wants, Attempt{Action: "record.cut"})
		}
		var out []string
		// A run that was cut short has no end to record, and is judged as cut short.
		if !o.TimedOut && o.Excess == "" {
			out = joinOracles(summarised, recordHas(wants...))(w, o)
		}
		if rec, err := w.record(); err == nil && rec.Size > mostOfARecord {
			out = append(out, fmt.Sprintf("the record has grown to %d MiB", rec.Size>>20))
		}
		return append(out, noted(w, o)...)
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

// madeAsSaid demands that the record has each file of a directory as made, and no
// other.
func madeAsSaid(dir string) func(*World, Observation) []string {
	return func(w *World, _ Observation) (out []string) {
		rec, err := w.record()
		if err != nil {
			return []string{"the record cannot be read: " + err.Error()}
		}
		said := map[string]bool{}
		err = rec.each(func(line []byte) error {
			var a Attempt
			if err := json.Unmarshal(line, &a); err != nil {
				return fmt.Errorf("a line is not JSON: %w", err)
			}
			if at := cmp.Or(a.Resolved, a.Object); a.Action == "file.write" && a.Verdict == "allowed" && a.Error == "" && path.Dir(at) == w.Path(dir) {
				said[path.Base(at)] = true
			}
			return nil
		})
		if err != nil {
			return []string{"the record: " + err.Error()}
		}
		files, err := os.ReadDir(w.Path(dir))
		if err != nil {
			return []string{err.Error()}
		}
		for _, f := range files {
			if f.Name() != "keep" && !said[f.Name()] {
				out = append(out, notRecorded+"file.write "+f.Name())
			}
			delete(said, f.Name())
		}
		for name := range said {
			out = append(out, "the record has what was not made: "+name)
		}
		return out
	}
}

// unrecorded demands that the record does not have the attempt.
func unrecorded(a Attempt) func(*World, Observation) []string {
	return func(w *World, _ Observation) []string {
		rec, err := w.record()
		if err != nil {
			return []string{"the record cannot be read: " + err.Error()}
		}
		absent, err := rec.missing([]Attempt{a})
		switch {
		case err != nil:
			return []string{"the record: " + err.Error()}
		case len(absent) == 0:
			return []string{"the record has what did not happen: " + a.Action + " " + a.Arg}
		}
		return nil
	}
}
