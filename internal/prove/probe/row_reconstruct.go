//go:build linux

package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"holdfast.dev/holdfast/internal/prove/inside"
)

// atLevel makes the target record at a level.
func atLevel(level string) func(*Session) {
	return func(s *Session) {
		if t, ok := s.Target.(Recorder); ok {
			s.Target = t.Recording(level)
		}
		s.World.remembered = ""
		o := s.Run(Command{Options: s.Row.Options})
		for _, note := range parse(o).notes {
			if note.Attempt == inside.DeedNote {
				s.World.remembered += note.Text + "\n"
			}
		}
	}
}

// account is what a record tells a reader who knows nothing else.
type account struct {
	events []Attempt
	byExec map[int]Attempt // executed programs
	ends   map[int]Attempt // how they ended

	tools map[string]int // programs joined with calls of tools, by the id of the call
}

// readAccount reads a record.
func readAccount(r Record) (*account, error) {
	a := &account{byExec: map[int]Attempt{}, ends: map[int]Attempt{}}
	err := r.each(func(line []byte) error {
		var got Attempt
		if err := json.Unmarshal(line, &got); err != nil {
			return fmt.Errorf("a line is not JSON: %w", err)
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

// calls takes from the target's story of the run which program each call of a tool is
// joined with.
func (a *account) calls(story []byte) error {
	var list struct {
		Tools []struct {
			ID   string
			Main int
		}
	}
	a.tools = map[string]int{}
	err := json.Unmarshal(story, &list)
	for _, t := range list.Tools {
		a.tools[t.ID] = t.Main
	}
	return err
}

// eventsAbout returns the events about a deed, whatever their outcome.
func (a *account) eventsAbout(d inside.Deed) []Attempt {
	var out []Attempt
	for _, e := range a.events {
		if !slices.Contains(strings.Split(d.Action, "|"), e.Action) {
			continue
		}
		object := d.Object == "" || e.Object == d.Object || e.Resolved == d.Object
		if object && (d.Shown == "" || slices.Contains(e.Process.Argv, d.Shown)) && hasDetails(e.Detail, d.By) {
			out = append(out, e)
		}
	}
	return out
}

// hasDetails reports whether details has every wanted value.
func hasDetails(details, want map[string]string) bool {
	for k, v := range want {
		if details[k] != v {
			return false
		}
	}
	return true
}

// difference returns how the record differs from what was done; "" for not at all.
func (a *account) difference(d inside.Deed) string {
	found := a.eventsAbout(d)
	if d.Quiet && !d.Answered && d.Denied == (d.Error == "") {
		return fmt.Sprintf("it came out otherwise than it should: %q", d.Error)
	}
	if len(found) == 0 {
		return fmt.Sprintf("it is not recorded; what came back was %q", d.Error)
	}
	why := ""
	for _, e := range found {
		if why = a.compareEvent(d, e); why == "" {
			return ""
		}
	}
	return why
}

// compareEvent compares one event with a deed.
func (a *account) compareEvent(d inside.Deed, e Attempt) string {
	verdict := "allowed"
	if d.Denied {
		verdict = "denied"
	}
	switch {
	case e.Verdict != verdict:
		return fmt.Sprintf("it is recorded as %s with %q, and was %s with %q", e.Verdict, e.Error, verdict, d.Error)
	case d.Layer != "" && e.Layer != d.Layer:
		return fmt.Sprintf("it is recorded as denied by %q, and was by %q", e.Layer, d.Layer)
	case !hasDetails(e.Detail, d.Says):
		return fmt.Sprintf("it is recorded with %v, and was with %v", e.Detail, d.Says)
	case d.Exit == "" && d.Kind != "archive" && !d.Quiet && e.Error != d.Error:
		return fmt.Sprintf("its error is recorded as %q, and was %q", e.Error, d.Error)
	case d.Kept && e.Detail["kept"] != "private":
		return "it is recorded as if it had reached the host"
	case d.Exit != "":
		return a.compareEnd(d, e)
	case d.Main != "" && !slices.Contains(a.byExec[a.tools[d.By["id"]]].Process.Argv, d.Main):
		return "it is not recorded which program was executed for it"
	case d.Parent != "" && !slices.Contains(a.byExec[e.Process.ParentExec].Process.Argv, d.Parent):
		return "it is not recorded who executed it"
	}
	return ""
}

// compareEnd compares how a program ended.
func (a *account) compareEnd(d inside.Deed, e Attempt) string {
	end, ok := a.ends[e.Process.Exec]
	switch {
	case !ok:
		return "its end is not recorded"
	case end.Detail["status"] != d.Exit && end.Detail["signal"] != d.Exit:
		return fmt.Sprintf("its end is recorded as %s%s, and was %s", end.Detail["status"], end.Detail["signal"], d.Exit)
	}
	return ""
}

// The share of what a level promises that must be recorded.
var least = map[string]float64{"standard": 0.97, "full": 0.99}

// Coverage counts the deeds of a row, and those that a record has correctly.
type Coverage struct {
	Done   int // what the level promises to record
	Right  int // how many of these were recorded correctly
	Beyond int // done beyond that
}

// reconstructed compares what was done, at least atLeast deeds, with what the record
// tells.
func reconstructed(level string, atLeast int) func(*World, Observation) []string {
	return func(w *World, _ Observation) []string {
		rec, err := w.record()
		if err != nil {
			return []string{"the record cannot be read: " + err.Error()}
		}
		if rec.Path == "" {
			return []string{rec.Why}
		}
		acc, err := w.account(rec)
		if err != nil {
			return []string{"the record: " + err.Error()}
		}
		var missed []string
		all, refused := Coverage{}, 0
		for line := range strings.Lines(w.remembered) {
			var d inside.Deed
			if err := json.Unmarshal([]byte(line), &d); err != nil {
				return []string{"what was done: " + err.Error()}
			}
			promised := (level == "full" || !d.Full) && (rec.Verdict != "PARTIAL" || !d.Look) // or the record declares it missing
			why := ""
			if promised {
				why = acc.difference(d)
			}
			w.tally(d.Kind, promised, why == "")
			all.add(promised, why == "")
			if why != "" {
				missed = append(missed, fmt.Sprintf("%s%s: %s (%s %s): %s", notRecorded, d.Kind, d.What, d.Action, d.Object, why))
				refused += map[bool]int{true: 1}[d.Denied]
			}
		}
		if all.Done < atLeast {
			return []string{fmt.Sprintf("only %d things were done", all.Done)}
		}
		if refused == 0 && float64(all.Right) >= least[level]*float64(all.Done) {
			return nil
		}
		return append(missed, fmt.Sprintf("%s%d of %d recorded as they were, %d refused ones not", notRecorded, all.Right, all.Done, refused))
	}
}

// account returns what the target's record of the last run tells.
func (w *World) account(rec Record) (*account, error) {
	acc, err := readAccount(rec)
	if t, ok := w.target.(Recorder); ok && err == nil {
		var story []byte
		if story, err = t.Story(w); err == nil {
			err = acc.calls(story)
		}
	}
	return acc, err
}

// tally counts a deed in the coverage of the row.
func (w *World) tally(kind string, promised, right bool) {
	if w.coverage == nil {
		w.coverage = map[string]Coverage{}
	}
	t := w.coverage[kind]
	t.add(promised, right)
	w.coverage[kind] = t
}

func (t *Coverage) add(promised, right bool) {
	switch {
	case !promised:
		t.Beyond++
	case right:
		t.Done++
		t.Right++
	default:
		t.Done++
	}
}

// unnamedHost is a host without a rule that a human grants.
const unnamedHost = inside.Granted + ".unnamed.test"

// withUnnamedHost opens the network and gives the command the name of an agent.
func withUnnamedHost(w *World) error {
	return errors.Join(network(func(n *internet) {
		at := addrs("93.184.215.17")
		n.zone[unnamedHost] = func(int) []netip.Addr { return at }
		n.own[at[0]] = unnamedHost
	})(w), namedLikeAnAgent(w))
}

// answeredAtLevel is atLevel with a policy and a human who answers.
func answeredAtLevel(level, policy string) func(*Session) {
	return func(s *Session) {
		w, t := s.World, s.Target
		defer func() { s.Target = t }()
		s.Row.Options = Options{} // they are in the policy
		path := w.B + "/deeds.yaml"
		if err := os.WriteFile(path, []byte(policy), 0o600); err != nil {
			s.Fail(err)
			return
		}
		if f, ok := t.(Flagger); ok {
			s.Target = f.With("--policy", path)
		}
		if human, ok := t.(Consenting); ok {
			ctx, cancel := context.WithCancel(s.ctx)
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				human.Answering(ctx, w, map[string]bool{inside.Granted: true, inside.Refused: false})
			}()
			defer func() { cancel(); <-ended }()
		}
		atLevel(level)(s)
	}
}
