//go:build linux

package workspace

import (
	"encoding/json"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
)

// agentSettings are the files in which agents find commands of a project, keyed by the
// pattern of the list that matches them or their directory. A name of "" is the
// protected file itself.
var agentSettings = sync.OnceValue(func() map[string][]string {
	return map[string][]string{
		".claude": {"settings.json", "settings.local.json"}, ".mcp.json": {""}, ".claude.json": {""}, ".claude-plugin": {"plugin.json"},
		".cursor": {"mcp.json", "hooks.json", "environment.json"}, ".vscode": {"mcp.json"}, ".roo": {"mcp.json"}, ".amazonq": {"mcp.json"},
		".kiro": {"settings/mcp.json"}, ".copilot": {"mcp-config.json"}, ".gemini": {"settings.json"}, ".qwen": {"settings.json"},
		".codex": {"config.toml", "hooks.json"}, "opencode.json": {""}, ".opencode": {"opencode.json"}, "crush.json": {""}, ".crush.json": {""},
		".factory": {"settings.json", "mcp.json"}, ".junie": {"mcp/mcp.json"},
	}
})

// commandKeys are the keys under which those files have command lines, or the
// words of one.
var commandKeys = []string{"command", "args", "cmd", "env", "exec", "script", "bash", "notify", "apiKeyHelper", "awsAuthRefresh", "awsCredentialExport", "otelHeadersHelper", "discoveryCommand", "callCommand", "install", "start"}

// obeyAgents protects what the settings of agents name in the tree: hooks, the
// servers that an agent starts, and helpers. The settings themselves are
// protected already, and an agent on the host runs what they say.
func (s *scan) obeyAgents() {
	const reason = "the settings of an agent name it in a command"
	for _, r := range slices.Clone(s.found.Rows) {
		if r.Linked || r.Closed {
			continue
		}
		top := string(s.found.Root) + "/" + string(r.Path)
		for _, name := range agentSettings()[r.Rule] {
			file := strings.TrimSuffix(top+"/"+name, "/")
			data := s.read(file)
			if data == nil || len(data) > MaxConfig || !s.afford(1, len(data)) {
				continue
			}
			for _, line := range commandLines(name+path.Base(file), data) {
				s.commandNames(path.Dir(top), "", line, reason)
			}
		}
	}
	for _, f := range s.agents {
		for _, line := range commandLines(f.name, f.data) {
			s.commandNames(string(s.found.Root), f.home, line, "the user's own "+f.name+" names it in a command that an agent executes")
		}
	}
}

// agentConfig hands in a file of the user's own settings of an agent, for every
// project: the programs of the tree that it names are protected too. name is its
// absolute path, home what "~/" means in it.
func agentConfig(name, home string, data []byte) Option {
	return func(s *scan) { s.agents = append(s.agents, gitFile{name: name, home: home, data: data}) }
}

// homeSettings are the files in which agents keep settings of a user for every
// project, relative to the home directory.
func homeSettings() []string {
	out := []string{".config/opencode/opencode.json", ".config/opencode/opencode.jsonc", ".config/crush/crush.json", ".config/amp/settings.json",
		".config/zed/settings.json", ".config/goose/config.yaml", ".config/Code/User/settings.json", ".config/Code/User/mcp.json", ".config/Claude/claude_desktop_config.json",
		".codeium/windsurf/mcp_config.json", ".cline/data/settings/cline_mcp_settings.json", ".aws/amazonq/mcp.json", ".continue/config.yaml", ".continue/config.json",
		".copilot/settings.json", ".copilot/config.json", ".aider.conf.yml"}
	for dir, names := range agentSettings() {
		for _, name := range names {
			out = append(out, path.Join(dir, name))
		}
	}
	slices.Sort(out)
	return out
}

// commandNames protects the files that a command line names, from the directory
// of the project or from the root of the workspace.
func (s *scan) commandNames(project, home, line, reason string) {
	line = strings.NewReplacer("${CLAUDE_PROJECT_DIR}", ".", "$CLAUDE_PROJECT_DIR", ".", "${workspaceFolder}", ".", "$GEMINI_PROJECT_DIR", ".", "${PWD}", ".", "$PWD", ".").Replace(line)
	for _, from := range slices.Compact([]string{project, string(s.found.Root)}) {
		s.protectNamed(line, from, home, "agents", reason)
	}
}

// commandLines are the texts under commandKeys in a file of JSON or TOML. For anything
// other than plain JSON (agents read comments and commas that we do not) they are all
// texts between quotes.
func commandLines(name string, data []byte) []string {
	if strings.HasSuffix(name, ".toml") {
		return tomlCommands(string(data))
	}
	if strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml") {
		return slices.Collect(strings.Lines(string(data)))
	}
	var doc any
	if json.Unmarshal(data, &doc) == nil {
		return commandValues(doc, false)
	}
	return quoted(string(data))
}

// quoted are the texts between quotes, and those between two of them: a quote may
// be escaped.
func quoted(text string) []string {
	return append(strings.Split(text, `"`)[1:], strings.Split(text, "'")[1:]...)
}

// tomlCommands are the texts of lines that hold one of the keys, to the end of the
// list that begins there, and of tables under one.
func tomlCommands(text string) []string {
	var out []string
	open, table := 0, false
	isKey := func(word string) bool { return slices.Contains(commandKeys, word) }
	for line := range strings.Lines(text) {
		words := strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\r\n=.,[]{}\"'", r) })
		if open == 0 && strings.HasPrefix(strings.TrimSpace(line), "[") {
			table = slices.ContainsFunc(words, isKey)
			continue
		}
		if open > 0 || table || slices.ContainsFunc(words, isKey) {
			out = append(out, quoted(line)...)
			open = max(0, open+strings.Count(line, "[")-strings.Count(line, "]"))
		}
	}
	return out
}

// commandValues are the texts below v that are under one of the keys. The words of a
// list are one line.
func commandValues(v any, under bool) []string {
	var out []string
	switch v := v.(type) {
	case string:
		if under {
			out = append(out, v)
		}
	case []any:
		for _, e := range v {
			out = append(out, commandValues(e, under)...)
		}
		if under {
			out = append(out, strings.Join(out, " "))
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			out = append(out, commandValues(v[k], under || slices.Contains(commandKeys, k))...)
		}
		if command, ok := v["command"].(string); ok {
			out = append(out, strings.Join(append([]string{command}, commandValues(v["args"], true)...), " "))
		}
	}
	return out
}
