//go:build linux

package workspace

import (
	"slices"
	"testing"
)

// Texts under the keys of commands are command lines, in each format of settings.
func TestCommandLines(t *testing.T) {
	for _, tt := range []struct {
		name, file, text string
		want             []string
	}{
		{"JSON, with its arguments", "x.json", `{"a": {"command": "node", "args": ["s.js", "b"]}, "model": "m"}`, []string{"s.js", "b", "s.js b", "node", "node s.js b s.js b"}},
		{"arguments alone", "x.json", `{"args": ["s.js", "b"]}`, []string{"s.js", "b", "s.js b"}},
		{"a command that is a list", "x.json", `{"command": ["node", "s.js"]}`, []string{"node", "s.js", "node s.js"}},
		{"what stands below a key", "x.json", `{"env": {"A": "./a", "B": {"C": "./c"}}}`, []string{"./a", "./c"}},
		{"no command at all", "x.json", `{"model": "m", "list": ["a", "b"], "n": 1}`, nil},
		{"YAML", "x.yaml", "a: ./b\nc: d\n", []string{"a: ./b\n", "c: d\n"}},
		{"YAML by its other name", "x.yml", "a: ./b\n", []string{"a: ./b\n"}},
		{"what is no JSON", "x.json", `{"a": 'b',}`, []string{"a", ": 'b',}", "b", ",}"}},
		{"TOML", "x.toml", "model = \"m\"\ncommand = \"c\"\n", []string{"c", "\n"}},
		{"TOML, a list of several lines", "x.toml", "args = [\n[\"a\"],\n]\nmodel = \"m\"\n", []string{"a", "],\n"}},
		{"TOML, a table under a key, and one that is not", "x.toml", "[x.env]\nA = \"a\"\n[other]\nB = \"b\"\n", []string{"a", "\n"}},
	} {
		if got := commandLines(tt.file, []byte(tt.text)); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
