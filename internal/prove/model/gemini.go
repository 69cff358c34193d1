package model

import (
	"encoding/json"
	"fmt"
	"strings"
)

// gemini is the Gemini API, generateContent and streamGenerateContent.
type gemini struct{}

type geminiFunction struct {
	ID       string          `json:"id"`
	Name     string          `json:"name"`
	Args     json.RawMessage `json:"args"`
	Response json.RawMessage `json:"response"`
}

type geminiContent struct {
	Role  string `json:"role"`
	Parts []struct {
		Text     string          `json:"text"`
		Thought  bool            `json:"thought"`
		Call     *geminiFunction `json:"functionCall"`
		Response *geminiFunction `json:"functionResponse"`
	} `json:"parts"`
}

// generateRequest holds the fields of a request that are read.
type generateRequest struct {
	Contents []geminiContent `json:"contents"`
	System   geminiContent   `json:"systemInstruction"`
	Tools    []struct {
		Functions []struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Parameters  json.RawMessage `json:"parameters"`
			Schema      json.RawMessage `json:"parametersJsonSchema"`
		} `json:"functionDeclarations"`
	} `json:"tools"`
	Config struct {
		Schema     json.RawMessage `json:"responseSchema"`
		JSONSchema json.RawMessage `json:"responseJsonSchema"`
	} `json:"generationConfig"`
}

func (gemini) read(body []byte, path string) (*request, error) {
	var in generateRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, fmt.Errorf("reading the request: %w", err)
	}
	name, verb, _ := strings.Cut(path[strings.LastIndexByte(path, '/')+1:], ":")
	q := &request{dialect: "gemini", model: name, stream: verb == "streamGenerateContent", schema: in.Config.JSONSchema}
	if q.schema == nil {
		q.schema = in.Config.Schema
	}
	for _, p := range in.System.Parts {
		q.system += p.Text + "\n"
	}
	for _, t := range in.Tools {
		for _, f := range t.Functions {
			one := tool{name: f.Name, schema: f.Schema, about: f.Description}
			if one.schema == nil {
				one.schema = f.Parameters
			}
			q.tools = append(q.tools, one)
		}
	}
	for _, c := range in.Contents {
		q.addParts(c)
	}
	return q, nil
}

// addParts adds a content of the Gemini API.
func (q *request) addParts(c geminiContent) {
	for _, p := range c.Parts {
		switch {
		case p.Call != nil:
			q.items = append(q.items, item{part: called, id: p.Call.ID, name: p.Call.Name, text: string(p.Call.Args)})
		case p.Response != nil:
			text, bad := geminiResult(p.Response.Response)
			q.items = append(q.items, item{part: result, id: p.Response.ID, name: p.Response.Name, text: text, bad: bad})
		case p.Text == "" || p.Thought:
		case c.Role == "model":
			q.items = append(q.items, item{part: spoken, text: p.Text})
		default:
			q.items = append(q.items, item{part: prompt, text: p.Text})
		}
	}
}

// geminiResult is the text of a response object: its output or error, or else all
// of it.
func geminiResult(raw json.RawMessage) (text string, bad bool) {
	var r map[string]json.RawMessage
	if json.Unmarshal(raw, &r) != nil {
		return string(raw), false
	}
	for _, name := range []string{"error", "output"} {
		var s string
		if json.Unmarshal(r[name], &s) == nil && s != "" {
			return s, name == "error"
		}
	}
	return string(raw), false
}

// signature is in the place of Gemini's thought signature; agents only send it
// back.
const signature = "aG9sZGZhc3Q="

// chunk is one part of an answer.
func (gemini) chunk(q *request, parts []any, reason string, a answer) object {
	n := tokensOf(a)
	candidate := object{"index": 0, "content": object{"role": "model", "parts": parts}}
	if reason != "" {
		candidate["finishReason"] = reason
	}
	return object{"candidates": []any{candidate}, "modelVersion": q.model,
		"usageMetadata": object{"promptTokenCount": 10, "candidatesTokenCount": n, "totalTokenCount": 10 + n}}
}

func geminiCalls(a answer) []any {
	var parts []any
	for _, c := range a.calls {
		parts = append(parts, object{"functionCall": object{"id": c.id, "name": c.tool.fullName(), "args": c.args}, "thoughtSignature": signature})
	}
	return parts
}

func (d gemini) whole(q *request, a answer, _ string) any {
	parts := []any{}
	if a.text != "" {
		parts = append(parts, object{"text": a.text})
	}
	return d.chunk(q, append(parts, geminiCalls(a)...), "STOP", a)
}

func (d gemini) stream(e *sse, q *request, a answer, _ string) {
	e.tokens(a.text, e.template("", d.chunk(q, []any{object{"text": pieceMark}}, "", a)))
	parts := geminiCalls(a)
	if len(parts) == 0 {
		parts = []any{object{"text": ""}}
	}
	e.event("", d.chunk(q, parts, "STOP", a))
}
