package detect

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"
)

const whole = `- id: acme-x
  title: T
  severity: high
  technique: [T1083]
  explanation: E
  false_positives: F
  actions: [file.open]
  condition: object == "/x"
  tests:
    raises: [{action: file.open, object: /x}]
    honest: [{action: file.open, object: /y}]
`

func TestLoadErrorsSayWhere(t *testing.T) {
	change := func(old, new string) string { return strings.Replace(whole, old, new, 1) }
	correlated := change("  actions: [file.open]\n  condition: object == \"/x\"\n", "  correlation: {CORRELATION}\n")
	with := func(c string) string { return strings.Replace(correlated, "CORRELATION", c, 1) }
	for _, tt := range []struct{ name, text, want string }{
		{"no list", "id: x\n", "f.yaml:1: a file of rules is a list"},
		{"no YAML", "- id: [\n", "f.yaml:"},
		{"unknown key", change("title:", "titel:"), `f.yaml:2: "titel" is not a key of a rule`},
		{"a key twice", change("  title: T\n", "  title: T\n  title: U\n"), "f.yaml:"},
		{"id", change("acme-x", "Acme X"), `f.yaml:1: "Acme X" is not a valid id`},
		{"id of a built-in rule", change("acme-x", "credential-denied"), "f.yaml:1: the rule credential-denied is already defined in the built-in rules"},
		{"id twice", whole + whole, "f.yaml:12: the rule acme-x is already defined in f.yaml:1"},
		{"severity", change("high", "grave"), `f.yaml:3: "grave" is not a severity`},
		{"technique", change("T1083", "X1"), `f.yaml:4: "X1" is not a technique`},
		{"no explanation", change("  explanation: E\n", ""), "f.yaml:1: the rule acme-x has no explanation"},
		{"action", change("[file.open]", "[file.opened]"), `f.yaml:7: "file.opened" is not an action`},
		{"condition", change(`object == "/x"`, `objct == "/x"`), "f.yaml:8: "},
		{"condition over two lines", change(`object == "/x"`, "|\n    true ||\n    objct == \"/x\""), "f.yaml:10: "},
		{"condition that is no question", change(`object == "/x"`, `object`), "f.yaml:8: "},
		{"mark", change("  condition", "  marks: [credentials]\n  condition"), `f.yaml:8: "credentials" is not a mark`},
		{"mark of a program at a file", change("  condition", "  marks: [shell]\n  condition"), `f.yaml:8: "shell" is not a mark`},
		{"verdict", change("  condition", "  verdict: no\n  condition"), `"no" is not a verdict`},
		{"key", change("  condition", "  key: [inode]\n  condition"), `f.yaml:8: "inode" is not a field`},
		{"no honest session", change("    honest: [{action: file.open, object: /y}]\n", ""), "f.yaml:1: the rule acme-x has no tests"},
		{"event of a test", change("{action: file.open, object: /y}", "{action: file.opn}"), `f.yaml:11: "file.opn" is not an action`},
		{"type", with("type: sum, window: 1m"), `"sum" is not a type`},
		{"no window", with("type: event_count, at_least: 3"), "it has no window"},
		{"window", with("type: event_count, window: soon"), "a duration such as"},
		{"count", with("type: event_count, window: 1m, at_least: 100000"), "a number from 1 to 256"},
		{"field of event_count", with("type: event_count, window: 1m, at_least: 3, field: object"), "value_count needs field"},
		{"one step", with("type: temporal, window: 1m, steps: [{rules: [mount]}]"), "two to 6 steps"},
		{"step that is no rule", with("type: temporal, window: 1m, steps: [{rules: [mount]}, {rules: [nothing]}]"), `"nothing" is not a rule`},
		{"step that is a sequence", with("type: temporal, window: 1m, steps: [{rules: [mount]}, {rules: [escape-chain]}]"), `"escape-chain" is not a rule`},
		{"alias", "- &a {id: x}\n- *a\n", "f.yaml:"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := loadDir(fstest.MapFS{"f.yaml": {Data: []byte(tt.text)}, "ignored.txt": {Data: []byte("x")}}, ".")
			var bad *LoadError
			if !errors.As(err, &bad) || !strings.Contains(err.Error(), tt.want) || bad.Hint() == "" {
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
		})
	}
}

func TestLoadRules(t *testing.T) {
	second := strings.Replace(whole, "acme-x", "acme-y", 1)
	rules, err := loadDir(fstest.MapFS{"a.yaml": {Data: []byte(whole)}, "b.yaml": {Data: []byte(second)}, "empty.yaml": {}}, ".")
	if err != nil || len(rules) != 2 || rules[1].Where != "b.yaml:1" {
		t.Fatalf("got %+v, %v", rules, err)
	}
	if failed, err := Try(rules); err != nil || len(failed) != 0 {
		t.Errorf("tests failed: %v %v", failed, err)
	}
	if _, err := New(Config{Rules: rules}); err != nil {
		t.Error(err)
	}
	if _, err := New(Config{Rules: append(rules, rules[0])}); err == nil {
		t.Error("the same rule was taken twice")
	}
}

func FuzzParseRules(f *testing.F) {
	f.Add(whole)
	f.Add("- id: x\n  correlation: {type: temporal, steps: [{rules: []}, {}]}\n")
	f.Add("- {tests: {raises: [{times: 4999, action: file.open}]}}")
	f.Add("- &a [*a]")
	f.Fuzz(func(t *testing.T, text string) {
		rules, err := ParseRules("f.yaml", []byte(text), builtin())
		if err != nil {
			return
		}
		if _, err := New(Config{Rules: rules}); err != nil {
			t.Errorf("taken by the loader and refused by the engine: %v", err)
		}
	})
}
