package model

import (
	"strings"
	"testing"
)

// responsesAgent speaks the Responses API.
type responsesAgent struct{}

func (responsesAgent) path(bool) string { return "/v1/responses" }

func (responsesAgent) body(prompts []string, history []exchange, tools []map[string]any, stream bool) map[string]any {
	var offered list
	spaces := map[string]list{}
	for _, tool := range tools {
		one := object{"type": "function", "name": tool["name"], "parameters": tool["schema"]}
		if kind, ok := tool["kind"].(string); ok {
			one["type"] = kind
		}
		if about, ok := tool["about"].(string); ok {
			one["description"] = about
		}
		if space, ok := tool["namespace"].(string); ok {
			spaces[space] = append(spaces[space], one)
			continue
		}
		offered = append(offered, one)
	}
	for name, tools := range spaces {
		offered = append(offered, object{"type": "namespace", "name": name, "tools": tools})
	}
	input := list{object{"type": "message", "role": "developer", "content": list{object{"type": "input_text", "text": "be good"}}}}
	for _, p := range prompts {
		input = append(input, object{"type": "message", "role": "user", "content": list{object{"type": "input_text", "text": p}}})
	}
	for _, e := range history {
		if e.text != "" {
			input = append(input, object{"type": "message", "role": "assistant", "content": list{object{"type": "output_text", "text": e.text}}})
		}
		for _, c := range e.calls {
			call := object{"type": c.Kind + "_call", "call_id": c.ID, "name": c.Name, "namespace": c.Namespace}
			out := object{"type": c.Kind + "_call_output", "call_id": c.ID, "output": c.Result}
			switch c.Kind {
			case "custom_tool":
				call["input"] = c.Text
			case "tool_search":
				call["arguments"], out["type"], out["tools"] = c.Args, "tool_search_output", list{}
				if c.Result != "" {
					out["tools"] = list{object{"type": "function", "name": c.Result, "defer_loading": true}}
				}
			default:
				call["arguments"] = jsonText(c.Args)
			}
			input = append(input, call, out)
		}
	}
	return object{"model": "m", "stream": stream, "tools": offered, "input": input}
}

func responsesItems(t testing.TB, output []any) (e exchange) {
	for _, v := range output {
		it := v.(map[string]any)
		space, _ := it["namespace"].(string)
		name, _ := it["name"].(string)
		switch it["type"] {
		case "message":
			e.text += get[string](t, it, "content", 0, "text")
			continue
		case "function_call":
			e.calls = append(e.calls, madeCall{Kind: "function", Name: name, Namespace: space, Args: parsed(t, get[string](t, it, "arguments"))})
		case "custom_tool_call":
			e.calls = append(e.calls, madeCall{Kind: "custom_tool", Name: name, Namespace: space, Text: get[string](t, it, "input")})
		case "tool_search_call":
			if get[string](t, it, "execution") != "client" {
				t.Fatalf("%v", it)
			}
			e.calls = append(e.calls, madeCall{Kind: "tool_search", Name: "tool_search", Args: get[map[string]any](t, it, "arguments")})
		case "local_shell_call":
			e.calls = append(e.calls, madeCall{Kind: "local_shell", Name: "local_shell", Args: get[map[string]any](t, it, "action")})
		default:
			t.Fatalf("no item: %v", it)
		}
		e.calls[len(e.calls)-1].ID = get[string](t, it, "call_id")
		get[string](t, it, "id")
	}
	return e
}

func (responsesAgent) whole(t testing.TB, data []byte) exchange {
	m := parsed(t, string(data))
	if get[string](t, m, "status") != "completed" {
		t.Fatalf("%s", data)
	}
	return responsesItems(t, get[list](t, m, "output"))
}

func (responsesAgent) streamed(t testing.TB, events []sseEvent) exchange {
	var done list
	deltas := ""
	for i, v := range events {
		if get[string](t, v.data, "type") != v.name || int(get[float64](t, v.data, "sequence_number")) != i {
			t.Fatalf("event %d: %v", i, v)
		}
		switch {
		case v.name == "response.output_item.added":
			deltas = ""
			if got := get[string](t, v.data, "item", "status"); got != "in_progress" {
				t.Fatalf("an item begins %s", got)
			}
		case strings.HasSuffix(v.name, ".delta"):
			deltas += get[string](t, v.data, "delta")
		case v.name == "response.output_item.done":
			it := get[map[string]any](t, v.data, "item")
			for _, field := range []string{"arguments", "input"} {
				if whole, ok := it[field].(string); ok && whole != deltas {
					t.Fatalf("%q was streamed, %q is the whole", deltas, whole)
				}
			}
			done = append(done, it)
		}
	}
	if n := len(events); n < 4 || events[0].name != "response.created" || events[n-1].name != "response.completed" {
		t.Fatalf("the order of events: %v", events)
	}
	last := events[len(events)-1].data
	get[float64](t, last, "response", "usage", "total_tokens")
	if jsonText(get[list](t, last, "response", "output")) != jsonText(done) {
		t.Fatalf("the response has other items than those before: %v", last)
	}
	return responsesItems(t, done)
}
