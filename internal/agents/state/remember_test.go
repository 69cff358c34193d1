//go:build linux

package state

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"holdfast.dev/holdfast/internal/policy"
)

// What runs at the same time leave does not undo each other; what a run takes back is
// gone, and what is no plain value is never handed on.
func TestMemoryOfRunsAtTheSameTime(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	a := &Agent{plan: &policy.Agent{Preset: "x"}, home: "/h", state: state}
	begin := func() *memory {
		c := &copyRow{AgentCopy: policy.AgentCopy{Path: "/h/.x/a.json", Remember: [][]string{{"theme"}, {"projects", "/w", "trusted"}}}}
		if err := a.recall(c); err != nil {
			t.Fatal(err)
		}
		return c.memory
	}
	end := func(m *memory, text string) {
		object, err := parseJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if m.now = object; m.keep() != nil {
			t.Fatal(m.keep())
		}
	}
	kept := func(want string) {
		t.Helper()
		data, err := os.ReadFile(filepath.Join(state, "remembered", "x", ".x-a.json.json"))
		if err != nil || string(data) != want+"\n" {
			t.Errorf("kept is %s (%v), want %s", data, err, want)
		}
	}
	first, second := begin(), begin()
	end(first, `{"theme": "dark", "projects": {"/w": {"trusted": true}, "/v": {"trusted": true}}, "servers": 1}`)
	kept(`{"projects":{"/w":{"trusted":true}},"theme":"dark"}`)
	end(second, `{"projects": {"/w": {"trusted": false}}}`)
	kept(`{"projects":{"/w":{"trusted":true}},"theme":"dark"}`)
	third := begin()
	if text, _ := json.Marshal(third.values); string(text) != `{"projects":{"/w":{"trusted":true}},"theme":"dark"}` {
		t.Errorf("the next run is given %s", text)
	}
	end(third, `{"theme": {"run": "x"}, "projects": {"/w": {"trusted": false}}}`)
	kept(`{"projects":{"/w":{}},"theme":"dark"}`)
	for _, long := range []string{`["a"]`, `"\u001b[2J"`, `"a\nb"`} {
		end(begin(), `{"theme": `+long+`}`)
		kept(`{"projects":{"/w":{}},"theme":"dark"}`)
	}
}
