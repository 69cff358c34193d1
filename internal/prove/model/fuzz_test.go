package model

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"
)

// fuzzed sends arbitrary bodies to one path: there must be an answer, it must be
// JSON or events, and nothing may panic.
func fuzzed(f *testing.F, path string, a agent) {
	tools := append([]map[string]any{with(offer("exec"), "kind", "custom", "about", execAbout), offer("ToolSearch", "query")}, plainTools...)
	for _, stream := range []bool{true, false} {
		history := []exchange{{text: "x", calls: []madeCall{{ID: "call_hf_demo_0_0", Name: "bash", Kind: "function", Args: object{"command": "echo a"}, Result: "a"}}}}
		data, err := json.Marshal(a.body([]string{Marker("demo")}, history, tools, stream))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{"messages":[{"role":"user","content":[["x"]]}],"input":[{"type":"additional_tools","tools":[{}]}],"contents":[{"parts":[{"functionResponse":{"response":7}}]}]}`))
	s := New(Options{Scripts: demo})
	f.Fuzz(func(t *testing.T, data []byte) {
		w := post(s, path, string(data))
		switch {
		case w.Code == http.StatusOK && w.Header().Get("Content-Type") != "application/json":
			readEvents(t, w.Body)
		case w.Code != http.StatusOK && w.Code != http.StatusBadRequest:
			t.Fatalf("%d", w.Code)
		case !json.Valid(w.Body.Bytes()):
			t.Fatalf("no JSON: %s", w.Body)
		}
	})
}

func FuzzMessages(f *testing.F)  { fuzzed(f, "/v1/messages", anthropicAgent{}) }
func FuzzResponses(f *testing.F) { fuzzed(f, "/v1/responses", responsesAgent{}) }
func FuzzChat(f *testing.F)      { fuzzed(f, "/v1/chat/completions", chatAgent{}) }
func FuzzGemini(f *testing.F)    { fuzzed(f, "/v1beta/models/m:streamGenerateContent", geminiAgent{}) }

func FuzzDeclared(f *testing.F) {
	f.Add(execAbout)
	f.Fuzz(func(t *testing.T, about string) {
		for _, tool := range declared(about) {
			if tool.schema != nil && !json.Valid(tool.schema) {
				t.Fatalf("%s", tool.schema)
			}
		}
	})
}

// BenchmarkToken measures the cost of one streamed token.
func BenchmarkToken(b *testing.B) {
	text := ""
	for range 1000 {
		text += "word "
	}
	s := New(Options{Scripts: []Script{{Name: "m", Steps: []Step{{Op: Say, Text: text}}}}, Token: func() time.Duration { return 0 }})
	for name, a := range allAgents() {
		b.Run(name, func(b *testing.B) {
			data, err := json.Marshal(a.body([]string{Marker("m")}, nil, plainTools, true))
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				post(s, a.path(true), string(data))
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1000, "ns/token")
		})
	}
}
