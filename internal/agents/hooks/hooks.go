package hooks

import (
	"encoding/json"
	"maps"
	"strconv"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
)

// Verb is the hidden subcommand that is the hook program; its arguments are the
// agent and the kind of event.
const Verb = "hook"

// Kind is the stage of a tool call that a report describes.
type Kind string

// The kinds.
const (
	Call   Kind = "call"   // before the tool runs: an answer may deny it
	Result Kind = "result" // after it has run
	End    Kind = "end"    // of the agent's session, without a tool
)

// Report is an agent hook's description of one tool call. It all comes from the
// agent, or from any other program that runs with it, and is not trusted.
type Report struct {
	Agent        string          `json:"agent"`
	Kind         Kind            `json:"kind,omitempty"`
	Tool         string          `json:"tool,omitempty"`
	Arguments    json.RawMessage `json:"arguments,omitempty"` // one JSON value, in the form of package canonical
	Cut          bool            `json:"cut,omitempty"`       // long strings of Arguments are cut
	ID           string          `json:"id,omitempty"`        // of the call; not every agent has one
	Cwd          string          `json:"cwd,omitempty"`
	Subagent     string          `json:"subagent,omitempty"`
	Server       string          `json:"server,omitempty"` // MCP server of the tool
	Transcript   string          `json:"transcript,omitempty"`
	Conversation string          `json:"conversation,omitempty"` // the agent's own session
	Mode         string          `json:"mode,omitempty"`         // permission mode, in the agent's words
	Outcome      string          `json:"outcome,omitempty"`      // of a result: ok or error; "" if unknown
	Response     string          `json:"response,omitempty"`     // of a result, cut
	Millis       int64           `json:"ms,omitempty"`           // of a result: how long it took
	Waits        int             `json:"waits,omitempty"`        // of a call: how long the agent waits for its hook, in seconds; 0 if unknown
	Bad          string          `json:"bad,omitempty"`          // why the agent's input could not be read; then only Agent and Kind are set besides
}

// Answer is the reply to a hook. The zero value has no objection.
type Answer struct {
	Deny string `json:"deny,omitempty"` // why the call is denied; "" if it is not
	Rule string `json:"-"`              // that denied it, as file:line

	// Wait says that a human is asked, and that the answer follows on the same
	// connection within so many milliseconds.
	Wait int64 `json:"wait,omitempty"`
	// Consent says that a rule of consent or a human denied it.
	Consent bool `json:"-"`
}

// AnswerTime is the time limit for the answer to a call: a little less than the
// agent waits for its hook.
func (r Report) AnswerTime() time.Duration {
	waits := time.Duration(r.Waits) * time.Second
	if r.Waits == 0 {
		waits = timeout * time.Second
	}
	return waits - min(5*time.Second, waits/4)
}

// Event is the report as an event for the record. The caller sets its process,
// because an agent's own claim about that proves nothing.
func (r Report) Event(a Answer) event.Event {
	e := event.Event{Sensor: event.Agent, Action: event.ToolCall, Object: r.Tool, Verdict: event.Allowed}
	switch {
	case r.Bad != "":
		e = Lost(r.Agent, r.Bad)
		if a.Deny != "" {
			e.Verdict, e.Layer = event.Denied, event.LayerTools
		}
		return e
	case r.Kind == Result:
		e.Action = event.ToolResult
	case a.Deny != "":
		e.Verdict, e.Rule, e.Layer = event.Denied, a.Rule, event.LayerTools
		if a.Consent {
			e.Layer = event.LayerConsent
		}
	}
	e.Detail = map[string]string{
		"agent": r.Agent, "arguments": string(r.Arguments), "id": r.ID, "cwd": r.Cwd, "subagent": r.Subagent, "server": r.Server,
		"transcript": r.Transcript, "conversation": r.Conversation, "mode": r.Mode, "outcome": r.Outcome, "response": r.Response, "reason": a.Deny,
	}
	if r.Millis > 0 {
		e.Detail["ms"] = strconv.FormatInt(r.Millis, 10)
	}
	maps.DeleteFunc(e.Detail, func(_, v string) bool { return v == "" })
	return e
}

// Unreadable is the answer to a call that could not be read: it is denied if
// there are any rules about tools, because they cannot be checked.
func (r Report) Unreadable(rules bool) Answer {
	if !rules || r.Kind != Call {
		return Answer{}
	}
	return Answer{Deny: r.Bad + "; the policy has rules about tools, which cannot be checked for this call"}
}

// Lost is the event for a missing report, with the reason.
func Lost(agent, reason string) event.Event {
	return event.Event{Sensor: event.Agent, Action: event.ToolLost, Object: agent, Verdict: event.Unknown, Detail: map[string]string{"reason": reason}}
}
