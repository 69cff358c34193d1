// Package event is the shared vocabulary of Holdfast: what was attempted, by
// whom, on what, and what was decided. It has no behaviour and imports nothing
// of this module, so that every component can speak it and none depends on
// another to be heard.
package event

import "time"

// Verdict is what was decided about one attempt.
type Verdict int

// The zero value is Unknown, so that a forgotten assignment never reads as
// permission.
const (
	Unknown Verdict = iota
	Denied
	Allowed
)

func (v Verdict) String() string {
	switch v {
	case Denied:
		return "denied"
	case Allowed:
		return "allowed"
	default:
		return "unknown"
	}
}

// MarshalText writes the word.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// Event is one attempt, decision or change of state.
type Event struct {
	Time    time.Time         `json:"time"`
	Session string            `json:"session"`
	Action  string            `json:"action"`           // verb of the kind: "session.start", "file.quarantine"
	Object  string            `json:"object,omitempty"` // absolute path, host:port, guarantee or tool name
	Verdict Verdict           `json:"verdict"`
	Rule    string            `json:"rule,omitempty"` // policy rule that decided, as file:line; "" for a built-in default
	Detail  map[string]string `json:"detail,omitempty"`
}

// Sink receives events, from several goroutines at once.
type Sink interface {
	// Emit must report loss. A caller that guards a privileged action must
	// treat an error from Emit as a denial.
	Emit(Event) error
}
