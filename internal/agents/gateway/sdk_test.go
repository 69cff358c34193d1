//lint:file-ignore SA1019 what a later version of the protocol drops, agents and servers of today use

package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// tool is a tool of the test server: the handler of its calls.
type tool func(context.Context, *mcp.CallToolRequest) (string, error)

type nothing struct{}

func addTools(s *mcp.Server, tools map[string]tool) {
	for name, f := range tools {
		mcp.AddTool(s, &mcp.Tool{Name: name}, func(ctx context.Context, r *mcp.CallToolRequest, _ nothing) (*mcp.CallToolResult, any, error) {
			text, err := f(ctx, r)
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, err
		})
	}
}

// waiting reports what happened to the call that does not end by itself.
type waiting struct{ begun, cancelled chan struct{} }

// theTools use what a server may request from its agent.
func theTools(w waiting) map[string]tool {
	return map[string]tool{
		"echo": func(context.Context, *mcp.CallToolRequest) (string, error) { return "heard", nil },
		"fail": func(context.Context, *mcp.CallToolRequest) (string, error) {
			return "", errors.New("it failed, and the token=hunter2hunter2 too")
		},
		"large": func(context.Context, *mcp.CallToolRequest) (string, error) { return strings.Repeat("é", 1<<20), nil },
		"wait": func(ctx context.Context, _ *mcp.CallToolRequest) (string, error) {
			close(w.begun)
			<-ctx.Done()
			close(w.cancelled)
			return "", ctx.Err()
		},
		"progress": func(ctx context.Context, r *mcp.CallToolRequest) (string, error) {
			for i := range 3 {
				err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(i)})
				if err != nil {
					return "", err
				}
			}
			return "done", nil
		},
		"sample": func(ctx context.Context, r *mcp.CallToolRequest) (string, error) {
			out, err := r.Session.CreateMessage(ctx, &mcp.CreateMessageParams{MaxTokens: 5, Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: "hello"}}}})
			if err != nil {
				return "", err
			}
			return out.Content.(*mcp.TextContent).Text, nil
		},
		"elicit": func(ctx context.Context, r *mcp.CallToolRequest) (string, error) {
			out, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: "name?", RequestedSchema: map[string]any{"type": "object"}})
			if err != nil {
				return "", err
			}
			return fmt.Sprint(out.Content["name"]), nil
		},
		"roots": func(ctx context.Context, r *mcp.CallToolRequest) (string, error) {
			out, err := r.Session.ListRoots(ctx, nil)
			if err != nil {
				return "", err
			}
			return out.Roots[0].URI, nil
		},
	}
}

// connect connects a client and a server of the SDK through the gateway, in one
// version of the protocol.
func connect(t *testing.T, version string, progress chan<- float64, call waiting) (*mcp.ClientSession, *mcp.Server, *world) {
	t.Helper()
	w := begin(t, nil, false)
	s := mcp.NewServer(&mcp.Implementation{Name: "test server", Version: "7"}, &mcp.ServerOptions{PageSize: 3})
	addTools(s, theTools(call))
	go s.Run(t.Context(), &mcp.IOTransport{Reader: w.server.in, Writer: w.server.out})
	c := mcp.NewClient(&mcp.Implementation{Name: "test agent", Version: "8"}, &mcp.ClientOptions{
		CreateMessageHandler: func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			return &mcp.CreateMessageResult{Model: "m", Role: "assistant", Content: &mcp.TextContent{Text: "from the model"}}, nil
		},
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "from the human"}}, nil
		},
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { progress <- r.Params.Progress },
	})
	c.AddRoots(&mcp.Root{URI: "file:///from/the/agent"})
	session, err := c.Connect(t.Context(), &mcp.IOTransport{Reader: w.agent.in, Writer: w.agent.out}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { session.Close() })
	return session, s, w
}

