//go:build linux

package gate

import (
	"net"
	"slices"
	"strconv"
	"sync"

	"holdfast.dev/holdfast/internal/consent"
	"holdfast.dev/holdfast/internal/floor/event"
)

// mostOutcomes is how many different outcomes a summary can name.
const mostOutcomes = 100

// summary records what a queue does, and keeps what the end of a run reports of it.
type summary struct {
	sink    event.Sink
	secrets func(string) string // masks them

	mu  sync.Mutex
	all []consent.Outcome
}

// Emit passes an event to the sink, and keeps the outcome in it.
func (s *summary) Emit(e event.Event) error {
	if err := s.sink.Emit(e); err != nil {
		return err
	}
	switch e.Action {
	case event.ApprovalAnswer, event.ApprovalRule:
		s.addOutcome(consent.Outcome{
			What: s.secrets(consent.Summary(attemptOfEvent(e))), Allowed: e.Verdict == event.Allowed, How: e.Detail["outcome"],
			By: e.Detail["by"], Reason: e.Detail["reason"], Rule: e.Rule,
		})
	}
	return nil
}

// attemptOfEvent is the subject of a queue's event, as far as a summary needs it.
func attemptOfEvent(e event.Event) event.Attempt {
	a := event.Attempt{
		Kind: event.Kind(e.Detail["kind"]), Process: e.Process, Path: e.Object, Operation: e.Detail["operation"], To: e.Detail["to"],
		Method: e.Detail["method"], URLPath: e.Detail["path"], Name: e.Detail["credential"],
		Agent: e.Detail["agent"], Server: e.Detail["server"], Tool: e.Object, Arguments: e.Detail["arguments"],
	}
	if host, port, err := net.SplitHostPort(e.Object); err == nil {
		a.Host = host
		a.Port, _ = strconv.Atoi(port)
	}
	return a
}

func (s *summary) addOutcome(c consent.Outcome) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.all, func(o consent.Outcome) bool {
		o.Count = 0
		return o == c
	})
	switch {
	case i >= 0:
		s.all[i].Count++
	case len(s.all) < mostOutcomes:
		c.Count = 1
		s.all = append(s.all, c)
	default: // the last one stands for all that there is no room for
		s.all[mostOutcomes-1] = consent.Outcome{What: "more, see the record", How: "more", Count: s.all[mostOutcomes-1].Count + 1}
	}
}

func (s *summary) report() []consent.Outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all)
}
