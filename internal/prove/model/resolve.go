package model

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

// resolved is a call with its phase of the step.
type resolved struct {
	call
	phase string
}

// errNone means that this tool cannot do the step, but another may.
var errNone = errors.New("the tool has no argument for it")

// resolve turns a step into a call of a tool that the request offers. After the
// phase that loads a tool, loaded is its result. The error says what is missing,
// as in "no tool for fetch".
func (q *request) resolve(s Step, phase string, loaded Result) (resolved, error) {
	switch s.Op {
	case Unadvertised:
		return resolved{call: q.unadvertised(s)}, nil
	case Tool:
		if t, ok := q.find(s.Tool); ok {
			return resolved{call: q.nest(literalCall(t, s))}, nil
		}
	case MCP:
		if t, ok := q.findMCP(s.Server, s.Tool); ok {
			return resolved{call: q.server(t, s)}, nil
		}
	default:
		if c, ok := q.findOffered(s); ok {
			return resolved{call: c}, nil
		}
	}
	if c, ok := q.load(s, phase, loaded); ok {
		return c, nil
	}
	return resolved{}, errors.New(missingTool(s))
}

func missingTool(s Step) string {
	switch {
	case s.Op == Shell && s.Escalate:
		return "no tool for shell with escalation"
	case s.Op == MCP:
		return "no tool for mcp " + s.Server + " " + s.Tool
	case s.Op == Tool:
		return "no tool for tool " + s.Tool
	}
	return "no tool for " + string(s.Op)
}

// findOffered finds the first offered tool that can do the step.
func (q *request) findOffered(s Step) (call, bool) {
	for _, op := range substitutes(s.Op) {
		for _, name := range names[op] {
			t, ok := q.find(name)
			if !ok || t.kind == foreign || strings.HasPrefix(t.namespace, "mcp") {
				continue // a server's tool, not the agent's own
			}
			if c, err := q.arrange(t, s); err == nil {
				return q.nest(c), true
			}
		}
	}
	return call{}, false
}

// substitutes lists the operations that can replace another.
func substitutes(op Op) []Op {
	switch op {
	case Write, Edit:
		return []Op{op, Patch}
	case Patch:
		return []Op{Patch, Edit}
	default:
		return []Op{op}
	}
}

// literalCall calls a tool with the unchanged arguments of the script.
func literalCall(t tool, s Step) call {
	c := call{tool: t, args: s.Arguments, text: s.Text}
	if c.args == nil {
		c.args = map[string]any{}
	}
	return c
}

// unadvertised calls a tool whether it is offered or not. A text without
// arguments is a call of a custom tool.
func (q *request) unadvertised(s Step) call {
	t, ok := q.find(s.Tool)
	if !ok {
		t = tool{name: s.Tool, namespace: s.Server}
		if s.Text != "" && s.Arguments == nil {
			t.kind = custom
		}
	}
	return q.nest(literalCall(t, s))
}

// arrange makes the call of t that does s.
func (q *request) arrange(t tool, s Step) (call, error) {
	given := map[string]any{}
	switch s.Op {
	case Shell:
		given["command"] = s.Command
		given["description"] = "run a command"
		if s.Background {
			given["background"] = true
		}
		if t.kind == localShell {
			return call{tool: t, argv: []string{"bash", "-lc", s.Command}}, nil
		}
	case Read:
		given["path"] = s.Path
	case Write:
		given["path"], given["content"] = s.Path, s.Content
	case Edit:
		given["path"], given["old"], given["new"] = s.Path, s.Old, s.New
	case Patch:
		given["path"], given["old"], given["new"] = s.Path, s.Old, s.New
	case Fetch:
		given["url"] = s.URL
		given["prompt"] = "Say what " + s.URL + " holds."
	case Spawn:
		given["prompt"] = "Do what follows. " + Marker(s.Script)
		given["description"] = "part_" + plain(s.Script) // a name in Codex, with no other characters
	}
	if slices.Contains(names[Patch], t.name) {
		return patchCall(t, s)
	}
	if s.Op == Patch && s.Text != "" {
		return call{}, errNone // the text is a patch, and this tool does not take patches
	}
	if t.kind == custom {
		return call{}, errNone
	}
	args, err := fitArguments(t, s, given)
	if s.Op == Spawn && err == nil {
		q.helper(t, args)
	}
	return call{tool: t, args: args}, err
}

