package model

import (
	"encoding/json"
	"strings"
)

// Some agents list tools by name alone, and load the rest when the model asks:
// Claude Code (ToolSearch), Qwen Code (tool_search, then tool_call), Codex (its
// own item, or the names that its program sees).

// load is the call that a step needs when no offered tool can do it: a search for
// such a tool or, after the search, a call of the tool that was found.
func (q *request) load(s Step, phase string, found Result) (resolved, bool) {
	wanted := namesFor(s)
	if len(wanted) == 0 {
		return resolved{}, false
	}
	if s.Op == MCP || s.Op == Tool {
		var plainly []string
		for _, name := range wanted {
			plainly = append(plainly, plain(name))
		}
		if c, ok := q.search(plainly, literalCall(tool{}, s).args, missingTool(s)); ok {
			return resolved{call: c}, true
		}
	}
	for _, t := range q.tools {
		switch {
		case t.kind != toolSearch && (t.kind != function || !isSelect(t.name)) || t.deferred:
		case phase == phaseSelect:
			return q.loaded(s, wanted, found)
		case t.kind == toolSearch:
			return resolved{call: call{tool: t, args: fill(t.schema, object{"query": searchWords(s), "limit": 8})}, phase: phaseSelect}, true
		default:
			for _, name := range wanted {
				if q.announces(name) {
					return resolved{call: call{tool: t, args: fill(t.schema, object{"query": "select:" + name, "max_results": 3})}, phase: phaseSelect}, true
				}
			}
		}
	}
	return resolved{}, false
}

// namesFor lists the possible names of a tool for the step.
func namesFor(s Step) []string {
	switch s.Op {
	case MCP:
		return []string{"mcp__" + s.Server + "__" + s.Tool, s.Server + "_" + s.Tool}
	case Tool:
		return []string{s.Tool}
	default:
		return names[s.Op]
	}
}

// searchWords are the query of a search by words.
func searchWords(s Step) string {
	switch s.Op {
	case MCP:
		return strings.NewReplacer("_", " ", "-", " ").Replace(s.Server + " " + s.Tool)
	case Tool:
		return s.Tool
	case Fetch:
		return "fetch a web page by its URL"
	case Spawn:
		return "spawn a sub-agent"
	default:
		return string(s.Op) + " a file"
	}
}

func isSelect(name string) bool { return name == "ToolSearch" || name == "tool_search" }

// loaded calls a tool that a search has found, although the request does not list
// it.
func (q *request) loaded(s Step, wanted []string, found Result) (resolved, bool) {
	if found.Error {
		return resolved{}, false
	}
	for _, name := range wanted {
		if !hasWord(found.Text, name) {
			continue
		}
		t := tool{name: name, schema: schemaIn(found.Text, name)}
		c := literalCall(t, s)
		if s.Op != MCP && s.Op != Tool {
			var err error
			if c, err = q.arrange(t, s); err != nil {
				continue
			}
		}
		if outer, ok := q.find("tool_call"); ok {
			c = call{tool: outer, args: object{"name": name, "arguments": c.args}}
		}
		return resolved{call: c}, true
	}
	return resolved{}, false
}

// schemaIn is the schema of a tool in the result of a search, which has each as
// <function>{"name": …, "parameters": …}</function>; nil when there is none.
func schemaIn(text, name string) json.RawMessage {
	for _, part := range strings.Split(text, "<function>")[1:] {
		part, _, _ = strings.Cut(part, "</function>")
		var f struct {
			Name       string          `json:"name"`
			Parameters json.RawMessage `json:"parameters"`
		}
		if json.Unmarshal([]byte(part), &f) == nil && f.Name == name {
			return f.Parameters
		}
	}
	return nil
}

// announces reports whether the instructions or prompts contain a name.
func (q *request) announces(name string) bool {
	if hasWord(q.system, name) {
		return true
	}
	for _, it := range q.items {
		if it.part == prompt && hasWord(it.text, name) {
			return true
		}
	}
	return false
}

// hasWord reports whether text contains word with no letter next to it.
func hasWord(text, word string) bool {
	for from := 0; word != ""; {
		at := strings.Index(text[from:], word)
		if at < 0 {
			return false
		}
		at += from
		end := at + len(word)
		if (at == 0 || !letter(text[at-1])) && (end == len(text) || !letter(text[end])) {
			return true
		}
		from = end
	}
	return false
}

func letter(c byte) bool {
	return c == '_' || c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
