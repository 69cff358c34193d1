package model

import (
	"encoding/json"
	"fmt"
)

// anthropic is the Messages API.
type anthropic struct{}

// messagesRequest holds the fields of a request that are read.
type messagesRequest struct {
	Model    string          `json:"model"`
	Stream   bool            `json:"stream"`
	System   json.RawMessage `json:"system"`
	Messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	Tools []struct {
		Name        string          `json:"name"`
		Type        string          `json:"type"`
		Description string          `json:"description"`
		Schema      json.RawMessage `json:"input_schema"`
		Deferred    bool            `json:"defer_loading"`
	} `json:"tools"`
	Choice struct {
		Type string `json:"type"`
		Name string `json:"name"`
	} `json:"tool_choice"`
	Output struct {
		Format struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"format"`
	} `json:"output_config"`
	Format struct {
		Schema json.RawMessage `json:"schema"`
	} `json:"output_format"`
}

func (anthropic) read(body []byte, _ string) (*request, error) {
	var in messagesRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, fmt.Errorf("reading the request: %w", err)
	}
	q := &request{dialect: "anthropic", model: in.Model, stream: in.Stream, system: contentText(in.System)}
	if in.Choice.Type == "tool" {
		q.forced = in.Choice.Name
	}
	if q.schema = in.Output.Format.Schema; q.schema == nil {
		q.schema = in.Format.Schema
	}
	for _, t := range in.Tools {
		one := tool{name: t.Name, schema: t.Schema, about: t.Description, deferred: t.Deferred}
		if t.Type != "" && t.Type != "custom" && t.Schema == nil {
			one.kind = foreign
		}
		q.tools = append(q.tools, one)
	}
	for _, m := range in.Messages {
		for _, b := range blocks(m.Content) {
			q.addBlock(m.Role, b)
		}
	}
	return q, nil
}

// addBlock adds a content block of the Messages API.
func (q *request) addBlock(role string, b block) {
	switch {
	case b.Type == "tool_use":
		q.items = append(q.items, item{part: called, id: b.ID, name: b.Name, text: string(b.Input)})
	case b.Type == "tool_result":
		q.items = append(q.items, item{part: result, id: b.ToolUseID, text: contentText(b.Content), bad: b.IsError})
	case b.Text == "":
	case role == "assistant":
		q.items = append(q.items, item{part: spoken, text: b.Text})
	case role == "user":
		q.items = append(q.items, item{part: prompt, text: b.Text})
	default: // newer agents also send system messages within the conversation
		q.system += "\n" + b.Text
	}
}

type object = map[string]any

func stopReason(a answer) string {
	if len(a.calls) > 0 {
		return "tool_use"
	}
	return "end_turn"
}

// message is the envelope of an answer.
func (anthropic) message(q *request, id string) object {
	return object{"id": "msg_" + id, "type": "message", "role": "assistant", "model": q.model, "content": []any{},
		"stop_reason": nil, "stop_sequence": nil, "usage": object{"input_tokens": 10, "output_tokens": 1}}
}

func (d anthropic) whole(q *request, a answer, id string) any {
	content := []any{}
	if a.text != "" {
		content = append(content, object{"type": "text", "text": a.text})
	}
	for _, c := range a.calls {
		content = append(content, object{"type": "tool_use", "id": c.id, "name": c.tool.fullName(), "input": c.args})
	}
	m := d.message(q, id)
	m["content"], m["stop_reason"] = content, stopReason(a)
	return m
}

func (d anthropic) stream(e *sse, q *request, a answer, id string) {
	event := func(name string, v object) {
		v["type"] = name
		e.event(name, v)
	}
	event("message_start", object{"message": d.message(q, id)})
	index := 0
	if a.text != "" {
		event("content_block_start", object{"index": 0, "content_block": object{"type": "text", "text": ""}})
		e.tokens(a.text, e.template("content_block_delta", object{"type": "content_block_delta", "index": 0, "delta": object{"type": "text_delta", "text": pieceMark}}))
		event("content_block_stop", object{"index": 0})
		index++
	}
	for _, c := range a.calls {
		event("content_block_start", object{"index": index, "content_block": object{"type": "tool_use", "id": c.id, "name": c.tool.fullName(), "input": object{}}})
		e.tokens(jsonText(c.args), e.template("content_block_delta", object{"type": "content_block_delta", "index": index, "delta": object{"type": "input_json_delta", "partial_json": pieceMark}}))
		event("content_block_stop", object{"index": index})
		index++
	}
	event("message_delta", object{"delta": object{"stop_reason": stopReason(a), "stop_sequence": nil}, "usage": object{"output_tokens": tokensOf(a)}})
	event("message_stop", object{})
}

// tokensOf estimates the number of tokens of an answer.
func tokensOf(a answer) int {
	n := len(a.text)
	for _, c := range a.calls {
		n += len(c.text) + len(jsonText(c.args))
	}
	return n/tokenBytes + 1
}
