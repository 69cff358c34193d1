//go:build linux

package probe

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"holdfast.dev/holdfast/internal/probe/inside"
)

// reconstructRows do some hundred and thirty things, each about an object of its own,
// and ask whether the record tells them.
func reconstructRows() []Row {
	given := map[string]string{"W/.env": "A=1\n", "W/sub/.env": "A=2\n", "W/given/dir/x": "x", "W/given/dir2/x": "x", "W/given/dir3/x": "x",
		"S/sibling/.env": "B=1\n", "S/sibling/src/main.c": "x", "H/notes/private.txt": "x", "H/.docker/config.json": "{}", "O/dir/x": "x", "O/dir2/x": "x", "O/tool": "#!/bin/sh\n", "W/.git/hooks/update": "#!/bin/sh\n"}
	for c := 'a'; c <= 'y'; c++ {
		given["W/given/"+string(c)] = "x"
	}
	for _, n := range []string{"l1", "l5", "l6", "l7", "c10"} {
		given["W/given/"+n] = "x"
	}
	for _, n := range []string{"l3", "l4", "l8", "l9", "o1", "o2", "o3", "o4", "c2", "c3", "c4", "c6", "c7"} {
		given["O/"+n] = "x"
	}
	for _, n := range []string{"c12", "c13", "c14", "c15"} {
		given["R/"+n] = "x"
	}
	row := func(id, title, level string) Row {
		return Row{ID: id, Title: title, Refs: []string{"NIST SP 800-92, 2.1"}, Files: given, Setup: func(w *World) error { return w.gitInit("W") },
			Options: Options{Read: []string{"R"}}, Action: "reconstruct", Timeout: time.Minute, Harmless: "what may be done is done to given files; what is outside is watched by itself",
			Drive: atLevel(level), Oracle: reconstructed(level), Trace: did("file.write", "W/f-new")}
	}
	return []Row{
		row("HST-501", "many things are done, and the record does not tell them", "standard"),
		row("HST-501b", "many things are done, and the full record does not tell them", "full"),
	}
}

// atLevel has the target record at a level.
func atLevel(level string) func(*Session) {
	return func(s *Session) {
		if t, ok := s.Target.(Recorder); ok {
			s.Target = t.Recording(level)
		}
		s.World.remembered = ""
		o := s.Run(Command{Options: s.Row.Options})
		for _, note := range parse(o).notes {
			if note.Attempt == inside.Told {
				s.World.remembered += note.Text + "\n"
			}
		}
	}
}

// account is what a record tells, by one who knows nothing else.
type account struct {
	events []Attempt
	byExec map[int]Attempt // programs that were executed
	ends   map[int]Attempt // how they ended
}

// tell reads a record.
func tell(r Record) (*account, error) {
	a := &account{byExec: map[int]Attempt{}, ends: map[int]Attempt{}}
	err := r.each(func(line []byte) error {
		var got Attempt
		if err := json.Unmarshal(line, &got); err != nil {
			return fmt.Errorf("a line is no JSON: %w", err)
		}
		a.events = append(a.events, got)
		switch got.Action {
		case "proc.exec":
			a.byExec[got.Process.Exec] = got
		case "proc.exit":
			a.ends[got.Process.Exec] = got
		}
		return nil
	})
	return a, err
}

// about are the events that tell of a deed, whatever they say came of it.
func (a *account) about(d inside.Deed) []Attempt {
	var out []Attempt
	for _, e := range a.events {
		if !slices.Contains(strings.Split(d.Action, "|"), e.Action) {
			continue
		}
		object := d.Object == "" || e.Object == d.Object || e.Resolved == d.Object
		if object && (d.Shown == "" || slices.Contains(e.Process.Argv, d.Shown)) {
			out = append(out, e)
		}
	}
	return out
}

// differs says what the record tells otherwise than it was; "" for nothing.
func (a *account) differs(d inside.Deed) string {
	found := a.about(d)
	if len(found) == 0 {
		return "it is not told"
	}
	why := ""
	for _, e := range found {
		if why = a.otherwise(d, e); why == "" {
			return ""
		}
	}
	return why
}

// otherwise compares one event with a deed.
func (a *account) otherwise(d inside.Deed, e Attempt) string {
	verdict := "allowed"
	if d.Denied {
		verdict = "denied"
	}
	switch {
	case e.Verdict != verdict:
		return fmt.Sprintf("it is told as %s with %q, and was %s with %q", e.Verdict, e.Error, verdict, d.Error)
	case d.Exit == "" && d.Kind != "archive" && e.Error != d.Error:
		return fmt.Sprintf("its error is told as %q, and was %q", e.Error, d.Error)
	case d.Kept && e.Detail["kept"] != "private":
		return "it is told as if it had reached the host"
	case d.Exit != "":
		return a.ended(d, e)
	case d.Parent != "" && !slices.Contains(a.byExec[e.Process.ParentExec].Process.Argv, d.Parent):
		return "it is not told who executed it"
	}
	return ""
}

// ended compares how a program ended.
func (a *account) ended(d inside.Deed, e Attempt) string {
	end, ok := a.ends[e.Process.Exec]
	switch {
	case !ok:
		return "its end is not told"
	case end.Detail["status"] != d.Exit && end.Detail["signal"] != d.Exit:
		return fmt.Sprintf("its end is told as %s%s, and was %s", end.Detail["status"], end.Detail["signal"], d.Exit)
	}
	return ""
}

// What must be told at least, of what a level promises.
var least = map[string]float64{"standard": 0.97, "full": 0.99}

// reconstructed compares what was done with what the record tells.
func reconstructed(level string) func(*World, Observation) []string {
	return func(w *World, _ Observation) []string {
		rec, err := w.record()
		if err != nil {
			return []string{"the record cannot be read: " + err.Error()}
		}
		if rec.Path == "" {
			return []string{rec.Why}
		}
		told, err := tell(rec)
		if err != nil {
			return []string{"the record: " + err.Error()}
		}
		var missed []string
		done, refused, right := 0, 0, 0
		for line := range strings.Lines(w.remembered) {
			var d inside.Deed
			if err := json.Unmarshal([]byte(line), &d); err != nil {
				return []string{"what was done: " + err.Error()}
			}
			if d.Full && level != "full" || d.Look && rec.Verdict == "PARTIAL" { // it is said that it is not promised
				continue
			}
			done++
			why := told.differs(d)
			if why == "" {
				right++
				continue
			}
			if d.Denied {
				refused++
			}
			missed = append(missed, fmt.Sprintf("%s%s: %s (%s %s): %s", notRecorded, d.Kind, d.What, d.Action, d.Object, why))
		}
		w.summary = fmt.Sprintf("%d of %d told as they were, %d refused ones not", right, done, refused)
		if done < 100 {
			return []string{fmt.Sprintf("only %d things were done", done)}
		}
		if refused == 0 && float64(right) >= least[level]*float64(done) {
			return nil
		}
		return append(missed, notRecorded+w.summary)
	}
}
