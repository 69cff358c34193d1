//go:build linux

package workspace

import (
	"encoding/json"
	"os"
	"path"
	"slices"
	"strings"
)

// agentSettings are the files in which agents find commands of a project, by the
// pattern of the list under which they or their directory stand. A name of ""
// is the protected file itself.
var agentSettings = map[string][]string{
	".claude": {"settings.json", "settings.local.json"}, ".mcp.json": {""}, ".claude.json": {""}, ".claude-plugin": {"plugin.json"},
	".cursor": {"mcp.json", "hooks.json", "environment.json"}, ".vscode": {"mcp.json"}, ".roo": {"mcp.json"}, ".amazonq": {"mcp.json"},
	".kiro": {"settings/mcp.json"}, ".copilot": {"mcp-config.json"}, ".gemini": {"settings.json"}, ".qwen": {"settings.json"},
	".codex": {"config.toml", "hooks.json"}, "opencode.json": {""}, ".opencode": {"opencode.json"}, "crush.json": {""}, ".crush.json": {""},
	".factory": {"settings.json", "mcp.json"}, ".junie": {"mcp/mcp.json"},
}

// commandKeys are the keys under which those files have command lines, or the
// words of one.
var commandKeys = []string{"command", "args", "bash", "notify", "apiKeyHelper", "awsAuthRefresh", "awsCredentialExport", "otelHeadersHelper", "discoveryCommand", "callCommand", "install", "start"}

// scriptEnds mark a word without a slash as the name of a program in a command
// line: it is what an interpreter is given.
var scriptEnds = []string{".js", ".mjs", ".cjs", ".ts", ".mts", ".py", ".sh", ".bash", ".rb", ".pl", ".php", ".lua"}

// obeyAgents protects what the settings of agents name in the tree: hooks, the
// servers that an agent starts, and helpers. The settings themselves are
// protected already, and an agent on the host runs what they say.
func (s *scan) obeyAgents() {
	for _, r := range slices.Clone(s.found.Rows) {
		if r.Linked || r.Closed {
			continue
		}
		top := string(s.found.Root) + "/" + string(r.Path)
		for _, name := range agentSettings[r.Rule] {
			file := strings.TrimSuffix(top+"/"+name, "/")
			data := readHost(file)
			if data == nil || len(data) > maxConfig {
				continue
			}
			for _, line := range commandLines(name+path.Base(file), data) {
				s.commandNames(path.Dir(top), line)
			}
		}
	}
}

// commandNames protects the files that a command line names, from the directory
// of the project or from the root of the workspace.
func (s *scan) commandNames(project, line string) {
	line = strings.NewReplacer("${CLAUDE_PROJECT_DIR}", ".", "$CLAUDE_PROJECT_DIR", ".", "${workspaceFolder}", ".", "$GEMINI_PROJECT_DIR", ".", "${PWD}", ".", "$PWD", ".").Replace(line)
	for _, word := range strings.FieldsFunc(line, func(r rune) bool { return strings.ContainsRune(" \t\n;&|()<>\"'`!=$", r) }) {
		if !strings.Contains(word, "/") && !slices.Contains(scriptEnds, path.Ext(word)) {
			continue
		}
		for _, from := range slices.Compact([]string{project, string(s.found.Root)}) {
			p := target(from, word, "")
			if st, err := os.Lstat(p); p != "" && err == nil && !st.IsDir() {
				s.resolve(p, "agents", "the settings of an agent name it in a command")
			}
		}
	}
}

// commandLines are the values of commandKeys in a file of JSON, or in as much of
// TOML as stands on one line.
func commandLines(name string, data []byte) []string {
	if !strings.HasSuffix(name, ".toml") {
		var doc any
		if json.Unmarshal(data, &doc) != nil {
			return nil // the agent refuses it too, or reads comments that we do not
		}
		return commandValues(doc, false)
	}
	var out []string
	for line := range strings.Lines(string(data)) {
		key, value, ok := strings.Cut(line, "=")
		if ok && slices.Contains(commandKeys, strings.TrimSpace(key)) {
			out = append(out, strings.Trim(strings.TrimSpace(strings.ReplaceAll(value, ",", " ")), "[]"))
		}
	}
	return out
}

// commandValues are the texts below v that stand under one of the keys.
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
	case map[string]any:
		for k, e := range v {
			out = append(out, commandValues(e, slices.Contains(commandKeys, k))...)
		}
	}
	return out
}
