package audit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
)

// Unseen is something that the sensors of a run did not see from some time on.
type Unseen struct {
	What   string    `json:"what"`  // one of the Blind constants of package event
	Since  time.Time `json:"since"` // until the end of the run
	Reason string    `json:"reason"`
	Seen   string    `json:"seen,omitempty"` // what was seen of it nevertheless; "" for nothing
}

func (u Unseen) String() string {
	text := fmt.Sprintf("%s not seen since %s: %s", u.What, u.Since.UTC().Format(time.RFC3339), u.Reason)
	if u.Seen != "" {
		text += "; still seen: " + u.Seen
	}
	return text
}

// expectedSensors are the sensors of every run inside a boundary, each with what is
// not seen without it.
var expectedSensors = []struct {
	sensor event.Sensor
	what   string
}{{event.Syscall, event.BlindCalls}, {event.Tripwire, event.BlindLookups}, {event.Egress, event.BlindNetwork}}

// sensorStart is a line that says which sensors watch from there on.
type sensorStart struct {
	link  link
	event *event.Event // session.start
}

// addUnseen makes the verdict Partial.
func (v *verifier) addUnseen(l link, u Unseen) {
	v.problemAt(Partial, l, "%s", u)
	if len(v.report.Unseen) < maxProblems {
		v.report.Unseen = append(v.report.Unseen, u)
	}
	v.blind[u.What] = true
}

// addBlind takes a record.blind: the log itself says that its sensors missed something.
func (v *verifier) addBlind(l link, e *event.Event) {
	v.addUnseen(l, Unseen{What: cmp.Or(e.Object, "something"), Since: e.Time, Reason: cmp.Or(e.Detail["reason"], "no reason is given"), Seen: e.Detail["seen"]})
}

// checkSensors compares the sensors that a session names with those that every
// record of a run must have: a writer that declares nothing proves nothing. A
// record without a level is not of a run inside a boundary.
func (v *verifier) checkSensors() {
	for _, s := range v.starts {
		if cmp.Or(s.event.Detail["level"], v.level) == "" {
			continue
		}
		named := strings.Split(s.event.Detail["sensors"], ",")
		for _, p := range expectedSensors {
			calls := p.sensor == event.Tripwire && v.blind[event.BlindCalls] // which says more
			if !calls && !v.blind[p.what] && !slices.Contains(named, string(p.sensor)) {
				v.addUnseen(s.link, Unseen{What: p.what, Since: s.event.Time, Reason: fmt.Sprintf("the session does not name the sensor %q, and nothing says why", p.sensor)})
			}
		}
	}
}
