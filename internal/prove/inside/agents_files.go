//go:build linux

package inside

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// requestedLaunches returns everything that the files of a project ask an agent to start, by
// the rules of the agents that own the files.
func requestedLaunches(dir string) []launch {
	out := claude(dir)
	for _, f := range []string{".cursor/mcp.json", ".roo/mcp.json", ".amazonq/mcp.json", ".kiro/settings/mcp.json", ".gemini/settings.json", ".qwen/settings.json", ".copilot/mcp-config.json",
		".gemini/extensions/*/gemini-extension.json", ".amazonq/cli-agents/*.json", ".vscode/mcp.json", "opencode.json", ".opencode/opencode.json"} {
		for _, path := range globs(dir, f) {
			doc := document(path)
			for _, key := range []string{"mcpServers", "servers", "mcp"} {
				out = append(out, servers(path, key, doc)...)
			}
		}
	}
	for _, f := range []string{".gemini/settings.json", ".qwen/settings.json", ".cursor/hooks.json", ".github/hooks/*.json", ".amazonq/cli-agents/*.json", ".codex/hooks.json"} {
		for _, path := range globs(dir, f) {
			out = append(out, hooks(path, document(path))...)
		}
	}
	for _, path := range globs(dir, "opencode.json") {
		doc := document(path)
		for _, key := range []string{"formatter", "lsp"} {
			out = append(out, servers(path, key, doc)...)
		}
	}
	for i := range out {
		// These are programs of a project too, but with other protocols.
		if strings.HasSuffix(out[i].from, " lsp") || strings.HasSuffix(out[i].from, " formatter") {
			out[i].server = false
		}
	}
	for _, path := range globs(dir, ".gemini/settings.json") {
		if tools, ok := document(path)["tools"].(map[string]any); ok {
			out = append(out, lines(path, tools, "discoveryCommand")...)
		}
	}
	for _, path := range globs(dir, ".cursor/environment.json") {
		out = append(out, lines(path, document(path), "install", "start")...)
	}
	return append(out, codex(dir)...)
}

// claude reads what Claude Code reads. A server of the project is started if its
// settings say so.
func claude(dir string) []launch {
	var out []launch
	all := false
	var named []string
	for _, f := range []string{".claude/settings.json", ".claude/settings.local.json"} {
		for _, path := range globs(dir, f) {
			doc := document(path)
			out = append(out, hooks(path, doc)...)
			out = append(out, lines(path, doc, "apiKeyHelper", "awsAuthRefresh", "awsCredentialExport", "otelHeadersHelper")...)
			for _, key := range []string{"statusLine", "fileSuggestion"} {
				if m, ok := doc[key].(map[string]any); ok {
					out = append(out, lines(path+" "+key, m, "command")...)
				}
			}
			all = all || doc["enableAllProjectMcpServers"] == true
			named = append(named, words(doc["enabledMcpjsonServers"])...)
		}
	}
	for _, path := range globs(dir, ".mcp.json") {
		for _, l := range servers(path, "mcpServers", document(path)) {
			if all || slices.Contains(named, filepath.Base(l.from)) {
				out = append(out, l)
			}
		}
	}
	// A command or a skill has lines that are run when it is called.
	for _, f := range []string{".claude/commands/*.md", ".claude/skills/*/SKILL.md"} {
		for _, path := range globs(dir, f) {
			b, _ := os.ReadFile(path)
			for _, m := range backticks.FindAllSubmatch(b, -1) {
				out = append(out, launch{from: path, line: string(m[1])})
			}
		}
	}
	env := settingsEnv(dir)
	for i := range out {
		if out[i].env == nil {
			out[i].env = map[string]string{}
		}
		for k, v := range env {
			out[i].env[k] = v
		}
	}
	return out
}

var backticks = regexp.MustCompile("!`([^`]+)`")

