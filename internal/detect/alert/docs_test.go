package alert

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/policy"
)

// TestDocument reads docs/alerts.md: each policy in it is one, and has sinks.
func TestDocument(t *testing.T) {
	data, err := os.ReadFile("../../../docs/alerts.md")
	if err != nil {
		t.Fatal(err)
	}
	policies := 0
	for i, block := range strings.Split(string(data), "\n```") {
		text, ok := strings.CutPrefix(block, "yaml\n")
		if i%2 == 0 || !ok || !strings.HasPrefix(text, "version:") {
			continue
		}
		policies++
		f, err := policy.Parse("example", "/home/u", []byte(text))
		if err != nil || len(f.Entries) == 0 {
			t.Errorf("%v in\n%s", err, text)
		}
		for _, e := range f.Entries {
			if e.Sink == nil {
				t.Errorf("%s is no sink", e.Key)
				continue
			}
			s := *e.Sink
			s.Headers, s.Secret, s.Authority = "", "", "" // there are no such files here
			if s.Kind == "file" {
				s.Address = filepath.Join(t.TempDir(), "alerts.jsonl")
			}
			if _, err := newSink(s, Options{Terminal: func(string) {}}); err != nil {
				t.Errorf("%s: %v", e.Value, err)
			}
		}
	}
	if policies == 0 {
		t.Error("no policy was found")
	}
}
