package hooks

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestInside(t *testing.T) {
	none := func(string) ([]byte, error) { return nil, errors.New("none") }
	for _, tt := range []struct {
		program string
		path    string // of the added file
		known   bool
	}{
		{"/usr/bin/claude", "/etc/claude-code/managed-settings.json", true},
		{"claude", "/etc/claude-code/managed-settings.json", true},
		{"codex", "/etc/codex/requirements.toml", true},
		{"qwen", "/etc/qwen-code/settings.json", true},
		{"gemini", "", true},
		{"copilot", "", true},
		{"opencode", "", true},
		{"bash", "", false},
		{"claude.exe", "", false},
	} {
		name, add, known := Inside(tt.program, hook, none)
		if known != tt.known || known && !strings.HasSuffix(tt.program, name) || (len(add.Files) == 1) != (tt.path != "") {
			t.Errorf("%s: %q %t %+v", tt.program, name, known, add)
			continue
		}
		if tt.path != "" && (add.Files[0].Path != tt.path || !strings.Contains(string(add.Files[0].Content), hook+" hook "+name+" call")) {
			t.Errorf("%s: %s\n%s", tt.program, add.Files[0].Path, add.Files[0].Content)
		}
	}
}

// Settings of the machine stay in force, and unreadable ones are not changed:
// then the agent runs without hooks.
func TestInsideKeepsWhatTheMachineHas(t *testing.T) {
	have := func(string) ([]byte, error) { return []byte(`{"permissions":{"deny":["WebFetch"]}}`), nil }
	_, add, ok := Inside("claude", hook, have)
	var settings struct{ Permissions struct{ Deny []string } }
	if !ok || json.Unmarshal(add.Files[0].Content, &settings) != nil || len(settings.Permissions.Deny) != 1 {
		t.Errorf("%t %+v", ok, add)
	}
	broken := func(string) ([]byte, error) { return []byte(`{`), nil }
	for _, agent := range []string{"claude", "qwen"} {
		if _, _, ok := Inside(agent, hook, broken); ok {
			t.Errorf("%s: broken settings of the machine were replaced", agent)
		}
	}
	if _, _, ok := Inside("codex", hook, have); ok {
		t.Error("codex: requirements of the machine were replaced")
	}
}