// helpers lists the kinds of sub-agents that may do anything, by the argument
// that names the kind.
var helpers = map[string][]string{
	"subagent_type": {"general-purpose", "general", "default", "worker"},
	"agent_type":    {"general-purpose", "default", "worker"},
	"agent_name":    {"generalist", "general-purpose"},
}

// helper sets the kind of sub-agent, if one is required.
func (q *request) helper(t tool, args map[string]any) {
	sch := readSchema(t.schema)
	for name, kinds := range helpers {
		if args[name] == nil {
			continue
		}
		enum := sch.Properties[name].Enum
		for _, kind := range kinds {
			if slices.Contains(enum, any(kind)) || len(enum) == 0 && (hasWord(t.about, kind) || hasWord(string(t.schema), kind) || q.announces(kind)) {
				args[name] = kind
				break
			}
		}
	}
}

// patchCall makes a change with a tool that takes a patch as one text.
func patchCall(t tool, s Step) (call, error) {
	text := s.Text
	if text == "" || s.Op != Patch {
		text = patchText(s)
	}
	if t.kind == custom {
		return call{tool: t, text: text}, nil
	}
	args, err := fitArguments(t, s, map[string]any{"patch": text})
	return call{tool: t, args: args}, err
}

// patchText is the change as a patch in the apply_patch format.
func patchText(s Step) string {
	var b strings.Builder
	b.WriteString("*** Begin Patch\n")
	lines := func(sign, text string) {
		for _, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
			b.WriteString(sign + line + "\n")
		}
	}
	if s.Op == Write {
		b.WriteString("*** Add File: " + s.Path + "\n")
		lines("+", s.Content)
	} else {
		b.WriteString("*** Update File: " + s.Path + "\n@@\n")
		lines("-", s.Old)
		lines("+", s.New)
	}
	b.WriteString("*** End Patch")
	return b.String()
}

// findMCP finds the offered tool of an MCP server. Agents join the two names in
// different ways: mcp__server__tool, server__tool, server_tool, server-tool, a
// namespace mcp__server; or they offer the tool under its own name alone.
func (q *request) findMCP(server, name string) (tool, bool) {
	want := []string{"mcp_" + plain(server) + "_" + plain(name), plain(server) + "_" + plain(name)}
	for _, w := range want {
		for _, t := range q.tools {
			if !t.deferred && plain(t.fullName()) == w {
				return t, true
			}
		}
	}
	for _, other := range []string{"use_mcp_tool", name} {
		if t, ok := q.find(other); ok && t.namespace == "" && !isKnownTool(other) {
			return t, true
		}
	}
	return tool{}, false
}

// isKnownTool reports whether agents have a tool of that name themselves: then a
// server's tool cannot have it without a prefix.
func isKnownTool(name string) bool {
	for _, all := range names {
		if slices.Contains(all, name) {
			return true
		}
	}
	return false
}

// plain is a name in lower case, with punctuation replaced by underscores.
func plain(s string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(s) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "_"):
			b.WriteByte('_')
		}
	}
	return strings.TrimSuffix(b.String(), "_")
}

// server calls a tool of an MCP server.
func (q *request) server(t tool, s Step) call {
	c := literalCall(t, s)
	if t.name == "use_mcp_tool" {
		text, _ := json.Marshal(c.args)
		c.args = fill(t.schema, map[string]any{"server_name": s.Server, "tool_name": s.Tool, "arguments": string(text)})
	}
	return q.nest(c)
}
