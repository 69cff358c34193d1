//go:build linux

package replay

// mcp is how nearly all agents name MCP servers.
var mcp = rule{at: "mcpServers/*", fields: []string{"command", "args"}, when: "starting the agent"}

// claudeHooks is how Claude Code and programs that follow it name commands.
var claudeHooks = rule{at: "hooks/*/*/hooks/*", fields: []string{"command", "args"}, where: "type=command", when: "the event of the hook"}

// Agents are agent programs that are started again in the project.
var Agents = []Reader{
	{Name: "Claude Code", Source: "code.claude.com/docs/en/settings, hooks, statusline", Files: []string{"{W}/.claude/settings.json", "{W}/.claude/settings.local.json", "{H}/.claude/settings.json"},
		Launches: settings(parseJSON, claudeHooks, rule{at: "statusLine", fields: []string{"command"}, when: "starting the agent"}, rule{at: "apiKeyHelper", when: "starting the agent"},
			rule{at: "awsAuthRefresh", when: "starting the agent"}, rule{at: "awsCredentialExport", when: "starting the agent"}, rule{at: "otelHeadersHelper", when: "starting the agent"},
			rule{at: "fileSuggestion", fields: []string{"command"}, when: "naming a file"}, rule{at: "env", when: "every command of the agent"})},
	{Name: "Claude Code", Source: "code.claude.com/docs/en/mcp", Files: []string{"{W}/.mcp.json", "{H}/.claude.json"}, Launches: settings(parseJSON, mcp)},
	{Name: "Cursor", Source: "cursor.com/docs/context/mcp", Files: []string{"{W}/.cursor/mcp.json", "{H}/.cursor/mcp.json"}, Launches: settings(parseJSONC, mcp)},
	{Name: "Cursor", Source: "cursor.com/docs/agent/hooks, cloud-agent environment.json", Files: []string{"{W}/.cursor/hooks.json", "{H}/.cursor/hooks.json", "{W}/.cursor/environment.json"},
		Launches: settings(parseJSONC, rule{at: "hooks/*/*", fields: []string{"command"}, when: "the event of the hook"}, rule{at: "install", when: "starting the agent"}, rule{at: "start", when: "starting the agent"},
			rule{at: "terminals/*", fields: []string{"command"}, when: "starting the agent"})},
	{Name: "Codex", Source: "github.com/openai/codex docs/config.md", Files: []string{"{W}/.codex/config.toml", "{H}/.codex/config.toml"},
		Launches: settings(parseTOML, rule{at: "notify", when: "the end of a turn"}, rule{at: "mcp_servers/*", fields: []string{"command", "args"}, when: "starting the agent"})},
	{Name: "Gemini CLI or Qwen Code", Source: "github.com/google-gemini/gemini-cli docs/get-started/configuration.md, docs/hooks",
		Files: []string{"{W}/.gemini/settings.json", "{H}/.gemini/settings.json", "{W}/.qwen/settings.json", "{W}/.gemini/extensions/*/gemini-extension.json"},
		Launches: settings(parseJSONC, mcp, rule{at: "hooks/*/*/hooks/*", fields: []string{"command"}, when: "the event of the hook"}, rule{at: "tools/discoveryCommand", when: "starting the agent"},
			rule{at: "tools/callCommand", when: "calling a tool"}, rule{at: "toolDiscoveryCommand", when: "starting the agent"}, rule{at: "toolCallCommand", when: "calling a tool"})},
	{Name: "Roo Code, Amazon Q, Kiro, Junie or Factory", Source: "docs.roocode.com/features/mcp/using-mcp-in-roo; aws/amazon-q-developer-cli docs; kiro.dev/docs/mcp; jetbrains.com/help/junie; docs.factory.ai",
		Files:    []string{"{W}/.roo/mcp.json", "{W}/.amazonq/mcp.json", "{W}/.amazonq/cli-agents/*.json", "{W}/.kiro/settings/mcp.json", "{W}/.junie/mcp/mcp.json", "{W}/.factory/mcp.json"},
		Launches: settings(parseJSONC, mcp, rule{at: "hooks/*/*", fields: []string{"command"}, when: "the event of the hook"})},
	{Name: "opencode", Source: "opencode.ai/docs/mcp-servers, lsp, formatters", Files: []string{"{W}/opencode.json", "{W}/opencode.jsonc", "{W}/.opencode/opencode.json"},
		Launches: settings(parseJSONC, rule{at: "mcp/*", fields: []string{"command"}, where: "type=local", when: "starting the agent"}, rule{at: "lsp/*", fields: []string{"command"}, when: "opening a file"},
			rule{at: "formatter/*", fields: []string{"command"}, when: "writing a file"})},
	{Name: "Crush", Source: "github.com/charmbracelet/crush README, MCPs and LSPs", Files: []string{"{W}/.crush.json", "{W}/crush.json"},
		Launches: settings(parseJSON, rule{at: "mcp/*", fields: []string{"command", "args"}, when: "starting the agent"}, rule{at: "lsp/*", fields: []string{"command", "args"}, when: "opening a file"})},
	{Name: "Amp", Source: "ampcode.com/manual#configuration", Files: []string{"{W}/.amp/settings.json"},
		Launches: settings(parseJSONC, rule{at: "amp.mcpServers/*", fields: []string{"command", "args"}, when: "starting the agent"})},
	{Name: "Copilot", Source: "docs.github.com/copilot hooks and MCP of the CLI", Files: []string{"{W}/.github/hooks/*.json", "{W}/.copilot/mcp-config.json"},
		Launches: settings(parseJSON, mcp, rule{at: "hooks/*/*", fields: []string{"bash", "command"}, when: "the event of the hook"})},
	{Name: "Aider", Source: "aider.chat/docs/config/aider_conf.html", Files: []string{"{W}/.aider.conf.yml"}, Launches: yamlLines("after an edit", "lint-cmd", "test-cmd", "notifications-command", "editor")},
}
