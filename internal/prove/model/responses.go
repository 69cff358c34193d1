package model

import (
	"encoding/json"
	"fmt"
)

// responses is the Responses API of OpenAI.
type responses struct{}

// responsesTool is a tool, or a namespace of tools.
type responsesTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Tools       []responsesTool `json:"tools"`
	Deferred    bool            `json:"defer_loading"`
}

// responsesItem is one item of the input.
type responsesItem struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	CallID    string          `json:"call_id"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Namespace string          `json:"namespace"`
	Arguments json.RawMessage `json:"arguments"`
	Input     string          `json:"input"`
	Output    json.RawMessage `json:"output"`
	Tools     []responsesTool `json:"tools"`
}

func (responses) read(body []byte, _ string) (*request, error) {
	var in struct {
		Model        string          `json:"model"`
		Stream       bool            `json:"stream"`
		Instructions string          `json:"instructions"`
		Input        json.RawMessage `json:"input"`
		Tools        []responsesTool `json:"tools"`
		Choice       json.RawMessage `json:"tool_choice"`
		Text         struct {
			Format struct {
				Schema json.RawMessage `json:"schema"`
			} `json:"format"`
		} `json:"text"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, fmt.Errorf("reading the request: %w", err)
	}
	q := &request{dialect: "responses", model: in.Model, stream: in.Stream, system: in.Instructions, schema: in.Text.Format.Schema, forced: chosen(in.Choice)}
	q.offer("", in.Tools)
	if len(in.Input) > 0 && in.Input[0] == '"' {
		q.items = append(q.items, item{part: prompt, text: contentText(in.Input)})
		return q, nil
	}
	var items []responsesItem
	if len(in.Input) > 0 {
		if err := json.Unmarshal(in.Input, &items); err != nil {
			return nil, fmt.Errorf("reading the input: %w", err)
		}
	}
	for _, it := range items {
		q.addItem(it)
	}
	return q, nil
}

// offer adds tools. Agents do not know namespaces within namespaces.
func (q *request) offer(namespace string, tools []responsesTool) {
	for _, t := range tools {
		one := tool{name: t.Name, namespace: namespace, schema: t.Parameters, about: t.Description, deferred: t.Deferred}
		switch t.Type {
		case "namespace":
			if namespace == "" {
				q.offer(t.Name, t.Tools)
			}
			continue
		case "function", "":
		case "custom":
			one.kind = custom
		case "local_shell":
			one.name, one.kind = t.Type, localShell
		case "tool_search":
			one.name, one.kind = t.Type, toolSearch
		default:
			one.kind = foreign
			if one.name == "" {
				one.name = t.Type
			}
		}
		q.tools = append(q.tools, one)
		if one.kind == custom && one.name == executor {
			q.tools = append(q.tools, declared(one.about)...)
		}
	}
}

// addItem adds an item of the input.
func (q *request) addItem(it responsesItem) {
	one := item{id: it.CallID, name: it.Name}
	switch it.Type {
	case "function_call", "custom_tool_call", "local_shell_call", "tool_search_call":
		one.part, one.text = called, it.Input+string(it.Arguments)
		if one.id == "" {
			one.id = it.ID
		}
	case "function_call_output", "custom_tool_call_output", "local_shell_call_output":
		one.part, one.text = result, outputText(it.Output)
	case "tool_search_output":
		// From here on, the tools that were found can be called.
		before := len(q.tools)
		q.offer("", it.Tools)
		one.part, one.name = result, it.Type
		for i := range q.tools[before:] {
			t := &q.tools[before+i]
			t.deferred = false
			one.text += t.fullName() + "\n"
		}
	case "additional_tools":
		q.offer("", it.Tools)
		return
	case "agent_message": // between Codex and its sub-agents
		one.part, one.text = prompt, contentText(it.Content)
	case "message", "":
		one.text = contentText(it.Content)
		switch it.Role {
		case "user":
			one.part = prompt
		case "assistant":
			one.part = spoken
		default:
			q.system += "\n" + one.text
			return
		}
	default:
		return
	}
	q.items = append(q.items, one)
}

// outputText is the result of a call: a text, content blocks, or an object with
// content.
func outputText(raw json.RawMessage) string {
	if len(raw) > 0 && raw[0] == '{' {
		var o struct {
			Content json.RawMessage `json:"content"`
		}
		if json.Unmarshal(raw, &o) == nil && len(o.Content) > 0 {
			return contentText(o.Content)
		}
		return string(raw)
	}
	return contentText(raw)
}

