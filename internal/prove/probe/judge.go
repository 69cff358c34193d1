//go:build linux

package probe

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"holdfast.dev/holdfast/internal/prove/inside"
)

// Verdict is the result of a row against a target.
type Verdict int

// The zero value reads as a run that proved nothing.
const (
	Inconclusive Verdict = iota
	Held
	Escaped
	Residual // escaped, in a way that the row documents for our own boundary
	Unseen   // held, but not in the target's record
)

func (v Verdict) String() string {
	return [...]string{"inconclusive", "held", "ESCAPED", "residual", "unseen"}[v]
}

// ErrUnsupported is returned by a target that cannot do what a row asks for.
var ErrUnsupported = errors.New("the target does not support this")

// Observation is what one command looked like from outside.
type Observation struct {
	Nonce    string // given to the prober
	Key      []byte // signs the prober's reports; nothing else inside has it
	Exit     int    // status; 128+n for signal n
	Refused  bool   // the launcher refused to start, and said so
	Stdout   []byte // the first MiB
	Stderr   []byte // the first MiB
	Flooded  bool   // there was more, which may have had a token
	Terminal bool   // Stdout is the output of a terminal, where each report appears twice
	TimedOut bool
	Excess   string // what it used too much of, if it was ended for that
	Err      error  // the command could not be run at all
	Took     time.Duration
	Used     time.Duration // processor time of launcher and awaited children (wait4(2))
	Peak     int64         // bytes of memory of the largest of these processes
}

// Result is what is known about a row after it was played.
type Result struct {
	Row      Row
	Target   string
	Verdict  Verdict
	Reason   string              // one sentence
	Missing  bool                // inconclusive because the host or the target lacks what the row needs
	Effects  []string            // what was seen from outside
	Said     []inside.Report     // what the inside reported of its attempts; evidence for nothing
	Denials  []string            // how each attempt failed, "ATTEMPT: ERRNO", sorted, without what differs between runs
	Coverage map[string]Coverage // for a row that compares a record with what was done, by kind
	Took     time.Duration
}

// rowFor returns r as it is judged for t. A documented residual applies to our own
// boundary, whose record is checked too: it excuses no other target.
func rowFor(r Row, t Target) Row {
	if _, ours := t.(Recorder); !ours {
		r.Residual = ""
	}
	return r
}

// verdict judges what was played. What [judge] calls held or escaped may still be unseen, by
// the record, or inconclusive, where a control failed or nothing was recorded.
func (n Runner) verdict(s *Session, res *Result) {
	res.Effects = n.collectEffects(s)
	for _, o := range s.obs {
		printed := parse(o)
		res.Said = append(append(res.Said, printed.attempts...), printed.claims...)
	}
	res.Denials, res.Coverage = s.World.denials(res.Said), s.World.coverage
	through := slices.DeleteFunc(slices.Clone(res.Effects), func(e string) bool { return strings.HasPrefix(e, notRecorded) })
	res.Verdict, res.Reason = judge(rowFor(s.Row, s.Target), s.obs, through)
	if res.Verdict == Held && len(res.Effects) > 0 {
		res.Verdict, res.Reason = Unseen, res.Effects[0] // the row is about the record
	}
	if s.World.recordless {
		res.Verdict, res.Reason, res.Missing = Inconclusive, "the target keeps no record", true
		return
	}
	res.Missing = res.Verdict == Inconclusive && slices.ContainsFunc(s.obs, func(o Observation) bool { return isMissing(o.Err) })
	if res.Verdict == Held && !s.controlled() {
		res.Verdict, res.Reason = Inconclusive, "control failed: W/ok.txt was not written, as seen from outside"
	}
	if res.Verdict == Held {
		switch missing, err := s.unseen(); {
		case err != nil:
			res.Verdict, res.Reason = Inconclusive, "the record cannot be read: "+err.Error()
		case missing != "":
			res.Verdict, res.Reason = Unseen, missing
		}
	}
}

// judge gives the verdict. effects are what was seen from outside; they come
// first: no report from inside can excuse them, and a denial reported from inside
// is believed only without them.
func judge(r Row, obs []Observation, effects []string) (Verdict, string) {
	if len(effects) > 0 {
		if r.Residual != "" {
			return Residual, r.Residual
		}
		return Escaped, effects[0]
	}
	if len(obs) == 0 {
		return Inconclusive, "nothing was run"
	}
	verdict, reason := Held, "every attempt was denied and nothing got through"
	for _, o := range obs {
		v, why := judgeOne(r, o)
		if v == Escaped && r.Residual != "" {
			v, why = Residual, r.Residual
		}
		// Escaped and residual are final; inconclusive overrides held.
		if v == Escaped || v == Residual {
			return v, why
		}
		if v != Held || verdict == Held {
			verdict, reason = v, why
		}
	}
	if slow := tooSeldom(r, obs); slow != "" && verdict == Held {
		return Inconclusive, slow
	}
	return verdict, reason
}

// tooSeldom returns why a race proves nothing, "" if it was a real race.
func tooSeldom(r Row, obs []Observation) string {
	races, started := 0, false
	for _, o := range obs {
		started = started || !o.Refused
		for _, a := range parse(o).attempts {
			switch {
			case a.Count == 0:
				continue
			case r.Least == 0:
				return a.Attempt + ": it is a race, and the row does not say how often it must be tried"
			case a.Count < r.Least:
				return fmt.Sprintf("%s: raced %d times, fewer than %d", a.Attempt, a.Count, r.Least)
			case a.Honest <= 0:
				return a.Attempt + ": the honest way was not timed"
			}
			races++
		}
	}
	if started && races == 0 && r.Least > 0 {
		return "nothing was raced"
	}
	return ""
}

