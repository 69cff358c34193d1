package model

import (
	"encoding/json"
	"fmt"
)

// chat is the Chat Completions API.
type chat struct{}

type chatCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
	Custom struct {
		Name  string `json:"name"`
		Input string `json:"input"`
	} `json:"custom"`
}

type chatTool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
	Custom struct {
		Name        string `json:"name"`
		Description string `json:"description"`
	} `json:"custom"`
}

func (chat) read(body []byte, _ string) (*request, error) {
	var in struct {
		Model    string `json:"model"`
		Stream   bool   `json:"stream"`
		Messages []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
			Calls   []chatCall      `json:"tool_calls"`
			CallID  string          `json:"tool_call_id"`
			Name    string          `json:"name"`
		} `json:"messages"`
		Tools  []chatTool      `json:"tools"`
		Choice json.RawMessage `json:"tool_choice"`
		Format struct {
			Schema struct {
				Schema json.RawMessage `json:"schema"`
			} `json:"json_schema"`
		} `json:"response_format"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, fmt.Errorf("reading the request: %w", err)
	}
	q := &request{dialect: "chat", model: in.Model, stream: in.Stream, schema: in.Format.Schema.Schema, forced: chosen(in.Choice)}
	for _, t := range in.Tools {
		one := tool{name: t.Function.Name, schema: t.Function.Parameters, about: t.Function.Description}
		if t.Type == "custom" {
			one = tool{name: t.Custom.Name, about: t.Custom.Description, kind: custom}
		}
		q.tools = append(q.tools, one)
	}
	for _, m := range in.Messages {
		text := contentText(m.Content)
		switch m.Role {
		case "user":
			q.items = append(q.items, item{part: prompt, text: text})
		case "tool", "function":
			q.items = append(q.items, item{part: result, id: m.CallID, name: m.Name, text: text})
		case "assistant":
			if text != "" {
				q.items = append(q.items, item{part: spoken, text: text})
			}
			for _, c := range m.Calls {
				q.items = append(q.items, item{part: called, id: c.ID, name: c.Function.Name + c.Custom.Name, text: c.Function.Arguments + c.Custom.Input})
			}
		default:
			q.system += text + "\n"
		}
	}
	return q, nil
}

// chosen is the one tool that an OpenAI request forces.
func chosen(raw json.RawMessage) string {
	var c struct {
		Name     string `json:"name"`
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	if len(raw) == 0 || raw[0] != '{' || json.Unmarshal(raw, &c) != nil {
		return ""
	}
	return c.Name + c.Function.Name
}

func chatCalls(a answer) []any {
	var all []any
	for i, c := range a.calls {
		one := object{"index": i, "id": c.id, "type": "function", "function": object{"name": c.tool.fullName(), "arguments": jsonText(c.args)}}
		if c.tool.kind == custom {
			one = object{"index": i, "id": c.id, "type": "custom", "custom": object{"name": c.tool.name, "input": c.text}}
		}
		all = append(all, one)
	}
	return all
}

func finish(a answer) string {
	if len(a.calls) > 0 {
		return "tool_calls"
	}
	return "stop"
}

func (chat) usage(a answer) object {
	n := tokensOf(a)
	return object{"prompt_tokens": 10, "completion_tokens": n, "total_tokens": 10 + n}
}

func (d chat) whole(q *request, a answer, id string) any {
	m := object{"role": "assistant", "content": a.text}
	if len(a.calls) > 0 {
		m["tool_calls"] = chatCalls(a)
	}
	return object{"id": "chatcmpl-" + id, "object": "chat.completion", "created": created, "model": q.model,
		"choices": []any{object{"index": 0, "message": m, "finish_reason": finish(a)}}, "usage": d.usage(a)}
}

// created is the time of all answers, so that equal requests get equal answers.
const created = 1700000000

func (d chat) stream(e *sse, q *request, a answer, id string) {
	chunk := func(delta object, reason any) object {
		return object{"id": "chatcmpl-" + id, "object": "chat.completion.chunk", "created": created, "model": q.model,
			"choices": []any{object{"index": 0, "delta": delta, "finish_reason": reason}}}
	}
	e.event("", chunk(object{"role": "assistant", "content": ""}, nil))
	e.tokens(a.text, e.template("", chunk(object{"content": pieceMark}, nil)))
	if len(a.calls) > 0 {
		e.event("", chunk(object{"tool_calls": chatCalls(a)}, nil))
	}
	last := chunk(object{}, finish(a))
	last["usage"] = d.usage(a)
	e.event("", last)
	e.raw("", []byte("[DONE]"))
}
