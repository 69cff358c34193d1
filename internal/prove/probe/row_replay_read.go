//go:build linux

package probe

import "holdfast.dev/holdfast/internal/prove/replay"

// shelled is a payload for a program that executes without a shell: a word and
// its arguments in a list.
const (
	shelled = `"command":"sh","args":["-c","{trip}"]`
	server  = `{"mcpServers":{"a":{` + shelled + `}}}`
	hooked  = `{"hooks":{"SessionStart":[{"matcher":"","hooks":[{"type":"command","command":"{trip}"}]}]}}`
	task    = `{"version":"2.0.0","tasks":[{"label":"a","type":"shell","command":"{trip}","runOptions":{"runOn":"folderOpen"}}]} // a comment`
	unit    = "[Unit]\nDescription=a\n[Service]\nExecStart=-/bin/sh -c \\\n  '{trip}'\n"
	entry   = "[Desktop Entry]\nType=Application\nName=a\nExec=sh -c \"{trip}\"\n"
)

// readReplays are files of programs that are not started: they are read by the
// same rules.
func readReplays() []replayRow {
	return []replayRow{
		{id: "DEF-033", title: "what the machine starts by itself is left in a home that is kept in the workspace", readers: replay.Services,
			refs: []string{"systemd.unit(5)", "autostart-spec", "environment.d(5)"},
			plants: []planted{
				plant("W/.config/systemd/user/a.service", unit),
				plant("W/.config/systemd/user/dbus.service.d/a.conf", "[Service]\nExecStartPre=+/bin/sh -c '{trip}'\n"),
				plant("W/.config/systemd/user/a.socket", "[Socket]\nListenStream=%t/a\nExecStartPre=/bin/sh -c '{trip}'\n"),
				plant("W/.config/environment.d/a.conf", "LESSOPEN=|{trip} %s\n"),
				plant("W/.config/autostart/a.desktop", entry), plant("W/.local/share/applications/a.desktop", entry),
				flag("W/a.desktop", entry),
				plant("W/.local/share/dbus-1/services/a.service", "[D-BUS Service]\nName=a.b\nExec=/bin/sh -c '{trip}'\n")}},
		{id: "DEF-033b", rules: []string{"startup-denied"}, title: "what the machine starts by itself is left in the home", readers: replay.Services,
			refs: []string{"systemd.unit(5)", "autostart-spec", "crontab(5)", "sshd(8) SSHRC"},
			plants: []planted{
				plant("H/.config/systemd/user/a.service", unit), plant("H/.local/share/systemd/user/a.service", unit),
				plant("H/.config/systemd/user/a.service.d/a.conf", "[Service]\nExecStartPost=/bin/sh -c '{trip}'\n"),
				plant("H/.config/environment.d/a.conf", "LESSOPEN=|{trip} %s\n"), plant("H/.config/autostart/a.desktop", entry),
				plant("H/.local/share/applications/a.desktop", entry), plant("H/.local/share/dbus-1/services/a.service", "[D-BUS Service]\nName=a.b\nExec=/bin/sh -c '{trip}'\n"),
				plant("H/.ssh/rc", "{trip}\n"), plant("H/.ssh/authorized_keys", "command=\"{trip}\" ssh-ed25519 AAAA\n"),
				plant("O/crontabs/human", "SHELL=/bin/sh\n@reboot {trip}\n"), plant("O/crontabs/other", "*/5 * * * * {trip}\n")}},
		{id: "DEF-034", title: "VS Code, or one of its family, opens the project", readers: replay.Editors,
			refs: []string{"CVE-2025-53773", "CVE-2025-64660", "CVE-2025-61590"}, plants: codePlants("W/")},
		{id: "DEF-034b", rules: []string{"editor-denied"}, title: "the same, and the settings are there before", readers: replay.Editors,
			refs:   []string{"CVE-2025-53773", "CVE-2025-64660", "CVE-2025-61590"},
			files:  map[string]string{"W/.vscode/tasks.json": "{}", "W/.vscode/settings.json": "{}", "W/.devcontainer/devcontainer.json": "{}", "W/.zed/tasks.json": "[]"},
			plants: append(codePlants("W/"), plant("W/.zed/tasks.json", `[{"label":"a",`+shelled+`}]`))},
		{id: "DEF-035", title: "other editors open the project", readers: replay.Editors, refs: []string{"CVE-2025-68433", "CVE-2025-58335"},
			plants: []planted{
				plant("W/.idea/runConfigurations/a.xml", `<component name="ProjectRunConfigurationManager"><configuration name="a" type="ShConfigurationType"><option name="SCRIPT_TEXT" value="{trip}"/></configuration></component>`),
				plant("W/.run/a.run.xml", `<component><configuration name="a"><option name="INTERPRETER_PATH" value="{trip}"/></configuration></component>`),
				plant("W/.idea/watcherTasks.xml", `<project><component><TaskOptions isEnabled="true"><option name="program" value="sh"/><option name="arguments" value="-c '{trip}'"/></TaskOptions></component></project>`),
				plant("W/.zed/tasks.json", `[{"label":"a",`+shelled+`}]`),
				plant("W/.zed/settings.json", `{"lsp":{"gopls":{"binary":{"path":"sh","arguments":["-c","{trip}"]}}}}`),
				plant("W/a.sublime-project", `{"build_systems":[{"name":"a","shell_cmd":"{trip}"}]}`)}},
		{id: "DEF-036", title: "an agent is started again in the project", readers: replay.Agents,
			refs: []string{"CVE-2025-59536", "CVE-2026-25725", "CVE-2025-54135", "TrustFall"}, plants: agentPlants()},
		{id: "DEF-036b", rules: []string{"guardrail-denied"}, title: "the same, and its settings are there before", readers: replay.Agents,
			refs: []string{"CVE-2025-59536", "CVE-2026-25725", "CVE-2025-54135"},
			files: map[string]string{"W/.claude/settings.json": "{}", "W/.mcp.json": "{}", "W/.cursor/mcp.json": "{}", "W/.codex/config.toml": "",
				"W/.gemini/settings.json": "{}", "W/opencode.json": "{}"},
			plants: agentPlants()},
		{id: "DEF-036c", rules: []string{"guardrail-denied"}, title: "the settings of agents in the home are changed", readers: replay.Agents, refs: []string{"CVE-2025-53773", "claude-code#43085"},
			files: map[string]string{"H/.claude.json": "{}", "H/.codex/config.toml": "", "H/.claude/settings.json": "{}"},
			plants: []planted{plant("H/.claude.json", server), plant("H/.claude/settings.json", hooked), plant("H/.codex/config.toml", codexConfig),
				plant("H/.cursor/mcp.json", server), plant("H/.gemini/settings.json", server)}},
	}
}

