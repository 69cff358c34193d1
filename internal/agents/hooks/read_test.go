package hooks

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/floor/event"
)

func TestRead(t *testing.T) {
	for _, tt := range []struct {
		name, agent, text string
		want              Report
	}{
		{"Claude", "claude", `{"session_id":"s","transcript_path":"/t","cwd":"/w","permission_mode":"default","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command": "id"},"tool_use_id":"u","agent_id":"a1","agent_type":"Explore"}`,
			Report{Tool: "Bash", Arguments: json.RawMessage(`{"command":"id"}`), ID: "u", Cwd: "/w", Subagent: "Explore a1", Transcript: "/t", Conversation: "s", Mode: "default"}},
		{"a server by the tool's name", "codex", `{"tool_name":"mcp__probe__report","tool_input":{}}`, Report{Tool: "mcp__probe__report", Arguments: json.RawMessage(`{}`), Server: "probe"}},
		{"a server by an object", "claude", `{"tool_name":"x","mcp_server":{"name":"probe","source":"user"}}`, Report{Tool: "x", Server: "probe"}},
		{"a server by a context", "gemini", `{"tool_name":"x","mcp_context":{"server_name":"probe"}}`, Report{Tool: "x", Server: "probe"}},
		{"a server of an unknown shape", "claude", `{"tool_name":"x","mcp_server":[1]}`, Report{Tool: "x"}},
		{"Copilot, with arguments as a text", "copilot", `{"sessionId":"s","timestamp":1,"cwd":"/w","toolName":"bash","toolArgs":"{\"command\":\"id\"}"}`,
			Report{Tool: "bash", Arguments: json.RawMessage(`{"command":"id"}`), Cwd: "/w", Conversation: "s"}},
		{"arguments with escapes", "claude", `{"tool_name":"x","tool_input":{"b":{"c":"\u0073udo <&>"},"a":1.0}}`, Report{Tool: "x", Arguments: json.RawMessage(`{"a":1,"b":{"c":"sudo <&>"}}`)}},
		{"nulls", "claude", `{"tool_name":"x","tool_input":null,"cwd":null,"agent_id":null}`, Report{Tool: "x"}},
	} {
		tt.want.Agent, tt.want.Kind = tt.agent, Call
		got := Read(tt.agent, Call, strings.NewReader(tt.text))
		x, _ := json.Marshal(got)
		y, _ := json.Marshal(tt.want)
		if !bytes.Equal(x, y) {
			t.Errorf("%s: %s, want %s", tt.name, x, y)
		}
	}
}

// TestReadSigns: an agent may escape & and other characters; they are kept
// unescaped in arguments and answers.
func TestReadSigns(t *testing.T) {
	got := Read("claude", Result, strings.NewReader(`{"tool_name":"x","tool_input":{"command":"a \u0026\u0026 b"},"tool_response":{"stdout":"\u003ca\u003e \u0026"}}`))
	if string(got.Arguments) != `{"command":"a && b"}` || got.Response != `{"stdout":"<a> &"}` {
		t.Errorf("%s, %s", got.Arguments, got.Response)
	}
}

func TestReadOutcomes(t *testing.T) {
	for text, want := range map[string]string{
		`{"tool_name":"x","tool_response":{"is_error":true}}`:         "error",
		`{"tool_name":"x","tool_response":{"isError":false}}`:         "ok",
		`{"tool_name":"x","toolResult":{"resultType":"success"}}`:     "ok",
		`{"tool_name":"x","toolResult":{"resultType":"failure"}}`:     "error",
		`{"tool_name":"x","tool_response":"Error: no"}`:               "",
		`{"tool_name":"x","tool_response":{"success":false,"a":[1]}}`: "error",
	} {
		if got := Read("claude", Result, strings.NewReader(text)); got.Outcome != want || got.Response == "" {
			t.Errorf("%s: %+v", text, got)
		}
	}
}

// endless never ends: a hook must not read forever.
type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = ' '
	}
	return len(b), nil
}

