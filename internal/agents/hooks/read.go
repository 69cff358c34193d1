package hooks

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"holdfast.dev/holdfast/internal/floor/canonical"
	"holdfast.dev/holdfast/internal/floor/text"
)

// Limits of what a hook reads and passes on, in bytes.
const (
	maxInput     = 16 << 20  // of the agent's input, including files that it writes
	maxArguments = 512 << 10 // of the arguments; above it their long strings are cut
	maxString    = 4 << 10   // of each string then
	maxName      = 1 << 10   // of a name, a path, an id
	maxResponse  = 4 << 10
)

// hookInput is the input from all agents, with the field names of each.
type hookInput struct {
	SessionID      string          `json:"session_id"`
	SessionCamel   string          `json:"sessionId"`
	Transcript     string          `json:"transcript_path"`
	Cwd            string          `json:"cwd"`
	Mode           string          `json:"permission_mode"`
	Tool           string          `json:"tool_name"`
	ToolCamel      string          `json:"toolName"`
	Input          json.RawMessage `json:"tool_input"`
	Args           json.RawMessage `json:"toolArgs"`
	ID             string          `json:"tool_use_id"`
	AgentID        string          `json:"agent_id"`
	AgentType      string          `json:"agent_type"`
	Server         serverName      `json:"mcp_server"`
	Context        serverName      `json:"mcp_context"`
	Response       json.RawMessage `json:"tool_response"`
	ResponseCamel  json.RawMessage `json:"toolResult"`
	Milliseconds   float64         `json:"duration_ms"`
	HookEventNamed string          `json:"hook_event_name"`
}

// serverName is an MCP server: an object with a name, or just the name.
type serverName string

func (n *serverName) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) == nil {
		*n = serverName(text)
		return nil
	}
	var o struct {
		Name   string `json:"name"`
		Server string `json:"server_name"`
	}
	if err := json.Unmarshal(b, &o); err != nil {
		return nil //nolint:nilerr // a shape of a later version: the name of the tool has it as well
	}
	*n = serverName(cmp.Or(o.Name, o.Server))
	return nil
}

// Read reads an agent's input to its hook for an event of that kind. If it cannot
// be read, the result is also a report: its Bad says why.
func Read(agent string, kind Kind, from io.Reader) Report {
	data, err := io.ReadAll(io.LimitReader(from, maxInput+1))
	if err == nil && len(data) > maxInput {
		err = fmt.Errorf("it is longer than %d MiB", maxInput>>20)
	}
	var r Report
	if err == nil {
		r, err = parse(data, kind != End)
	}
	if err != nil {
		return Report{Agent: agent, Kind: kind, Bad: "what the agent sent to its hook could not be read: " + text.Cut(err.Error(), maxName)}
	}
	r.Agent, r.Kind = agent, kind
	return r
}

// parse parses one JSON object; named requires that it names a tool.
func parse(data []byte, named bool) (Report, error) {
	var s hookInput
	if err := json.Unmarshal(data, &s); err != nil {
		return Report{}, err
	}
	tool := cmp.Or(s.Tool, s.ToolCamel)
	if tool == "" && named {
		return Report{}, errors.New("it names no tool")
	}
	r := Report{
		Tool: text.Cut(tool, maxName), ID: text.Cut(s.ID, maxName), Cwd: text.Cut(s.Cwd, maxString), Transcript: text.Cut(s.Transcript, maxString),
		Conversation: text.Cut(cmp.Or(s.SessionID, s.SessionCamel), maxName), Mode: text.Cut(s.Mode, maxName), Millis: int64(min(max(s.Milliseconds, 0), 1e12)),
		Server: text.Cut(cmp.Or(string(s.Server), string(s.Context), serverOf(tool)), maxName),
	}
	r.Subagent = text.Cut(strings.TrimSpace(s.AgentType+" "+s.AgentID), maxName)
	var err error
	if r.Arguments, r.Cut, err = arguments(firstJSON(s.Input, s.Args)); err != nil {
		return Report{}, fmt.Errorf("the arguments of %s: %w", r.Tool, err)
	}
	if response := firstJSON(s.Response, s.ResponseCamel); response != nil {
		r.Response, r.Outcome = text.Cut(string(compact(response)), maxResponse), outcome(response)
	}
	return r, nil
}

func firstJSON(values ...json.RawMessage) json.RawMessage {
	for _, v := range values {
		if len(v) > 0 && string(v) != "null" {
			return v
		}
	}
	return nil
}

// serverOf is the MCP server in the name of a tool, in the form that most agents
// use.
func serverOf(tool string) string {
	rest, ok := strings.CutPrefix(tool, "mcp__")
	if !ok {
		return ""
	}
	server, _, ok := strings.Cut(rest, "__")
	if !ok {
		return ""
	}
	return server
}

// arguments rewrites a tool's arguments in the form of package canonical, and
// reports whether they had to be cut. Some agents write them as a string that
// contains JSON.
func arguments(raw json.RawMessage) (_ json.RawMessage, short bool, err error) {
	if raw == nil {
		return nil, false, nil
	}
	var inner string
	if json.Unmarshal(raw, &inner) == nil && json.Valid([]byte(inner)) && strings.HasPrefix(strings.TrimSpace(inner), "{") {
		raw = json.RawMessage(inner)
	}
	if raw, err = canonical.JSON(raw); err != nil || len(raw) <= maxArguments {
		return raw, false, err
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return nil, true, err
	}
	less, err := canonical.Marshal(shortenStrings(v))
	if err != nil || len(less) > maxArguments {
		less, _ = canonical.Marshal(text.Cut(string(raw), maxString)) // a valid UTF-8 string is always JSON
	}
	less, err = canonical.JSON(less)
	return less, true, err
}

// shortenStrings cuts the strings of a value.
func shortenStrings(v any) any {
	switch v := v.(type) {
	case string:
		return text.Cut(v, maxString)
	case []any:
		for i := range v {
			v[i] = shortenStrings(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = shortenStrings(v[k])
		}
	}
	return v
}

// compact rewrites an answer in the form of package canonical, or only without
// white space if it has no canonical form, for example because of a duplicate
// name.
func compact(raw json.RawMessage) json.RawMessage {
	if plain, err := canonical.JSON(raw); err == nil {
		return plain
	}
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		return raw
	}
	return b.Bytes()
}

// outcome returns whether a tool reports success or failure, if it does.
func outcome(raw json.RawMessage) string {
	var o struct {
		IsError    *bool  `json:"is_error"`
		IsErrorMCP *bool  `json:"isError"`
		ResultType string `json:"resultType"`
		Success    *bool  `json:"success"`
	}
	if json.Unmarshal(raw, &o) != nil {
		return ""
	}
	for _, failed := range []*bool{o.IsError, o.IsErrorMCP} {
		if failed != nil {
			return map[bool]string{true: "error", false: "ok"}[*failed]
		}
	}
	switch {
	case o.Success != nil && !*o.Success, o.ResultType == "failure", o.ResultType == "denied":
		return "error"
	case o.Success != nil, o.ResultType == "success":
		return "ok"
	}
	return ""
}