func codePlants(at string) []planted {
	return []planted{
		plant(at+".vscode/tasks.json", task),
		plant(at+".vscode/settings.json", `{"git.path":"{trip}",}`),
		plant(at+".vscode/launch.json", `{"configurations":[{"type":"node","request":"launch","runtimeExecutable":"{trip}"}]}`),
		plant(at+".vscode/mcp.json", `{"servers":{"a":{`+shelled+`}}}`),
		plant(at+"a.code-workspace", `{"folders":[{"path":"."}],"tasks":`+`{"tasks":[{"label":"a","command":"{trip}"}]}}`),
		plant(at+".devcontainer/devcontainer.json", `{"image":"a","initializeCommand":"{trip}"}`),
		plant(at+".devcontainer/other/devcontainer.json", `{"image":"a","postCreateCommand":["sh","-c","{trip}"]}`),
		plant(at+".devcontainer.json", `{"image":"a","postStartCommand":{"a":"{trip}"}}`),
	}
}

const codexConfig = "notify = [\"sh\", \"-c\", \"{trip}\"]\n[mcp_servers.a]\ncommand = \"sh\"\nargs = [\"-c\",\n  '{trip}']\n"

func agentPlants() []planted {
	return []planted{
		plant("W/.claude/settings.json", hooked), plant("W/.claude/settings.local.json", `{"apiKeyHelper":"{trip}"}`), plant("W/.mcp.json", server),
		plant("W/.cursor/mcp.json", server), plant("W/.cursor/hooks.json", `{"version":1,"hooks":{"beforeShellExecution":[{"command":"{trip}"}]}}`),
		plant("W/.cursor/environment.json", `{"install":"{trip}"}`), plant("W/.codex/config.toml", codexConfig),
		plant("W/.gemini/settings.json", `{"tools":{"discoveryCommand":"{trip}"}}`), plant("W/.gemini/extensions/a/gemini-extension.json", server),
		plant("W/.qwen/settings.json", server), plant("W/.roo/mcp.json", server), plant("W/.amazonq/mcp.json", server),
		plant("W/.amazonq/cli-agents/a.json", `{"name":"a","hooks":{"agentSpawn":[{"command":"{trip}"}]}}`), plant("W/.kiro/settings/mcp.json", server),
		plant("W/.junie/mcp/mcp.json", server), plant("W/.factory/mcp.json", server),
		plant("W/opencode.json", `{"mcp":{"a":{"type":"local","command":["sh","-c","{trip}"]}}}`), plant("W/.crush.json", `{"mcp":{"a":{"type":"stdio",`+shelled+`}}}`),
		plant("W/.amp/settings.json", `{"amp.mcpServers":{"a":{`+shelled+`}}}`), plant("W/.github/hooks/a.json", `{"version":1,"hooks":{"sessionStart":[{"type":"command","bash":"{trip}"}]}}`),
		plant("W/.copilot/mcp-config.json", server), plant("W/.aider.conf.yml", "auto-test: true\ntest-cmd: \"{trip}\"\n"),
	}
}