// output lists the items of an answer.
func (responses) output(a answer, id string) []object {
	var all []object
	if a.text != "" {
		all = append(all, object{"type": "message", "id": "msg_" + id, "status": "completed", "role": "assistant",
			"content": []any{object{"type": "output_text", "text": a.text, "annotations": []any{}}}})
	}
	for _, c := range a.calls {
		one := object{"id": "item_" + c.id, "call_id": c.id, "status": "completed", "name": c.tool.name}
		switch c.tool.kind {
		case custom:
			one["type"], one["input"] = "custom_tool_call", c.text
		case toolSearch:
			delete(one, "name")
			one["type"], one["execution"], one["arguments"] = "tool_search_call", "client", c.args
		case localShell:
			delete(one, "name")
			one["type"], one["action"] = "local_shell_call", object{"type": "exec", "command": c.argv, "env": object{}}
		default:
			one["type"], one["arguments"] = "function_call", jsonText(c.args)
		}
		if c.tool.namespace != "" {
			one["namespace"] = c.tool.namespace
		}
		all = append(all, one)
	}
	return all
}

// response is the envelope of an answer.
func (responses) response(q *request, id, status string, output []object) object {
	if output == nil {
		output = []object{}
	}
	return object{"id": "resp_" + id, "object": "response", "created_at": created, "status": status, "model": q.model, "output": output,
		"parallel_tool_calls": true, "error": nil, "incomplete_details": nil}
}

func (responses) usage(a answer) object {
	n := tokensOf(a)
	return object{"input_tokens": 10, "input_tokens_details": object{"cached_tokens": 0}, "output_tokens": n,
		"output_tokens_details": object{"reasoning_tokens": 0}, "total_tokens": 10 + n}
}

func (d responses) whole(q *request, a answer, id string) any {
	r := d.response(q, id, "completed", d.output(a, id))
	r["usage"] = d.usage(a)
	return r
}

func (d responses) stream(e *sse, q *request, a answer, id string) {
	sequence := 0
	event := func(name string, v object) {
		v["type"], v["sequence_number"] = name, sequence
		sequence++
		e.event(name, v)
	}
	event("response.created", object{"response": d.response(q, id, "in_progress", nil)})
	output := d.output(a, id)
	for i, one := range output {
		event("response.output_item.added", object{"output_index": i, "item": begun(one)})
		d.body(e, event, i, one)
		event("response.output_item.done", object{"output_index": i, "item": one})
	}
	r := d.response(q, id, "completed", output)
	r["usage"] = d.usage(a)
	event("response.completed", object{"response": r})
}

// begun is an item before its content has arrived.
func begun(one object) object {
	start := object{}
	for k, v := range one {
		start[k] = v
	}
	start["status"] = "in_progress"
	for k, v := range map[string]any{"content": []any{}, "arguments": "", "input": ""} {
		if _, ok := start[k]; ok {
			start[k] = v
		}
	}
	return start
}

// body streams the content of one item.
func (responses) body(e *sse, event func(string, object), i int, one object) {
	base := func(more object) object {
		v := object{"output_index": i, "item_id": one["id"]}
		for k, x := range more {
			v[k] = x
		}
		return v
	}
	delta := func(name, field string, text string) {
		e.tokens(text, func(piece string) { event(name+".delta", base(object{"delta": piece})) })
		event(name+".done", base(object{field: text}))
	}
	switch one["type"] {
	case "message":
		content := one["content"].([]any)[0].(object)
		text := content["text"].(string)
		event("response.content_part.added", base(object{"content_index": 0, "part": object{"type": "output_text", "text": "", "annotations": []any{}}}))
		e.tokens(text, func(piece string) {
			event("response.output_text.delta", base(object{"content_index": 0, "delta": piece}))
		})
		event("response.output_text.done", base(object{"content_index": 0, "text": text}))
		event("response.content_part.done", base(object{"content_index": 0, "part": content}))
	case "function_call":
		delta("response.function_call_arguments", "arguments", one["arguments"].(string))
	case "custom_tool_call":
		delta("response.custom_tool_call_input", "input", one["input"].(string))
	}
}
