package policy

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"holdfast.dev/holdfast/internal/floor/event"
	"holdfast.dev/holdfast/internal/floor/expr"
)

// toolKeys are those of the section tools.
var toolKeys = []key{
	{name: "tools",
		doc: "What agents that ask may call. The boundary holds without these rules."},
	{name: "tools.deny", kind: &toolRules, project: adds, example: "[WebFetch, {tool: Bash, when: 'arguments.command.contains(\"sudo\")', reason: there is no sudo here}]",
		doc: toolsDoc},
}

var toolRules = kind{
	takes:   "a list of names or mappings",
	many:    true,
	element: (*decoder).tool,
	schema:  func(key) map[string]any { return list(toolShape()) },
}

// toolsDoc describes a rule for tools in full.
const toolsDoc = "Calls of an agent's tools that its hooks deny (docs/agents.md). An entry is the name of a tool, in which `*` stands for any part, such as `WebFetch` or `mcp__*`; or a mapping, all of which must fit:\n\n" +
	"| key | meaning |\n| --- | --- |\n" +
	"| `tool` | the name, or a list of names |\n" +
	"| `server` | the MCP server that the tool is of, likewise |\n" +
	"| `agent` | who calls: `claude`, `codex`, `gemini`, `qwen`, `copilot`, `opencode`, likewise |\n" +
	"| `when` | a condition (CEL) on `tool`, `server`, `agent`, `arguments` (the first level of them, as texts: `arguments.command.contains(\"sudo\")`) and `detail` |\n" +
	"| `reason` | what the agent is told |\n\n" +
	"The agent itself asks and obeys; what must never happen is for the boundary to prevent, which does not depend on the agent. A rule takes effect when a run begins."

// ToolRule denies calls of an agent's tools. The agent's description of a call is not
// proof, so a rule can only take away, never give.
type ToolRule struct {
	Tools   []string // names, in which * matches any part; empty for any tool
	Servers []string // MCP servers likewise; empty for any, and for tools of no server
	Agents  []string // likewise
	When    string   // condition on the call, see package expr; "" for always
	Reason  string   // the message to the agent; "" for our text
	Origin  Origin

	condition *expr.Program // nil without When
}

const aTool = "a rule for tools" // in messages

// tool decodes one element of tools.deny.
func (d *decoder) tool(key string, n *yaml.Node) bool {
	var r ToolRule
	before := len(d.errs)
	if n.Kind == yaml.ScalarNode {
		d.text(aTool, "tool", n, func(text string) (err error) {
			text, err = toolText(text)
			r.Tools = []string{text}
			return err
		})
	} else {
		d.mapping(aTool, n, []field{
			d.nameField(aTool, "tool", &r.Tools, toolText),
			d.nameField(aTool, "server", &r.Servers, toolText),
			d.nameField(aTool, "agent", &r.Agents, toolText),
			d.textField(aTool, "when", &r.When, func(text string) (_ string, err error) {
				r.condition, err = expr.Compile(text)
				return text, err
			}),
			d.textField(aTool, "reason", &r.Reason, toolText),
		})
	}
	if len(d.errs) > before {
		return true
	}
	if len(r.Tools)+len(r.Servers)+len(r.Agents) == 0 && r.When == "" {
		d.fail(n, "for example {tool: Bash, when: 'arguments.command.contains(\"sudo\")'}", "a rule for tools needs tool, server, agent or when")
		return true
	}
	d.add(n, Entry{Key: key, Value: r.String(), Tool: &r})
	return true
}

// String is a rule in one line.
func (r ToolRule) String() string {
	var parts []string
	for _, p := range []struct {
		word string
		list []string
	}{{"", r.Tools}, {"server ", r.Servers}, {"agent ", r.Agents}} {
		if len(p.list) > 0 {
			parts = append(parts, p.word+strings.Join(p.list, ", "))
		}
	}
	if r.When != "" {
		parts = append(parts, "when "+r.When)
	}
	return strings.Join(parts, ", ")
}

// toolShape is the schema of a rule for tools.
func toolShape() map[string]any {
	text := map[string]any{"type": "string", "minLength": 1, "maxLength": maxToolText}
	return map[string]any{"oneOf": []any{text, map[string]any{
		"type": "object", "additionalProperties": false, "minProperties": 1,
		"properties": map[string]any{
			"tool": oneOrSome(text), "server": oneOrSome(text), "agent": oneOrSome(text),
			"when": map[string]any{"type": "string", "minLength": 1}, "reason": text,
		},
	}}}
}

// tools takes the rules for tools over into the plan.
func (p *Plan) tools(e Effective) {
	for _, one := range e.entriesFor("tools.deny") {
		r := *one.Tool
		r.Origin = one.Origin
		p.Tools = append(p.Tools, r)
	}
}

// ToolCall is a call that is asked about.
type ToolCall struct {
	Agent, Tool, Server string
	Arguments           string // JSON
	Cwd, Subagent       string
	Cut                 bool // long texts of Arguments are cut
}

func toolRows(p Plan) []Row {
	return rowsOf("tools.deny", p.Tools, func(r ToolRule) (fmt.Stringer, Origin) { return r, r.Origin })
}

// DenyTool says why a call is denied by the rules for tools, and by which of them; ""
// if no rule denies it.
func (p Plan) DenyTool(c ToolCall) (reason, rule string) {
	for _, r := range p.Tools {
		denies, err := r.denies(c)
		switch {
		case err != nil:
			return "its condition cannot be evaluated for this call", r.Origin.String()
		case denies && r.Reason != "":
			return r.Reason, r.Origin.String()
		case denies:
			return "the policy denies the tool " + printable(c.Tool), r.Origin.String()
		}
	}
	return "", ""
}

// denies reports whether a rule is about a call. A condition about arguments that
// are not all there cannot be said to be false.
func (r ToolRule) denies(c ToolCall) (bool, error) {
	if !matchesAny(r.Tools, c.Tool) || !matchesAny(r.Servers, c.Server) || !matchesAny(r.Agents, c.Agent) {
		return false, nil
	}
	if r.condition == nil {
		return true, nil
	}
	if c.Cut && strings.Contains(r.When, "arguments") {
		return true, nil
	}
	return r.condition.Matches(expr.Event(event.Event{Sensor: event.Agent, Action: event.ToolCall, Object: c.Tool, Detail: map[string]string{
		"agent": c.Agent, "server": c.Server, "arguments": c.Arguments, "cwd": c.Cwd, "subagent": c.Subagent,
	}}))
}

// matchesAny reports whether a name matches one of some patterns, in which * matches any
// part; without patterns it always does. Case is ignored, because agents do not agree
// on how their tools are called.
func matchesAny(patterns []string, name string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool { return matchStars(strings.ToLower(p), strings.ToLower(name)) })
}
