package model

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// recorded is one request of a real agent, and its answer.
type recorded struct {
	Path    string          `json:"path"`
	Request json.RawMessage `json:"request"`
	Answer  map[string]any  `json:"answer"`
}

// TestRecordedRequests answers the requests that real agents sent when they
// played testdata/recorded.yaml: one file for each agent and version, with the
// first requests of each kind. They are cut to what the answer depends on.
func TestRecordedRequests(t *testing.T) {
	text, err := os.ReadFile("testdata/recorded.yaml")
	if err != nil {
		t.Fatal(err)
	}
	scripts, err := Load(text, "recorded.yaml")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("testdata/wire/*.jsonl")
	if err != nil || len(files) < 12 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".jsonl"), func(t *testing.T) {
			for i, r := range readRecorded(t, file) {
				var wire bytes.Buffer
				s := New(Options{Scripts: scripts, Wire: &wire})
				if w := post(s, r.Path, string(r.Request)); w.Code != http.StatusOK {
					t.Fatalf("line %d: %d %s", i+1, w.Code, w.Body)
				}
				_, line, _ := strings.Cut(strings.TrimSpace(wire.String()), "\n")
				got := parsed(t, line)
				for _, key := range []string{"time", "number", "kind", "dialect"} {
					delete(got, key)
				}
				if !reflect.DeepEqual(got, r.Answer) {
					t.Errorf("line %d: got\n%s\nwant\n%s", i+1, jsonText(got), jsonText(r.Answer))
				}
			}
		})
	}
}

func readRecorded(t *testing.T, file string) []recorded {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []recorded
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r recorded
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	if lines.Err() != nil || len(all) == 0 {
		t.Fatalf("%d lines, %v", len(all), lines.Err())
	}
	return all
}