func TestSpeaksTheProtocol(t *testing.T) {
	for _, version := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			progress, call := make(chan float64, 10), waiting{make(chan struct{}), make(chan struct{})}
			session, server, w := connect(t, version, progress, call)
			if got := session.InitializeResult().ProtocolVersion; got != version {
				t.Fatalf("speaks %s", got)
			}
			var names []string
			for tool, err := range session.Tools(t.Context(), nil) { // in pages
				if err != nil {
					t.Fatal(err)
				}
				names = append(names, tool.Name)
			}
			if len(names) != 8 {
				t.Errorf("tools %q", names)
			}
			answers := map[string]string{
				"echo": "heard", "progress": "done", "sample": "from the model", "elicit": "from the human", "roots": "file:///from/the/agent",
				"large": strings.Repeat("é", 1<<20), "fail": "it failed, and the token=hunter2hunter2 too",
			}
			if version == "2026-07-28" { // a result requests what the agent must provide, and the call is repeated
				delete(answers, "sample")
				delete(answers, "elicit")
				delete(answers, "roots")
			}
			for tool, want := range answers {
				if got := callTool(t, session, tool); got != want {
					t.Errorf("%s: %.100q", tool, got)
				}
			}
			for i := range 3 {
				if got := <-progress; got != float64(i) {
					t.Errorf("progress %v, want %d", got, i)
				}
			}
			if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "unknown"}); err == nil {
				t.Error("a tool that does not exist was called")
			}
			cancelOne(t, session, call)
			server.AddTool(&mcp.Tool{Name: "new", InputSchema: map[string]any{"type": "object"}}, nil)
			if _, err := session.ListTools(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			w.agent.out.Close()
			w.ended(t)
			checkRecord(t, w.journal)
		})
	}
}

func callTool(t *testing.T, s *mcp.ClientSession, name string) string {
	t.Helper()
	params := &mcp.CallToolParams{Name: name}
	params.SetProgressToken(name)
	r, err := s.CallTool(t.Context(), params)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return ""
	}
	return r.Content[0].(*mcp.TextContent).Text
}

func cancelOne(t *testing.T, s *mcp.ClientSession, call waiting) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := s.CallTool(ctx, &mcp.CallToolParams{Name: "wait"})
		ended <- err
	}()
	soon(t, "a call", call.begun)
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("a call that was given up: %v", err)
	}
	soon(t, "the cancellation of a call", call.cancelled)
}

func checkRecord(t *testing.T, j *journal) {
	t.Helper()
	got := j.said("outcome", "server", "agent")
	for _, want := range []string{
		"tool.call echo server=test server 7 agent=test agent 8",
		"tool.result echo outcome=ok server=test server 7 agent=test agent 8",
		"tool.result fail outcome=error server=test server 7 agent=test agent 8",
		"tool.result unknown outcome=refused server=test server 7 agent=test agent 8",
		"tool.result wait outcome=cancelled server=test server 7 agent=test agent 8",
		"tool.list test server 7 agent=test agent 8",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}
}

