package model

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// exchange is one turn of a conversation, as the test agent keeps it.
type exchange struct {
	text  string
	calls []madeCall
}

// madeCall is a tool call of the model and its result.
type madeCall struct {
	ID, Name, Namespace string
	Kind                string // function, custom, local_shell, tool_search
	Args                map[string]any
	Text                string
	Result              string
}

// agent is a minimal agent: it speaks one dialect, and accepts an answer only in
// the correct format.
type agent interface {
	path(stream bool) string
	body(prompts []string, history []exchange, tools []map[string]any, stream bool) map[string]any
	whole(t testing.TB, data []byte) exchange
	streamed(t testing.TB, events []sseEvent) exchange
}

type sseEvent struct {
	name string
	data map[string]any
}

// ask sends one request, streaming or not.
func ask(t testing.TB, s http.Handler, a agent, prompts []string, history []exchange, tools []map[string]any, stream bool) exchange {
	t.Helper()
	data, err := json.Marshal(a.body(prompts, history, tools, stream))
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest("POST", a.path(stream), bytes.NewReader(data)))
	if w.Code != http.StatusOK {
		t.Fatalf("%d: %s", w.Code, w.Body)
	}
	if !stream {
		return a.whole(t, w.Body.Bytes())
	}
	if got := w.Header().Get("Content-Type"); !strings.HasPrefix(got, "text/event-stream") {
		t.Fatalf("content type %q", got)
	}
	return a.streamed(t, readEvents(t, w.Body))
}

// readEvents reads server-sent events strictly: an optional name, one line of
// data, an empty line.
func readEvents(t testing.TB, r io.Reader) []sseEvent {
	t.Helper()
	var all []sseEvent
	var e sseEvent
	ended := false
	in := bufio.NewScanner(r)
	in.Buffer(nil, 64<<20)
	for in.Scan() {
		line := in.Text()
		name, value, _ := strings.Cut(line, ": ")
		switch {
		case line == "":
			if e.data == nil && !ended {
				t.Fatalf("an event without data after %d", len(all))
			}
			if e.data != nil {
				all = append(all, e)
			}
			e = sseEvent{}
		case ended:
			t.Fatalf("%q after the end", line)
		case name == "event":
			e.name = value
		case name == "data" && value == "[DONE]":
			ended = true
		case name == "data":
			if err := json.Unmarshal([]byte(value), &e.data); err != nil {
				t.Fatalf("%v: %s", err, value)
			}
		default:
			t.Fatalf("no line of an event stream: %q", line)
		}
	}
	if err := in.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func get[T any](t testing.TB, v map[string]any, path ...any) T {
	t.Helper()
	var at any = v
	for _, step := range path {
		switch s := step.(type) {
		case string:
			m, ok := at.(map[string]any)
			if !ok {
				t.Fatalf("no %v of %v", path, v)
			}
			at = m[s]
		case int:
			l, ok := at.([]any)
			if !ok || s >= len(l) {
				t.Fatalf("no %v of %v", path, v)
			}
			at = l[s]
		}
	}
	got, ok := at.(T)
	if !ok {
		t.Fatalf("%v of %v is %T", path, v, at)
	}
	return got
}

func parsed(t testing.TB, text string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatalf("%v: %q", err, text)
	}
	return m
}

type list = []any

// anthropicAgent speaks the Messages API.
type anthropicAgent struct{}

func (anthropicAgent) path(bool) string { return "/v1/messages?beta=true" }

