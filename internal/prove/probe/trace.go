//go:build linux

package probe

import (
	"fmt"
	"slices"
	"strings"
)

// Trace is what must be in the record of a target that keeps one, when a row was
// held: contained is not enough, it must be seen.
type Trace struct {
	// Events must all be there. Object and Arg are templates; an Object may begin with
	// "unix:", as those of sockets do, and one that ends in "*" matches any object with
	// that prefix: for names that a set-up chooses at random.
	Events []Attempt
	Rules  []string // IDs of detection rules, each of which must have raised an alert
	None   string   // why nothing of the row can be in a record
}

// trace returns what must be seen of s. For a command that a limit ended it is
// that end, even if the row names other events: what came after the end was not
// tried.
func (s *Session) trace() Trace {
	t := s.Row.Trace
	if s.cut && t.None == "" && !slices.ContainsFunc(t.Events, func(a Attempt) bool { return a.Action == sessionLimit }) {
		return Trace{Events: []Attempt{{Action: sessionLimit, Object: "*"}}, Rules: []string{"limit"}}
	}
	return t
}

// unseen returns what is missing in the records of the runs of s, or "".
func (s *Session) unseen() (string, error) {
	keeper, ok := s.Target.(Recorder)
	trace := s.trace()
	if !ok || !keeper.KeepsRecord() || len(trace.Events)+len(trace.Rules) == 0 || s.allRefused() {
		return "", nil
	}
	var want []Attempt
	for _, a := range trace.Events {
		a.Object, a.Arg = s.World.object(a.Object), s.World.Path(a.Arg)
		want = append(want, a)
	}
	for _, rule := range trace.Rules {
		want = append(want, Attempt{Action: alertRaise, Object: rule})
	}
	for _, log := range keeper.Logs(s.World) {
		absent, err := Record{Path: log}.missing(want)
		if err != nil {
			return "", err
		}
		want = absent
		blind, err := Record{Path: log}.missing([]Attempt{lookupsUnseen})
		if err != nil {
			return "", err
		}
		if len(blind) == 0 {
			want = slices.DeleteFunc(want, func(a Attempt) bool { return a.ByStat })
		}
	}
	if len(want) == 0 {
		return "", nil
	}
	var words []string
	for _, a := range want {
		words = append(words, a.String())
	}
	return fmt.Sprintf("held, but nothing in the record says: %s", strings.Join(words, "; ")), nil
}

// lookupsUnseen is in a record that cannot have all look-ups.
var lookupsUnseen = Attempt{Action: "record.blind", Object: "lookups"}

// Actions of the record.
const (
	alertRaise   = "alert.raise"   // its object is the rule
	sessionLimit = "session.limit" // its object is the limit that ended the run
)

// allRefused reports whether nothing was started, so that there is nothing to
// see.
func (s *Session) allRefused() bool {
	for _, o := range s.ownObservations() {
		if !o.Refused {
			return false
		}
	}
	return true
}

// object expands the template of an object.
func (w *World) object(template string) string {
	if path, ok := strings.CutPrefix(template, "unix:"); ok {
		return "unix:" + w.Path(path)
	}
	return w.Path(template)
}
