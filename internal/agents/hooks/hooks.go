// Package hooks ties the hook systems of agent programs to the record: it edits
// their settings so that each tool call is reported, reads what an agent says of
// a call, brings it to the log, and gives back what the policy says of it in the
// agent's own words.
//
// A hook informs. It is the agent that starts it, that waits for it or not, and
// that obeys it or not: every agent goes on when its hook crashes, hangs or says
// something that cannot be read. So nothing is ever allowed because of a report,
// and nothing that must be held back depends on one; the boundary does that.
package hooks

import (
	"encoding/json"
	"maps"
	"strconv"
	"time"

	"holdfast.dev/holdfast/internal/floor/event"
)

// Verb is the hidden subcommand that is the hook program; its arguments are the
// agent and the kind of moment.
const Verb = "hook"

// Kind is which moment of a tool call a report is of.
type Kind string

// The kinds.
const (
	Call   Kind = "call"   // before the tool is used: an answer may deny it
	Result Kind = "result" // after it
	End    Kind = "end"    // of the agent's session; no tool is meant
)

// Report is what an agent's hook says of one tool call. All of it is the agent's
// word, and that of whatever else runs where the agent does.
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
	Outcome      string          `json:"outcome,omitempty"`      // of a result: ok or error; "" where it is not said
	Response     string          `json:"response,omitempty"`     // of a result, cut
	Millis       int64           `json:"ms,omitempty"`           // of a result: how long it took
	Waits        int             `json:"waits,omitempty"`        // of a call: how long the agent waits for its hook, in seconds; 0 where that is not known
	Bad          string          `json:"bad,omitempty"`          // why what the agent said could not be read; then nothing else is set but Agent and Kind
}

// Answer is what a hook is told in return. The zero value has no objection.
type Answer struct {
	Deny string `json:"deny,omitempty"` // why the call is denied; "" when it is not
	Rule string `json:"-"`              // that denied it, as file:line

	// Wait says that the answer follows on the same channel, within so many
	// milliseconds: a human is asked.
	Wait int64 `json:"wait,omitempty"`
	// Consent says that a rule of consent denied it, or a human.
	Consent bool `json:"-"`
}

// AnswerTime is how long the answer to a call may take before the agent goes on
// without it: a little less than the agent waits.
func (r Report) AnswerTime() time.Duration {
	waits := time.Duration(r.Waits) * time.Second
	if r.Waits == 0 {
		waits = timeout * time.Second
	}
	return waits - min(5*time.Second, waits/4)
}

// Event is the report as it stands in the record. Its process is for the caller
// to set: an agent cannot be asked who it is.
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

// Unreadable is the answer to a call of which it cannot be told what it is: it is
// denied where any rule is about tools, for that rule cannot be asked.
func (r Report) Unreadable(rules bool) Answer {
	if !rules || r.Kind != Call {
		return Answer{}
	}
	return Answer{Deny: r.Bad + "; the policy has rules about tools, which cannot be asked about this call"}
}

// Lost is the event that says that a report is missing, and why.
func Lost(agent, reason string) event.Event {
	return event.Event{Sensor: event.Agent, Action: event.ToolLost, Object: agent, Verdict: event.Unknown, Detail: map[string]string{"reason": reason}}
}
