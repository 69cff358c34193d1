package model

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// schema holds the fields of a JSON schema that are read.
type schema struct {
	Type        any               `json:"type"` // a name, or a list of names
	Properties  map[string]schema `json:"properties"`
	Required    []string          `json:"required"`
	Enum        []any             `json:"enum"`
	Const       any               `json:"const"`
	Items       *schema           `json:"items"`
	MinItems    int               `json:"minItems"`
	Minimum     *float64          `json:"minimum"`
	AnyOf       []schema          `json:"anyOf"`
	OneOf       []schema          `json:"oneOf"`
	Maximum     *float64          `json:"maximum"`
	Description string            `json:"description"`
}

// maxDepth limits how deep a schema sent by an agent is filled.
const maxDepth = 8

// readSchema reads a schema; an unreadable one is empty.
func readSchema(raw json.RawMessage) (s schema) {
	if len(raw) == 0 || json.Unmarshal(raw, &s) != nil {
		return schema{}
	}
	return s
}

func (s schema) is(name string) bool {
	switch t := s.Type.(type) {
	case string:
		return t == name || len(t) == len(name) && lower(t) == name
	case []any:
		return slices.Contains(t, any(name))
	}
	return false
}

// lower handles the type names of Gemini, which are in capitals.
func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// example is the simplest value that a schema accepts.
func (s schema) example(depth int) any {
	switch {
	case s.Const != nil:
		return s.Const
	case len(s.Enum) > 0:
		return s.Enum[0]
	case depth >= maxDepth:
		return nil
	case len(s.AnyOf) > 0:
		return s.AnyOf[0].example(depth + 1)
	case len(s.OneOf) > 0:
		return s.OneOf[0].example(depth + 1)
	case s.is("string"):
		return "done"
	case s.is("boolean"):
		return false
	case s.is("number"), s.is("integer"):
		if s.Minimum != nil {
			return *s.Minimum
		}
		return 1
	case s.is("array"):
		list := []any{}
		for range min(s.MinItems, 8) {
			if s.Items != nil {
				list = append(list, s.Items.example(depth+1))
			}
		}
		return list
	case s.is("object"), s.Properties != nil:
		return s.complete(map[string]any{}, depth)
	default:
		return "done"
	}
}

// complete adds what a schema requires and args lacks.
func (s schema) complete(args map[string]any, depth int) map[string]any {
	for _, name := range s.Required {
		if _, ok := args[name]; ok {
			continue
		}
		if p, ok := s.Properties[name]; ok {
			args[name] = p.example(depth + 1)
		}
	}
	return args
}

// fill returns args without those that the schema does not know, and with those
// that it requires added.
func fill(raw json.RawMessage, args map[string]any) map[string]any {
	s := readSchema(raw)
	if len(s.Properties) == 0 {
		return args
	}
	maps.DeleteFunc(args, func(name string, _ any) bool {
		_, ok := s.Properties[name]
		return !ok
	})
	return s.complete(args, 0)
}

// requiredArguments lists the arguments without which a call does not do its operation. Any
// one of a group is enough.
var requiredArguments = map[Op][][]string{
	Shell: {{"command"}}, Read: {{"path"}}, Write: {{"path"}, {"content"}}, Edit: {{"path"}, {"old"}, {"new"}},
	Fetch: {{"url", "prompt"}}, Spawn: {{"prompt"}},
}

// fitArguments converts the arguments of a step to the names and types of the tool's
// schema.
func fitArguments(t tool, s Step, given map[string]any) (map[string]any, error) {
	sch := readSchema(t.schema)
	args, set := map[string]any{}, map[string]bool{}
	if verb, ok := verbs[s.Op]; ok && len(sch.Properties["command"].Enum) > 0 {
		if !slices.Contains(sch.Properties["command"].Enum, any(verb)) {
			return nil, errNone
		}
		args["command"] = verb
	}
	for _, role := range slices.Sorted(maps.Keys(given)) {
		for _, name := range aliases[role] {
			p, ok := sch.Properties[name]
			if !ok && len(sch.Properties) > 0 || args[name] != nil {
				continue
			}
			args[name], set[role] = p.shape(given[role], t), true
			break
		}
	}
	for _, group := range requiredArguments[s.Op] {
		if !slices.ContainsFunc(group, func(role string) bool { return given[role] == nil || set[role] }) && given["patch"] == nil {
			return nil, errNone
		}
	}
	if given["patch"] != nil && !set["patch"] {
		return nil, errNone
	}
	switch s.Op {
	case Shell:
		if err := setEscalation(sch, s, args); err != nil {
			return nil, err
		}
		setWait(sch, s, args)
	case Spawn:
		setForeground(sch, s, args)
	}
	return sch.complete(args, 0), nil
}

// The time that a command may take. Without it some agents stop or leave a
// command after seconds, and installing a package takes minutes.
const (
	patienceSeconds = 300
	yieldMillis     = 30000 // Codex's maximum; after that the agent is asked to wait
)

// setWait sets how long to wait for a command.
func setWait(sch schema, s Step, args map[string]any) {
	if s.Background {
		if m, ok := sch.Properties["mode"]; ok && slices.Contains(m.Enum, any("async")) {
			args["mode"] = "async"
		}
		return
	}
	for name, value := range map[string]int{"yield_time_ms": yieldMillis, "timeout_ms": patienceSeconds * 1000,
		"timeout": patienceSeconds * 1000, "initial_wait": patienceSeconds} {
		p, ok := sch.Properties[name]
		if !ok || !p.is("number") && !p.is("integer") {
			continue
		}
		if name == "timeout" && strings.Contains(p.Description, "second") && !strings.Contains(p.Description, "millisecond") && !strings.Contains(p.Description, "ms") {
			value = patienceSeconds
		}
		if p.Maximum != nil {
			value = min(value, int(*p.Maximum))
		}
		args[name] = value
	}
}

// setForeground makes the agent wait for its sub-agent, unless the step says not to.
func setForeground(sch schema, s Step, args map[string]any) {
	if p, ok := sch.Properties["run_in_background"]; ok && p.is("boolean") {
		args["run_in_background"] = s.Background
	}
	mode := "sync"
	if s.Background {
		mode = "background"
	}
	if slices.Contains(sch.Properties["mode"].Enum, any(mode)) {
		args["mode"] = mode
	}
	if _, ok := sch.Properties["fork_turns"]; ok && slices.Contains(sch.Required, "task_name") {
		args["fork_turns"] = "none" // else the child would inherit the parent's prompt
	}
}

// setEscalation asks to leave the agent's own sandbox, if the tool has an argument for
// it.
func setEscalation(sch schema, s Step, args map[string]any) error {
	if !s.Escalate {
		return nil
	}
	for _, e := range escalations {
		if _, ok := sch.Properties[e.argument]; ok {
			for name, v := range e.values {
				if _, ok := sch.Properties[name]; ok {
					args[name] = v
				}
			}
			return nil
		}
	}
	return errNone
}

// shape converts a value to the type that the property has.
func (s schema) shape(v any, t tool) any {
	if !s.is("array") || s.is("string") {
		return v
	}
	if t.name == "shell" || t.name == "container.exec" {
		return []any{"bash", "-lc", v} // a single command, as an argument vector
	}
	if s.Items != nil && s.Items.is("object") {
		return []any{s.Items.complete(map[string]any{}, 1)}
	}
	return []any{v}
}
