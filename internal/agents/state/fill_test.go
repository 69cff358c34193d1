//go:build linux

package state

import (
	"encoding/json"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/policy"
)

// TestValuesInFiles: no name of a directory adds a setting to a file of a preset.
func TestValuesInFiles(t *testing.T) {
	for _, dir := range []string{"/w", "/w/\"\nsandbox_mode = \"x", `/w/\`, `/w/"`, `"/w\"`, "/w/'", "/w/\x7f\x1b\u2028é&<", "/w/${PWD}"} {
		a := &Agent{plan: &policy.Agent{Files: []policy.AgentFile{
			{Path: "/a.json", Content: `{"dir": "${PWD}", "other": 1}`},
			{Path: "/a.toml", Content: "[projects.\"${PWD}\"]\nliteral = '${PWD}'\n"},
			{Path: "/b.json", Content: `{"dir": "${PWD}"}`, Merge: true},
			{Path: "/none", Content: "${NONE}"},
		}}}
		spec := boundary.Spec{Plan: policy.Plan{Env: []policy.Env{{Name: "PWD", Value: dir}}}}
		if err := a.AddTo(&spec); err != nil {
			t.Fatal(err)
		}
		files := map[string]string{}
		for _, f := range spec.Files {
			files[f.Path] = string(f.Content)
		}
		for _, name := range []string{"/a.json", "/b.json"} {
			var got struct{ Dir string }
			if err := json.Unmarshal([]byte(files[name]), &got); err != nil || got.Dir != dir {
				t.Errorf("%q: %v, %s", dir, err, files[name])
			}
		}
		_, line, _ := strings.Cut(files["/a.toml"], "literal = ")
		if strings.Count(files["/a.toml"], "\n") != 2 || strings.Count(line, "'") != 2 || strings.Contains(files["/a.toml"], "\x7f") {
			t.Errorf("%q: %s", dir, files["/a.toml"])
		}
		if _, ok := files["/none"]; ok {
			t.Error("there is a file whose variable is not set")
		}
	}
}