func TestToolsByTheirContent(t *testing.T) {
	page := func(id int, text string) []string {
		return []string{fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/list"}`, id), fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":%s}`, id, text)}
	}
	w := newWorld(t, nil)
	for i, text := range []string{
		`{"tools":[{"name":"a","n":1.0},{"name":"b"}]}`,
		`{"tools":[ {"name":"b"}, {"n":1.0,"name":"a"} ]}`,            // the same
		`{"tools":[{"name":"a","n":1.0},{"name":"b","title":"now"}]}`, // changed
		`{"tools":5}`, `{"tools":[5,null,{}]}`, `[]`,
	} {
		lines := page(i, text)
		w.agent.say(lines[0])
		<-w.server.read
		w.server.say(lines[1])
		w.agent.hears(lines[1])
	}
	w.die()
	w.ended(t)
	got := w.journal.said("names", "tools")
	if !slices.Equal(got, []string{"tool.list server names=a,b tools=2", "tool.list server names=a,b tools=2", "tool.list server names=,, tools=3"}) {
		t.Errorf("%q", got)
	}
	if e := w.journal.all; e[1].Detail["was"] != e[0].Detail["sha256"] || e[1].Detail["sha256"] == e[0].Detail["sha256"] {
		t.Errorf("%v", e)
	}
}

func TestToolsWithoutEnd(t *testing.T) {
	w := newWorld(t, nil)
	for i := range 6 { // pages of a megabyte, without a last one
		w.agent.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/list","params":{"cursor":"%d"}}`, i, i))
		<-w.server.read
		w.server.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"tools":[{"name":"%s"}],"nextCursor":"more"}}`, i, strings.Repeat("x", 1<<20)))
		<-w.agent.read
	}
	many := `{"jsonrpc":"2.0","id":9,"result":{"tools":[` + strings.Repeat("0,", toolsMost) + `0]}}`
	w.agent.say(`{"jsonrpc":"2.0","id":9,"method":"tools/list"}`)
	<-w.server.read
	w.server.say(many)
	w.agent.hears(many)
	w.die()
	w.ended(t)
	if got := w.journal.said("tools"); !slices.Equal(got, []string{"tool.list server"}) {
		t.Errorf("%q", got)
	}
}

func TestCallsThatReadersUnderstandDifferently(t *testing.T) {
	for _, params := range []string{
		`{"name":"read","name":"delete"}`, `{"name":"read","Name":"delete"}`, `{"name":"a","arguments":{},"arguments":{"x":1}}`, `{"NAME":"a"}`,
		`{}`, `[]`, `null`, `{"name":5}`, `{"name":""}`, `"x"`,
	} {
		w := newWorld(t, nil)
		w.agent.say(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":`+params+`}`, `{"jsonrpc":"2.0","id":1,"method":"after"}`)
		if got := <-w.agent.read; !strings.Contains(got, `"error"`) {
			t.Errorf("%s: %s", params, got)
		}
		w.server.hears(`{"jsonrpc":"2.0","id":1,"method":"after"}`)
	}
}

func TestArgumentsAreCutAndMasked(t *testing.T) {
	secret := "s3cr3ts3cr3t"
	w := newWorld(t, func(c *Config) { c.Redact = func(s string) string { return strings.ReplaceAll(s, secret, "MASK") } })
	fill := strings.Repeat("x", redacted-len(secret)/2-len(`{"a":"`))
	for i, text := range []string{`{"a":"` + secret + `"}`, `{"a":"` + fill + secret + `"}`, `{"a":"` + strings.Repeat(secret, 6000) + secret + `"}`} {
		w.agent.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"f","arguments":%s}}`, i, text))
		<-w.server.read
	}
	w.die()
	w.ended(t)
	for _, e := range w.journal.all {
		if a := e.Detail["arguments"]; strings.Contains(a, "s3c") || len(a) > arguments+len("…") {
			t.Errorf("%d bytes: %.300s", len(a), a)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{`{"jsonrpc":"2.0","id":1,"method":"x","params":{}}`, `[{"jsonrpc":"2.0","id":"a","result":1}]`, `{"id":"a","x":{"id":2},"jsonrpc":"2.0","error":{"code":1}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if text = trim(text); text == nil || strings.Contains(string(text), "\n") {
			return
		}
		messages, err := parse(text, 64)
		if err != nil {
			return
		}
		for _, m := range messages {
			s := &strings.Builder{}
			if err := newSender(s).send(m); err != nil {
				t.Fatalf("%q cannot be written: %v", text, err)
			}
			line := strings.TrimSuffix(s.String(), "\n")
			if strings.Contains(line, "\n") {
				t.Fatalf("%q becomes several lines", text)
			}
			again, err := parse([]byte(line), 64)
			if err != nil || len(again) != 1 || fmt.Sprintf("%#v", again[0]) != fmt.Sprintf("%#v", m) && fmt.Sprintf("%T", again[0]) != fmt.Sprintf("%T", m) {
				t.Fatalf("%q becomes %q: %v", text, line, err)
			}
		}
	})
}