// settingsEnv returns the variables that a project's settings add.
func settingsEnv(dir string) map[string]string {
	out := map[string]string{}
	for _, f := range []string{".claude/settings.json", ".claude/settings.local.json"} {
		if m, ok := document(filepath.Join(dir, f))["env"].(map[string]any); ok {
			for k, v := range m {
				if s, ok := v.(string); ok {
					out[k] = s
				}
			}
		}
	}
	if b, err := os.ReadFile(filepath.Join(dir, ".gemini", ".env")); err == nil {
		for line := range strings.Lines(string(b)) {
			if k, v, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
				out[k] = v
			}
		}
	}
	return out
}

// servers returns those of one key: names mapped to a command line, as two fields
// or as one list.
func servers(path, key string, doc map[string]any) []launch {
	var out []launch
	all, _ := doc[key].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		m, ok := all[name].(map[string]any)
		if !ok {
			continue
		}
		l := launch{from: path + " " + key + "/" + name, server: true, env: map[string]string{}}
		if key == "formatter" || key == "lsp" {
			l.from = path + " " + key
		}
		l.dir, _ = m["cwd"].(string)
		for _, k := range []string{"env", "environment"} {
			if env, ok := m[k].(map[string]any); ok {
				for k, v := range env {
					l.env[k], _ = v.(string)
				}
			}
		}
		if cmd, ok := m["command"].(string); ok {
			l.argv = append([]string{cmd}, words(m["args"])...)
		} else {
			l.argv = words(m["command"])
		}
		if len(l.argv) > 0 {
			out = append(out, l)
		}
	}
	return out
}

// hooks returns commands by event. Agents nest them in two ways.
func hooks(path string, doc map[string]any) []launch {
	var out []launch
	events, _ := doc["hooks"].(map[string]any)
	for _, event := range slices.Sorted(maps.Keys(events)) {
		groups, _ := events[event].([]any)
		for _, g := range groups {
			m, ok := g.(map[string]any)
			if !ok {
				continue
			}
			inner, nested := m["hooks"].([]any)
			if !nested {
				inner = []any{m}
			}
			for _, h := range inner {
				if m, ok := h.(map[string]any); ok {
					out = append(out, lines(path+" "+event, m, "command", "bash")...)
				}
			}
		}
	}
	return out
}

// lines returns command lines at keys.
func lines(from string, m map[string]any, keys ...string) []launch {
	var out []launch
	for _, k := range keys {
		if line, ok := m[k].(string); ok {
			out = append(out, launch{from: from + " " + k, line: line})
		}
	}
	return out
}

// codex reads the part of TOML that its configuration needs here: tables, and
// keys with a string or a list of strings on one line.
func codex(dir string) []launch {
	var out []launch
	table, server := "", launch{}
	b, err := os.ReadFile(filepath.Join(dir, ".codex", "config.toml"))
	if err != nil {
		return nil
	}
	flush := func() {
		if len(server.argv) > 0 {
			out = append(out, server)
		}
		server = launch{server: true}
	}
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			flush()
			table = strings.Trim(line, "[]")
			server.from = "config.toml " + table
			continue
		}
		k, v, ok := strings.Cut(line, "=")
		var one string
		var list []string
		if k, v = strings.TrimSpace(k), strings.TrimSpace(v); !ok || json.Unmarshal([]byte(v), &one) != nil && json.Unmarshal([]byte(v), &list) != nil {
			continue
		}
		switch {
		case table == "" && k == "notify":
			out = append(out, launch{from: "config.toml notify", argv: list})
		case strings.HasPrefix(table, "mcp_servers.") && k == "command":
			server.argv = append([]string{one}, server.argv...)
		case strings.HasPrefix(table, "mcp_servers.") && k == "args":
			server.argv = append(server.argv, list...)
		}
	}
	flush()
	return out
}

func globs(dir, pattern string) []string {
	found, _ := filepath.Glob(filepath.Join(dir, pattern))
	return found
}

// document reads a JSON file; nil if it cannot.
func document(path string) map[string]any {
	var doc map[string]any
	b, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(b, &doc) != nil {
		return nil
	}
	return doc
}

func words(v any) []string {
	list, _ := v.([]any)
	var out []string
	for _, e := range list {
		if s, ok := e.(string); ok {
			out = append(out, s)
		}
	}
	return out
}
