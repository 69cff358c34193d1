package model

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// script reads one script.
func (l loader) script(n *yaml.Node) (Script, error) {
	var s Script
	err := l.fields(n, "a script", map[string]reader{
		"name": func(v *yaml.Node) error {
			if err := l.text(&s.Name)(v); err != nil {
				return err
			}
			if !nameable(s.Name) {
				return l.fail(v, "a name has 1 to %d letters, digits, '-', '_' and '.'", maxName)
			}
			return nil
		},
		"steps": func(v *yaml.Node) error {
			if v.Kind != yaml.SequenceNode || len(v.Content) > maxSteps {
				return l.fail(v, "steps are a list of at most %d", maxSteps)
			}
			for _, c := range v.Content {
				one, err := l.step(c)
				if err != nil {
					return err
				}
				s.Steps = append(s.Steps, one)
			}
			return nil
		},
	})
	switch {
	case err != nil:
		return Script{}, err
	case s.Name == "":
		return Script{}, l.fail(n, "the script has no name")
	case len(s.Steps) == 0:
		return Script{}, l.fail(n, "the script %s has no steps", s.Name)
	case s.Steps[0].Parallel:
		return Script{}, l.fail(n, "the first step of %s has none before it to be parallel to", s.Name)
	}
	return s, nil
}

func nameable(s string) bool {
	return s != "" && len(s) <= maxName && !strings.ContainsFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("-_.", r)
	})
}

// form is how a step of an operation is written.
type form struct {
	main     string   // the field that a single value sets
	required []string // fields without which the step means nothing
	optional []string
}

// formOf returns the form of an operation.
func formOf(op Op) (form, bool) {
	all := map[Op]form{
		Say:          {main: "text", required: []string{"text"}},
		Shell:        {main: "command", required: []string{"command"}, optional: []string{"background", "escalate"}},
		Read:         {main: "path", required: []string{"path"}},
		Write:        {required: []string{"path", "content"}},
		Edit:         {required: []string{"path", "old", "new"}},
		Patch:        {main: "text", optional: []string{"text", "path", "old", "new"}},
		Fetch:        {main: "url", required: []string{"url"}},
		MCP:          {required: []string{"server", "tool"}, optional: []string{"arguments"}},
		Spawn:        {main: "script", required: []string{"script"}},
		Unadvertised: {main: "tool", required: []string{"tool"}, optional: []string{"arguments", "server", "text"}},
		Tool:         {main: "tool", required: []string{"tool"}, optional: []string{"arguments", "text"}},
	}
	f, ok := all[op]
	return f, ok
}

// step reads one step: the operation and its fields.
func (l loader) step(n *yaml.Node) (Step, error) {
	var s Step
	if n.Kind != yaml.MappingNode {
		return s, l.fail(n, "a step names an operation, as in '- shell: git status'")
	}
	var body *yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		_, known := formOf(Op(k.Value))
		switch {
		case k.Value == "parallel":
			if err := l.truth(&s.Parallel)(v); err != nil {
				return s, err
			}
		case !known:
			return s, l.fail(k, "%q is not an operation; the operations are: say, shell, read, write, edit, patch, fetch, mcp, spawn, unadvertised, tool", k.Value)
		case body != nil:
			return s, l.fail(k, "a step has one operation; begin another with '- %s:'", k.Value)
		default:
			s.Op, body = Op(k.Value), v
		}
	}
	switch {
	case body == nil:
		return s, l.fail(n, "a step names an operation, as in '- shell: git status'")
	case s.Op == Say && s.Parallel:
		return s, l.fail(n, "say ends the script: it cannot be parallel to another step")
	}
	return s, l.body(body, &s)
}

// body reads the fields of a step.
func (l loader) body(n *yaml.Node, s *Step) error {
	f, _ := formOf(s.Op)
	table := map[string]reader{
		"command": l.text(&s.Command), "background": l.truth(&s.Background), "escalate": l.truth(&s.Escalate),
		"path": l.text(&s.Path), "content": l.text(&s.Content), "old": l.text(&s.Old), "new": l.text(&s.New),
		"text": l.text(&s.Text), "url": l.text(&s.URL), "server": l.text(&s.Server), "tool": l.text(&s.Tool),
		"arguments": l.arguments(&s.Arguments), "script": l.text(&s.Script),
	}
	if n.Kind == yaml.ScalarNode && f.main != "" {
		return table[f.main](n)
	}
	for key := range table {
		if !slices.Contains(f.required, key) && !slices.Contains(f.optional, key) {
			delete(table, key)
		}
	}
	if err := l.fields(n, "the operation "+string(s.Op), table); err != nil {
		return err
	}
	for _, key := range f.required {
		if !has(n, key) {
			return l.fail(n, "the operation %s needs %q", s.Op, key)
		}
	}
	if s.Op == Patch && s.Text == "" && (s.Path == "" || s.Old == "") {
		return l.fail(n, "a patch needs a text, or path, old and new")
	}
	return nil
}

func has(n *yaml.Node, key string) bool {
	for i := 0; i < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return true
		}
	}
	return false
}
