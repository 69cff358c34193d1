package model

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

const wholeScript = `- name: demo
  steps:
    - shell: git status
    - shell: {command: sleep 9, background: true, escalate: true}
    - read: a.txt
    - write: {path: a.txt, content: "x\n"}
      parallel: true
    - edit: {path: a.txt, old: x, new: y}
    - patch: {path: a.txt, old: y, new: z}
    - fetch: http://example.org/
    - mcp: {server: s, tool: t, arguments: {n: 1, list: [a, true, null]}}
    - spawn: child
    - unadvertised: {tool: hidden, arguments: {x: 1}}
    - tool: {tool: known, text: as it is}
    - say: all done
- name: child
  steps:
    - say: bye
`

func TestLoad(t *testing.T) {
	got, err := Load([]byte(wholeScript), "f.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := []Script{{Name: "demo", Steps: []Step{
		{Op: Shell, Command: "git status"},
		{Op: Shell, Command: "sleep 9", Background: true, Escalate: true},
		{Op: Read, Path: "a.txt"},
		{Op: Write, Path: "a.txt", Content: "x\n", Parallel: true},
		{Op: Edit, Path: "a.txt", Old: "x", New: "y"},
		{Op: Patch, Path: "a.txt", Old: "y", New: "z"},
		{Op: Fetch, URL: "http://example.org/"},
		{Op: MCP, Server: "s", Tool: "t", Arguments: map[string]any{"n": 1, "list": []any{"a", true, nil}}},
		{Op: Spawn, Script: "child"},
		{Op: Unadvertised, Tool: "hidden", Arguments: map[string]any{"x": 1}},
		{Op: Tool, Tool: "known", Text: "as it is"},
		{Op: Say, Text: "all done"},
	}}, {Name: "child", Steps: []Step{{Op: Say, Text: "bye"}}}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %#v\nwant %#v", got, want)
	}
}

func TestLoadErrorsSayWhere(t *testing.T) {
	change := func(old, new string) string { return strings.Replace(wholeScript, old, new, 1) }
	for _, tt := range []struct{ name, text, want string }{
		{"nothing", "", "f.yaml: it has no script"},
		{"no list", "name: x\n", "f.yaml:1: a file of scripts is a list"},
		{"no YAML", "- name: [\n", "f.yaml:"},
		{"unknown key", change("steps:", "step:"), `f.yaml:2: "step" is not a key of a script`},
		{"a key twice", change("  steps:", "  name: two\n  steps:"), "f.yaml:2:"},
		{"name", change("name: demo", "name: a b"), "f.yaml:1: a name has 1 to 64 letters"},
		{"no name", change("- name: demo\n  steps", "- steps"), "f.yaml:1: the script has no name"},
		{"two of a name", change("name: child", "name: demo"), "f.yaml:16: there are two scripts called demo"},
		{"no steps", "- name: x\n", "f.yaml:1: the script x has no steps"},
		{"unknown operation", change("- read:", "- raed:"), `f.yaml:5: "raed" is not an operation`},
		{"two operations", change("    - read: a.txt\n", "    - read: a.txt\n      shell: ls\n"), "f.yaml:6: a step has one operation"},
		{"no operation", change("- read: a.txt", "- {}"), "f.yaml:5: a step names an operation"},
		{"a step that is a word", change("- read: a.txt", "- read"), "f.yaml:5: a step names an operation"},
		{"field of another operation", change("old: x,", "command: x,"), `f.yaml:8: "command" is not a key of the operation edit`},
		{"missing field", change("old: x, ", ""), `f.yaml:8: the operation edit needs "old"`},
		{"no single value", change("- write: {path: a.txt, content: \"x\\n\"}", "- write: a.txt"), "f.yaml:6: the operation write is a mapping"},
		{"patch without anything", change("{path: a.txt, old: y, new: z}", "{path: a.txt}"), "f.yaml:9: a patch needs"},
		{"truth", change("background: true", "background: 1"), "f.yaml:4: expected true or false"},
		{"null", change("- read: a.txt", "- read:"), "f.yaml:5: expected a string here"},
		{"arguments", change("{n: 1, list: [a, true, null]}", "[1]"), "f.yaml:11: arguments are a mapping"},
		{"arguments with numbers for names", change("{n: 1,", "{1: 1,"), "f.yaml:11: expected a name here"},
		{"arguments that are no JSON", change("{n: 1,", "{n: .nan,"), "f.yaml:11: the arguments are not JSON"},
		{"alias", change("{n: 1, list: [a, true, null]}", "{n: &a [1], list: *a}"), "f.yaml:11: aliases are not allowed"},
		{"depth", change("n: 1", "n: "+strings.Repeat("[", 50)+strings.Repeat("]", 50)), "nested too deep"},
		{"child that is not there", change("- spawn: child", "- spawn: chlid"), `f.yaml:1: demo spawns "chlid", which is not a script of this file`},
		{"first step parallel", "- name: x\n  steps:\n    - read: a\n      parallel: true\n", "the first step of x has none before it"},
		{"parallel talk", change("- say: all done", "- say: all done\n      parallel: true"), "f.yaml:15: say ends the script"},
		{"too long", strings.Repeat("# x\n", maxFile/4+1), "f.yaml: it is too long"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Load([]byte(tt.text), "f.yaml")
			var bad *LoadError
			if !errors.As(err, &bad) || !strings.HasPrefix(err.Error(), "f.yaml") || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want %q", err, tt.want)
			}
			if bad.Hint() == "" {
				t.Error("no hint")
			}
		})
	}
}

// TestFormsNameEveryOperation compares the list of forms with the operations.
func TestFormsNameEveryOperation(t *testing.T) {
	for _, op := range []Op{Say, Shell, Read, Write, Edit, Patch, Fetch, MCP, Spawn, Unadvertised, Tool} {
		if _, ok := formOf(op); !ok {
			t.Errorf("%s cannot be written", op)
		}
	}
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte(wholeScript))
	f.Add([]byte("- name: x\n  steps: [{shell: &a ls}, {read: *a}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		scripts, err := Load(data, "f.yaml")
		var bad *LoadError
		if err != nil && !errors.As(err, &bad) {
			t.Fatalf("%T: %v", err, err)
		}
		for _, s := range scripts {
			if s.Name == "" || len(s.Steps) == 0 {
				t.Fatalf("%+v", s)
			}
		}
	})
}