func TestReadWhatCannotBeRead(t *testing.T) {
	for _, tt := range []struct {
		from io.Reader
		want string
	}{
		{strings.NewReader(""), "unexpected end"},
		{strings.NewReader("garbage"), "invalid character"},
		{strings.NewReader(`{"tool_name":5}`), "cannot unmarshal"},
		{strings.NewReader(`{}`), "names no tool"},
		{strings.NewReader(strings.Repeat("[", 100_000)), "depth"},
		{strings.NewReader(`{"tool_name":"x","tool_input":{"a":[{"b":1,"\u0062":2}]}}`), `the arguments of x: the name "b" appears twice in it`},
		{strings.NewReader(`{"toolName":"x","toolArgs":"{\"a\":1,\"A\":2}"}`), "differ only in case"},
		{endless{}, "longer than 16 MiB"},
	} {
		r := Read("claude", Call, tt.from)
		if !strings.Contains(r.Bad, tt.want) || r.Agent != "claude" || r.Tool != "" {
			t.Errorf("%+v, want %q", r, tt.want)
		}
		if e := r.Event(Answer{}); e.Action != event.ToolLost || e.Object != "claude" || e.Detail["reason"] != r.Bad {
			t.Errorf("%+v", e)
		}
	}
}

func TestLongArgumentsAreCut(t *testing.T) {
	text := `{"tool_name":"Write","tool_input":{"file_path":"/w/x","content":"` + strings.Repeat("é", 400_000) + `"}}`
	r := Read("claude", Call, strings.NewReader(text))
	if !r.Cut || len(r.Arguments) > 2*maxString || !strings.Contains(string(r.Arguments), `"/w/x"`) || !json.Valid(r.Arguments) {
		t.Errorf("%t, %d bytes", r.Cut, len(r.Arguments))
	}
	many := `{"tool_name":"x","tool_input":{"l":[` + strings.Repeat(`"a",`, 200_000) + `"a"]}}`
	if r = Read("claude", Call, strings.NewReader(many)); !r.Cut || len(r.Arguments) > maxArguments || !json.Valid(r.Arguments) {
		t.Errorf("%t, %d bytes", r.Cut, len(r.Arguments))
	}
	line, err := json.Marshal(r)
	if err != nil || len(line) > maxLine {
		t.Errorf("%d bytes, %v", len(line), err)
	}
}

func TestReceive(t *testing.T) {
	for _, text := range []string{
		`{"agent":"claude","kind":"call","tool":"x","arguments":{"a":1,"a":2}}` + "\n",
		"", "\n", "x\n", "{}\n", `{"agent":"claude"}` + "\n", `{"agent":"claude","kind":"call"}` + "\n", `{"agent":"claude","kind":"delete","tool":"x"}` + "\n",
		`{"agent":"claude","kind":"call","tool":"x","sensor":"task"}` + "\n", `{"agent":"claude","kind":"call","tool":"x"}`, strings.Repeat("x", maxLine+10) + "\n",
	} {
		if r, err := Receive(strings.NewReader(text)); err == nil {
			t.Errorf("%.60q: %+v", text, r)
		}
	}
	r, err := Receive(strings.NewReader(`{"agent":"` + strings.Repeat("a", 5000) + `","kind":"result","tool":"x","ms":-5,"response":"` + strings.Repeat("b", 9000) + `"}` + "\n"))
	if err != nil || len(r.Agent) > maxName+3 || r.Millis != 0 || len(r.Response) > maxString+3 {
		t.Errorf("%d %d %d %v", len(r.Agent), r.Millis, len(r.Response), err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(`{"tool_name":"Bash","tool_input":{"command":"id"},"tool_response":{"x":[1]}}`)
	f.Add(`{"toolName":"bash","toolArgs":"{\"a\":1}"}`)
	f.Fuzz(func(t *testing.T, text string) {
		for _, kind := range []Kind{Call, Result, End} {
			r := Read("claude", kind, strings.NewReader(text))
			line, err := json.Marshal(r)
			if err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			back, err := Receive(bytes.NewReader(append(line, '\n')))
			if err != nil {
				t.Fatalf("%q became %s, which is refused: %v", text, line, err)
			}
			if back.Tool != r.Tool && len(r.Tool) < maxName {
				t.Fatalf("%q became %q", r.Tool, back.Tool)
			}
			_ = back.Event(Answer{Deny: "x"})
		}
	})
}

func FuzzReceive(f *testing.F) {
	f.Add([]byte(`{"agent":"claude","kind":"call","tool":"x"}` + "\n"))
	f.Fuzz(func(t *testing.T, line []byte) {
		if r, err := Receive(bytes.NewReader(line)); err == nil {
			_ = r.Event(Answer{})
		}
	})
}