func (anthropicAgent) body(prompts []string, history []exchange, tools []map[string]any, stream bool) map[string]any {
	var offered, messages list
	for _, tool := range tools {
		offered = append(offered, object{"name": tool["name"], "input_schema": tool["schema"]})
	}
	for _, p := range prompts {
		messages = append(messages, object{"role": "user", "content": list{object{"type": "text", "text": p}}})
	}
	for _, e := range history {
		var use, results list
		if e.text != "" {
			use = append(use, object{"type": "text", "text": e.text})
		}
		for _, c := range e.calls {
			use = append(use, object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": c.Args})
			results = append(list{object{"type": "tool_result", "tool_use_id": c.ID, "content": c.Result}}, results...) // the last call first
		}
		messages = append(messages, object{"role": "assistant", "content": use}, object{"role": "user", "content": results})
	}
	return object{"model": "m", "stream": stream, "system": list{object{"type": "text", "text": "be good"}}, "tools": offered, "messages": messages}
}

func (anthropicAgent) whole(t testing.TB, data []byte) (e exchange) {
	m := parsed(t, string(data))
	for _, v := range get[list](t, m, "content") {
		b := v.(map[string]any)
		if b["type"] == "text" {
			e.text += get[string](t, b, "text")
		} else {
			e.calls = append(e.calls, madeCall{ID: get[string](t, b, "id"), Name: get[string](t, b, "name"), Kind: "function", Args: get[map[string]any](t, b, "input")})
		}
	}
	checkEnd(t, get[string](t, m, "stop_reason"), "tool_use", "end_turn", e)
	return e
}

func checkEnd(t testing.TB, got, calls, text string, e exchange) {
	t.Helper()
	want := text
	if len(e.calls) > 0 {
		want = calls
	}
	if got != want {
		t.Fatalf("ended with %q, want %q", got, want)
	}
}

func (anthropicAgent) streamed(t testing.TB, events []sseEvent) (e exchange) {
	order := ""
	arguments := ""
	for _, v := range events {
		if get[string](t, v.data, "type") != v.name {
			t.Fatalf("the event %s is called %s", v.data["type"], v.name)
		}
		order += strings.TrimPrefix(v.name, "content_") + " "
		switch v.name {
		case "content_block_start":
			if b := get[map[string]any](t, v.data, "content_block"); b["type"] == "tool_use" {
				e.calls = append(e.calls, madeCall{ID: get[string](t, b, "id"), Name: get[string](t, b, "name"), Kind: "function"})
				arguments = ""
			}
		case "content_block_delta":
			if get[string](t, v.data, "delta", "type") == "text_delta" {
				e.text += get[string](t, v.data, "delta", "text")
			} else {
				arguments += get[string](t, v.data, "delta", "partial_json")
			}
		case "content_block_stop":
			if n := len(e.calls); n > 0 {
				e.calls[n-1].Args = parsed(t, arguments)
			}
		case "message_delta":
			checkEnd(t, get[string](t, v.data, "delta", "stop_reason"), "tool_use", "end_turn", e)
		}
	}
	if !strings.HasPrefix(order, "message_start block_start block_delta ") || !strings.HasSuffix(order, "block_delta block_stop message_delta message_stop ") {
		t.Fatalf("the order of events: %s", order)
	}
	return e
}

// chatAgent speaks Chat Completions.
type chatAgent struct{}

func (chatAgent) path(bool) string { return "/v1/chat/completions" }

func (chatAgent) body(prompts []string, history []exchange, tools []map[string]any, stream bool) map[string]any {
	var offered list
	messages := list{object{"role": "system", "content": "be good"}}
	for _, tool := range tools {
		if tool["kind"] == "custom" {
			offered = append(offered, object{"type": "custom", "custom": object{"name": tool["name"]}})
			continue
		}
		offered = append(offered, object{"type": "function", "function": object{"name": tool["name"], "parameters": tool["schema"]}})
	}
	for _, p := range prompts {
		messages = append(messages, object{"role": "user", "content": p})
	}
	for _, e := range history {
		m := object{"role": "assistant", "content": e.text}
		var calls, results list
		for _, c := range e.calls {
			if c.Kind == "custom" {
				calls = append(calls, object{"id": c.ID, "type": "custom", "custom": object{"name": c.Name, "input": c.Text}})
			} else {
				calls = append(calls, object{"id": c.ID, "type": "function", "function": object{"name": c.Name, "arguments": jsonText(c.Args)}})
			}
			results = append(results, object{"role": "tool", "tool_call_id": c.ID, "content": c.Result})
		}
		m["tool_calls"] = calls
		messages = append(append(messages, m), results...)
	}
	return object{"model": "m", "stream": stream, "tools": offered, "messages": messages}
}

func chatMade(t testing.TB, v any) madeCall {
	c := v.(map[string]any)
	if c["type"] == "custom" {
		return madeCall{ID: get[string](t, c, "id"), Kind: "custom", Name: get[string](t, c, "custom", "name"), Text: get[string](t, c, "custom", "input")}
	}
	return madeCall{ID: get[string](t, c, "id"), Kind: get[string](t, c, "type"), Name: get[string](t, c, "function", "name"), Args: parsed(t, get[string](t, c, "function", "arguments"))}
}

func (chatAgent) whole(t testing.TB, data []byte) (e exchange) {
	m := get[map[string]any](t, parsed(t, string(data)), "choices", 0)
	e.text = get[string](t, m, "message", "content")
	if calls, ok := get[map[string]any](t, m, "message")["tool_calls"].(list); ok {
		for _, c := range calls {
			e.calls = append(e.calls, chatMade(t, c))
		}
	}
	checkEnd(t, get[string](t, m, "finish_reason"), "tool_calls", "stop", e)
	return e
}

func (chatAgent) streamed(t testing.TB, events []sseEvent) (e exchange) {
	for i, v := range events {
		if v.name != "" || get[string](t, v.data, "object") != "chat.completion.chunk" {
			t.Fatalf("no chunk: %v", v)
		}
		choice := get[map[string]any](t, v.data, "choices", 0)
		delta := get[map[string]any](t, choice, "delta")
		if text, ok := delta["content"].(string); ok {
			e.text += text
		}
		if calls, ok := delta["tool_calls"].(list); ok {
			for n, c := range calls {
				if int(get[float64](t, c.(map[string]any), "index")) != n {
					t.Fatalf("index of %v", c)
				}
				e.calls = append(e.calls, chatMade(t, c))
			}
		}
		if reason, ok := choice["finish_reason"].(string); ok != (i == len(events)-1) {
			t.Fatalf("finished at %d of %d", i, len(events))
		} else if ok {
			checkEnd(t, reason, "tool_calls", "stop", e)
			get[float64](t, v.data, "usage", "total_tokens")
		}
	}
	return e
}

func allAgents() map[string]agent {
	return map[string]agent{"anthropic": anthropicAgent{}, "chat": chatAgent{}, "gemini": geminiAgent{}, "responses": responsesAgent{}}
}

func props(names ...string) map[string]any {
	p, required := object{}, list{}
	for _, n := range names {
		name, kind, _ := strings.Cut(n, ":")
		if kind == "" {
			kind = "string"
		}
		if base, optional := strings.CutSuffix(name, "?"); optional {
			name = base
		} else {
			required = append(required, name)
		}
		p[name] = object{"type": kind}
		if values, ok := strings.CutPrefix(kind, "enum="); ok {
			p[name] = object{"type": "string", "enum": strings.Split(values, "|")}
		}
	}
	return object{"type": "object", "properties": p, "required": required}
}

func offer(name string, properties ...string) map[string]any {
	return map[string]any{"name": name, "schema": props(properties...)}
}

// answered gives every call a result that contains its ID.
func (e exchange) answered(text func(madeCall) string) exchange {
	for i := range e.calls {
		e.calls[i].Result = text(e.calls[i])
	}
	return e
}

func echo(c madeCall) string { return fmt.Sprint("came of ", c.Name, c.Args, c.Text) }
