package model

import "testing"

// geminiAgent speaks the Gemini API.
type geminiAgent struct{}

func (geminiAgent) path(stream bool) string {
	if stream {
		return "/v1beta/models/m:streamGenerateContent?alt=sse"
	}
	return "/v1beta/models/m:generateContent"
}

func (geminiAgent) body(prompts []string, history []exchange, tools []map[string]any, _ bool) map[string]any {
	var offered, contents list
	for _, tool := range tools {
		offered = append(offered, object{"name": tool["name"], "parametersJsonSchema": tool["schema"]})
	}
	for _, p := range prompts {
		contents = append(contents, object{"role": "user", "parts": list{object{"text": p}}})
	}
	for _, e := range history {
		var use, results list
		if e.text != "" {
			use = append(use, object{"text": e.text})
		}
		for _, c := range e.calls {
			use = append(use, object{"functionCall": object{"id": c.ID, "name": c.Name, "args": c.Args}, "thoughtSignature": signature})
			results = append(results, object{"functionResponse": object{"id": c.ID, "name": c.Name, "response": object{"output": c.Result}}})
		}
		contents = append(contents, object{"role": "model", "parts": use})
		if len(results) > 0 {
			contents = append(contents, object{"role": "user", "parts": results})
		}
	}
	return object{"contents": contents, "tools": list{object{"functionDeclarations": offered}}, "systemInstruction": object{"parts": list{object{"text": "be good"}}}}
}

func (a geminiAgent) whole(t testing.TB, data []byte) exchange {
	return a.streamed(t, []sseEvent{{data: parsed(t, string(data))}})
}

func (geminiAgent) streamed(t testing.TB, events []sseEvent) (e exchange) {
	for i, v := range events {
		candidate := get[map[string]any](t, v.data, "candidates", 0)
		for _, one := range get[list](t, candidate, "content", "parts") {
			p := one.(map[string]any)
			if text, ok := p["text"].(string); ok {
				e.text += text
				continue
			}
			get[string](t, p, "thoughtSignature")
			c := get[map[string]any](t, p, "functionCall")
			e.calls = append(e.calls, madeCall{ID: get[string](t, c, "id"), Name: get[string](t, c, "name"), Kind: "function", Args: get[map[string]any](t, c, "args")})
		}
		if reason, ok := candidate["finishReason"].(string); ok != (i == len(events)-1) || ok && reason != "STOP" {
			t.Fatalf("finished with %q at %d of %d", reason, i, len(events))
		}
		get[float64](t, v.data, "usageMetadata", "totalTokenCount")
	}
	return e
}
