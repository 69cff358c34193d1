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

	"holdfast.dev/holdfast/internal/probe/inside"
)

// Verdict of a row against a target.
type Verdict int

// A forgotten verdict reads as a run that proved nothing.
const (
	Inconclusive Verdict = iota
	Held
	Escaped
	Residual // escaped, in a way that the row documents
)

func (v Verdict) String() string {
	return [...]string{"inconclusive", "held", "ESCAPED", "residual"}[v]
}

// ErrUnsupported is returned by a target that cannot do what a row asks for.
var ErrUnsupported = errors.New("the target has no way to do this")

// Observation is what one command looked like from the outside.
type Observation struct {
	Nonce    string // that the prober was given
	Exit     int    // status; 128+n for signal n
	Refused  bool   // the launcher declined to start, in its own words
	Stdout   []byte // the first MiB
	Stderr   []byte // the first MiB
	Flooded  bool   // there was more, and a token may have stood there
	TimedOut bool
	Err      error // the command could not be run at all
	Took     time.Duration
}

// Result is what is known about a row after it was played.
type Result struct {
	Row     Row
	Target  string
	Verdict Verdict
	Reason  string          // one sentence
	Missing bool            // inconclusive because the host, or the target, lacks what the row needs
	Effects []string        // what was seen from the outside
	Said    []inside.Report // what the inside said of its attempts; evidence for nothing
	Took    time.Duration
}

// judge gives the verdict. effects are what was seen from the outside; they
// come first, because nothing that is said inside can excuse them, and no
// denial that is reported inside is believed without their absence.
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
		// Escaped and residual end the matter; inconclusive beats held.
		if v == Escaped || v == Residual {
			return v, why
		}
		if v != Held || verdict == Held {
			verdict, reason = v, why
		}
	}
	return verdict, reason
}

func judgeOne(r Row, o Observation) (Verdict, string) {
	switch {
	case errors.Is(o.Err, ErrUnsupported):
		return Inconclusive, o.Err.Error()
	case o.Err != nil:
		return Inconclusive, "not run: " + o.Err.Error()
	case o.Refused && r.RefusalHolds:
		return Held, "the launcher refused: " + firstLine(o.Stderr)
	case o.Refused:
		return Inconclusive, "the launcher refused: " + firstLine(o.Stderr)
	}
	attempts, begun, ended := parse(o)
	// An attempt that worked counts even when the run was cut short.
	v, why := judgeAttempts(r, attempts)
	switch {
	case v == Escaped:
		return v, why
	case o.TimedOut:
		return Inconclusive, "timed out after " + o.Took.Round(time.Millisecond).String()
	case o.Flooded:
		return Inconclusive, "it printed more than was looked at"
	case !begun:
		return Inconclusive, fmt.Sprintf("the action never ran (status %d): %s", o.Exit, firstLine(o.Stderr))
	case !ended:
		return Inconclusive, fmt.Sprintf("the action did not end (status %d): %s", o.Exit, firstLine(o.Stderr))
	}
	return v, why
}

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
		case a.Done:
			reason = "nothing got through: " + r.Harmless
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

// parse picks the reports that carry the nonce of this run out of whatever
// else was printed.
func parse(o Observation) (attempts []inside.Report, begun, ended bool) {
	sc := bufio.NewScanner(bytes.NewReader(o.Stdout))
	sc.Buffer(nil, outputCap+1)
	for sc.Scan() {
		var rep inside.Report
		if json.Unmarshal(sc.Bytes(), &rep) != nil || rep.Nonce != o.Nonce || o.Nonce == "" {
			continue
		}
		switch rep.Phase {
		case inside.Begin:
			begun = true
		case inside.End:
			ended = begun
		case "":
			attempts = append(attempts, rep)
		}
	}
	return attempts, begun, ended
}

func firstLine(b []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(b)), "\n")
	return line
}
