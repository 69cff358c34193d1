package hooks

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"holdfast.dev/holdfast/internal/floor/text"
)

// agent describes where an agent reads its hooks from, and their format.
type agent struct {
	name    string
	dir     string                   // of its settings, below the home of the user
	moved   string                   // variable that names a replacement directory; "" for none
	below   string                   // path between that directory and the file
	file    string                   // in dir
	project string                   // the file, below the directory of a project
	events  []hookEvent              // in the order in which they are written
	ownFile func(hook string) []byte // makes a file that is only ours; nil if it is shared with other settings
	seconds float64                  // unit of a timeout: 1 for seconds, 0.001 for milliseconds
}

// hookEvent is an event of an agent that we subscribe to.
type hookEvent struct {
	name    string // the agent's name for it
	kind    Kind
	matcher bool // it has a matcher
}

// How long an agent waits for its hook, in seconds. After that it goes on without
// the hook.
const (
	timeout  = 10
	callTime = 600 // before a call, about which a human may be asked
)

// seconds is how long an agent waits for a hook of that kind.
func (k Kind) seconds() int {
	if k == Call {
		return callTime
	}
	return timeout
}

// agents are the agents with supported hooks, as tested with the versions in
// docs/agents.md.
func agents() map[string]agent {
	list := []agent{
		{name: "claude", dir: ".claude", moved: "CLAUDE_CONFIG_DIR", file: "settings.json", project: ".claude/settings.json", seconds: 1,
			events: []hookEvent{{"PreToolUse", Call, true}, {"PostToolUse", Result, true}, {"PostToolUseFailure", Result, true}, {"SessionEnd", End, false}}},
		{name: "codex", dir: ".codex", moved: "CODEX_HOME", file: "hooks.json", project: ".codex/hooks.json", seconds: 1,
			events: []hookEvent{{"PreToolUse", Call, true}, {"PostToolUse", Result, true}}},
		{name: "gemini", dir: ".gemini", moved: "GEMINI_CLI_HOME", below: ".gemini", file: "settings.json", project: ".gemini/settings.json", seconds: 0.001,
			events: []hookEvent{{"BeforeTool", Call, true}, {"AfterTool", Result, true}, {"SessionEnd", End, false}}},
		{name: "qwen", dir: ".qwen", moved: "QWEN_HOME", file: "settings.json", project: ".qwen/settings.json", seconds: 0.001,
			events: []hookEvent{{"PreToolUse", Call, true}, {"PostToolUse", Result, true}, {"PostToolUseFailure", Result, true}, {"SessionEnd", End, false}}},
		{name: "copilot", dir: ".copilot/hooks", moved: "COPILOT_HOME", below: "hooks", file: "holdfast.json", project: ".github/hooks/holdfast.json", ownFile: copilotFile},
		{name: "opencode", dir: ".config/opencode/plugin", moved: "XDG_CONFIG_HOME", below: "opencode/plugin", file: "holdfast.js", project: ".opencode/plugin/holdfast.js", ownFile: opencodeFile},
	}
	m := map[string]agent{}
	for _, a := range list {
		m[a.name] = a
	}
	return m
}

// Agents are the names of the agents with supported hooks.
func Agents() []string { return slices.Sorted(maps.Keys(agents())) }

// Owned are the directories in which an agent keeps its own files.
func Owned(name, home string) []string {
	a, known := agents()[name]
	if !known {
		return nil
	}
	dir, _, _ := strings.Cut(a.dir, "/")
	if dir == ".config" {
		dir = ".config/opencode"
	}
	return []string{filepath.Join(home, dir)}
}

// group is an element of the list of one event, in the schema that four of the
// agents share.
type group struct {
	Matcher string    `json:"matcher,omitempty"`
	Hooks   []handler `json:"hooks"`
}

type handler struct {
	Type    string `json:"type"`
	Command string `json:"command"`
	Timeout int    `json:"timeout"` // seconds or milliseconds, depending on the agent
}

func (a agent) group(m hookEvent, hook string) group {
	g := group{Hooks: []handler{{Type: "command", Command: command(hook, a.name, m.kind), Timeout: int(float64(m.kind.seconds()) / a.seconds)}}}
	if m.matcher {
		g.Matcher = "*"
	}
	return g
}

// command is what an agent's shell executes. For a call it contains how long the
// agent waits, which the hook cannot find out otherwise.
func command(hook, agent string, kind Kind) string {
	words := text.Quote(hook) + " " + Verb + " " + agent + " " + string(kind)
	if kind == Call {
		words += " " + strconv.Itoa(callTime)
	}
	return words
}

// ownHookProgram returns the program that a hook's command executes, if we wrote that
// command for this agent and kind; earlier versions did not contain the waiting
// time.
func ownHookProgram(line, agent string, kind Kind) (program string, is bool) {
	end := strings.TrimPrefix(command("", agent, kind), "''")
	word, is := strings.CutSuffix(line, end)
	if !is {
		end = " " + Verb + " " + agent + " " + string(kind)
		word, is = strings.CutSuffix(line, end)
	}
	if !is {
		return "", false
	}
	if quoted, was := strings.CutPrefix(word, "'"); was && strings.HasSuffix(quoted, "'") {
		word = strings.ReplaceAll(strings.TrimSuffix(quoted, "'"), `'\''`, "'")
	}
	if !filepath.IsAbs(word) || text.Quote(word)+end != line {
		return "", false
	}
	return word, true
}

// ownMark begins a file that contains only our hooks.
const ownMark = "holdfast hooks"

func copilotFile(hook string) []byte {
	entry := func(kind Kind) string {
		return fmt.Sprintf(`[{"type": "command", "bash": %s, "timeoutSec": %d}]`, jsonText(command(hook, "copilot", kind)), kind.seconds())
	}
	return []byte("{\n  \"version\": 1,\n  \"description\": \"" + ownMark + ": reports tool calls; see holdfast hooks --help\",\n  \"hooks\": {\n" +
		"    \"preToolUse\": " + entry(Call) + ",\n    \"postToolUse\": " + entry(Result) + "\n  }\n}\n")
}