func judgeOne(r Row, o Observation) (Verdict, string) {
	if o.Refused && r.RefusalHolds && o.Err == nil {
		return Held, "the launcher refused: " + firstLine(o.Stderr)
	}
	printed := parse(o)
	broke := brokeOff(r, o, printed)
	// The prober signs its reports, so an attempt that worked counts even if the run
	// was interrupted. Without the signature it counts only if the run ended.
	v, why := judgeAttempts(r, printed.attempts)
	if v != Escaped && broke == "" {
		if claim, claimed := judgeAttempts(r, printed.claims); claim == Escaped {
			return claim, claimed
		}
	}
	switch {
	case v == Escaped:
		return v, why
	case o.Flooded && !o.TimedOut && o.Excess == "":
		return Inconclusive, "it printed more than was looked at"
	case broke != "":
		return Inconclusive, broke
	case printed.lost != "":
		return Inconclusive, printed.lost
	}
	return v, why
}

// brokeOff returns why a command was incomplete: it was not started, refused,
// killed, or its prober never reported the end. It returns "" for a complete one,
// and for a refusal that is a defence.
func brokeOff(r Row, o Observation, printed printedReports) string {
	switch {
	case errors.Is(o.Err, ErrUnsupported):
		return o.Err.Error()
	case o.Err != nil:
		return "not run: " + o.Err.Error()
	case o.Refused && r.RefusalHolds:
		return ""
	case o.Refused:
		return "the launcher refused: " + firstLine(o.Stderr)
	case o.TimedOut:
		return "timed out after " + o.Took.Round(time.Millisecond).String()
	case o.Excess != "":
		return "ended, for it used more than any row needs: " + o.Excess
	case o.Flooded && o.Exit < bySignal:
		return "" // the report of the end may be in the discarded output
	case !printed.begun && printed.forged > 0:
		return "what was printed in the name of the prober is not from it"
	case !printed.begun:
		return fmt.Sprintf("the action never ran (status %d): %s", o.Exit, firstLine(o.Stderr))
	case !printed.ended:
		return fmt.Sprintf("the action did not end (status %d): %s", o.Exit, firstLine(o.Stderr))
	}
	return ""
}

// bySignal is the lowest status of a command that was ended by a signal.
const bySignal = 128

func judgeAttempts(r Row, attempts []inside.Report) (Verdict, string) {
	accept := r.Accept
	if accept == nil {
		accept = Denials
	}
	tried, controls := 0, 0
	verdict, reason := Held, "every attempt was denied and nothing got through"
	if r.Kind == Control {
		reason = "every attempt worked, as it must"
	}
	for _, a := range attempts {
		must := a.Control || r.Kind == Control
		switch {
		case must && !a.Done:
			verdict, reason = Inconclusive, fmt.Sprintf("control failed: %s: %s", a.Attempt, a.Text)
		case must:
			controls++
		case a.Done && r.Harmless == "":
			return Escaped, a.Attempt + " worked"
		case a.Done && verdict == Held:
			reason = "nothing got through: " + r.Harmless
		case a.Done:
		case !slices.Contains(accept, a.Errno) && verdict == Held:
			verdict, reason = Inconclusive, fmt.Sprintf("%s failed, but not by a denial: %s %s", a.Attempt, a.Errno, a.Text)
		}
		if !a.Control {
			tried++
		}
	}
	switch {
	case tried == 0:
		return Inconclusive, "nothing was attempted"
	case controls == 0:
		return Inconclusive, "no control ran"
	}
	return verdict, reason
}

// printedReports is what was printed in the name of a run.
type printedReports struct {
	attempts     []inside.Report // signed with the key
	claims       []inside.Report // not signed with the key; a denial among them is not believed
	notes        []inside.Report // data that is not an attempt
	begun, ended bool
	forged       int
	lost         string // which reports are missing, or ""
}

// parse picks the reports with the nonce of this run out of everything else that
// was printed.
func parse(o Observation) printedReports {
	var s printedReports
	last := map[string]int{} // per reporting process
	sc := bufio.NewScanner(bytes.NewReader(o.Stdout))
	sc.Buffer(nil, outputCap+1)
	for sc.Scan() {
		var rep inside.Report
		if json.Unmarshal(sc.Bytes(), &rep) != nil || rep.Nonce != o.Nonce || o.Nonce == "" {
			continue
		}
		if !inside.Sealed(sc.Bytes(), o.Key) {
			s.forged++
			if rep.Phase == "" && !rep.Control {
				s.claims = append(s.claims, rep)
			}
			continue
		}
		if o.Terminal && rep.Seq == last[rep.Writer] {
			continue
		}
		if last[rep.Writer]++; rep.Seq != last[rep.Writer] {
			s.lost = fmt.Sprintf("report %d of the prober is missing", last[rep.Writer])
		}
		switch rep.Phase {
		case inside.Begin:
			s.begun = true
		case inside.End:
			s.ended = s.begun
		case inside.Noted:
			s.notes = append(s.notes, rep)
		case "":
			s.attempts = append(s.attempts, rep)
		}
	}
	return s
}

func firstLine(b []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(b)), "\n")
	return line
}
