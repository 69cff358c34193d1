//go:build linux

package replay

// Services start what the machine starts on its own, at login or by the clock.
// The tables of cron are outside every home; {O}/crontabs stands for their place.
var Services = []Reader{
	{Name: "systemd --user", Source: "systemd.unit(5) UNIT FILE LOAD PATH, systemd.service(5), systemd.exec(5)",
		Files: []string{"{H}/.config/systemd/user/*.service", "{H}/.config/systemd/user/*.d/*.conf", "{H}/.local/share/systemd/user/*.service", "{W}/.config/systemd/user/*.service",
			"{W}/.config/systemd/user/*.d/*.conf", "{H}/.config/systemd/user/*.socket", "{W}/.config/systemd/user/*.socket"},
		Launches: sections("starting the unit, or one that wants it", "Service.Exec*", "Socket.Exec*", "Service.Environment", "Service.EnvironmentFile")},
	{Name: "systemd --user", Source: "environment.d(5)", Files: []string{"{H}/.config/environment.d/*.conf", "{W}/.config/environment.d/*.conf"},
		Launches: assignments("at login, for every service", "LD_PRELOAD", "PATH", "BASH_ENV", "ENV", "EDITOR", "PAGER", "SHELL", "LESSOPEN", "PYTHONSTARTUP", "GIT_SSH_COMMAND")},
	{Name: "the desktop", Source: "specifications.freedesktop.org/autostart-spec", Files: []string{"{H}/.config/autostart/*.desktop", "{W}/.config/autostart/*.desktop"},
		Launches: sections("at login", "Desktop Entry.Exec", "Desktop Entry.TryExec")},
	{Name: "the desktop", Source: "specifications.freedesktop.org/desktop-entry-spec", Files: []string{"{H}/.local/share/applications/*.desktop", "{W}/.local/share/applications/*.desktop", "{W}/*.desktop"},
		Launches: sections("on a click", "Desktop Entry.Exec", "Desktop Action *.Exec")},
	{Name: "D-Bus", Source: "dbus.freedesktop.org/doc/dbus-specification.html#message-bus-starting-services", Files: []string{"{H}/.local/share/dbus-1/services/*.service", "{W}/.local/share/dbus-1/services/*.service"},
		Launches: sections("a call to the name", "D-BUS Service.Exec")},
	{Name: "cron", Source: "crontab(5)", Files: []string{"{O}/crontabs/*"}, Launches: crontab},
	{Name: "sshd", Source: "sshd(8) AUTHORIZED_KEYS FILE FORMAT, SSHRC", Files: []string{"{H}/.ssh/rc", "{H}/.ssh/authorized_keys"}, Launches: whole("a login")},
}

const opening, asked = "opening the project", "the user starting it by name"

var (
	tasks = []rule{
		{at: "tasks/*", fields: []string{"command", "args", "linux/command", "linux/args"}, where: "runOptions/runOn=folderOpen", when: opening},
		{at: "tasks/*", fields: []string{"command", "args", "linux/command", "linux/args", "options/shell/executable"}, when: asked},
	}
	debugging = []rule{{at: "configurations/*", fields: []string{"program", "runtimeExecutable", "runtimeArgs", "miDebuggerPath", "debugServerPath", "python", "command", "pipeTransport/pipeProgram", "setupCommands/*/text"}, when: "starting to debug"}}
	launchers = namedSettings("git.path", "python.defaultInterpreterPath", "python.pythonPath", "python.terminal.executeInFileDir", "eslint.runtime", "eslint.nodePath", "php.validate.executablePath",
		"rust-analyzer.server.path", "rust-analyzer.check.overrideCommand", "rust-analyzer.cargo.buildScripts.overrideCommand", "clangd.path", "C_Cpp.default.compilerPath", "cmake.cmakePath",
		"typescript.tsdk", "go.alternateTools", "go.goroot", "terminal.integrated.profiles.linux", "terminal.integrated.automationProfile.linux", "terminal.integrated.env.linux",
		"npm.packageManager", "docker.dockerPath", "terminal.external.linuxExec", "emeraldwalk.runonsave", "deno.path", "ruff.path", "black-formatter.path", "mypy-type-checker.path")
)

func namedSettings(keys ...string) []rule {
	var out []rule
	for _, k := range keys {
		out = append(out, rule{at: k, when: "using what the setting names"})
	}
	return out
}

func below(dir string, rules []rule) []rule {
	var out []rule
	for _, r := range rules {
		r.at = dir + "/" + r.at
		out = append(out, r)
	}
	return out
}

// Editors open the project.
var Editors = []Reader{
	{Name: "VS Code", Source: "code.visualstudio.com/docs/debugtest/tasks#_run-behavior", Files: []string{"{W}/.vscode/tasks.json"}, Launches: settings(parseJSONC, tasks...)},
	{Name: "VS Code", Source: "code.visualstudio.com/docs/debugtest/debugging-configuration", Files: []string{"{W}/.vscode/launch.json"}, Launches: settings(parseJSONC, debugging...)},
	{Name: "VS Code or Cursor", Source: "code.visualstudio.com/docs/configure/settings and those of the extensions", Files: []string{"{W}/.vscode/settings.json"}, Launches: settings(parseJSONC, launchers...)},
	{Name: "VS Code", Source: "code.visualstudio.com/docs/copilot/reference/mcp-configuration", Files: []string{"{W}/.vscode/mcp.json"},
		Launches: settings(parseJSONC, rule{at: "servers/*", fields: []string{"command", "args"}, when: "starting the server of tools"})},
	{Name: "VS Code", Source: "code.visualstudio.com/docs/editing/workspaces/multi-root-workspaces", Files: []string{"{W}/*.code-workspace"},
		Launches: settings(parseJSONC, append(append(below("tasks", tasks), below("launch", debugging)...), below("settings", launchers)...)...)},
	{Name: "Dev Containers", Source: "containers.dev/implementors/json_reference/#lifecycle-scripts", Files: []string{"{W}/.devcontainer/devcontainer.json", "{W}/.devcontainer.json", "{W}/.devcontainer/*/devcontainer.json"},
		Launches: settings(parseJSONC, rule{at: "initializeCommand", when: "opening the container, on the host"}, rule{at: "onCreateCommand", when: "making the container"}, rule{at: "updateContentCommand", when: "making the container"},
			rule{at: "postCreateCommand", when: "making the container"}, rule{at: "postStartCommand", when: "starting the container"}, rule{at: "postAttachCommand", when: "entering the container"})},
	{Name: "a JetBrains IDE", Source: "jetbrains.com/help/idea/run-debug-configuration.html", Files: []string{"{W}/.idea/runConfigurations/*.xml", "{W}/.run/*.run.xml", "{W}/.idea/workspace.xml"},
		Launches: options("configuration", asked+", or a list of start-up tasks", "SCRIPT_TEXT", "SCRIPT_PATH", "INTERPRETER_PATH", "SDK_HOME", "SCRIPT_NAME", "node-interpreter", "command", "scriptText")},
	{Name: "a JetBrains IDE", Source: "jetbrains.com/help/idea/settings-tools-file-watchers.html", Files: []string{"{W}/.idea/watcherTasks.xml"}, Launches: options("TaskOptions", "saving a file", "program", "arguments")},
	{Name: "Zed", Source: "zed.dev/docs/tasks", Files: []string{"{W}/.zed/tasks.json"}, Launches: settings(parseJSONC, rule{at: "*", fields: []string{"command", "args"}, when: asked})},
	{Name: "Zed", Source: "zed.dev/docs/configuring-zed, configuring-languages", Files: []string{"{W}/.zed/settings.json"},
		Launches: settings(parseJSONC, rule{at: "lsp/*/binary", fields: []string{"path", "arguments"}, when: opening}, rule{at: "context_servers/*", fields: []string{"command", "args"}, when: opening},
			rule{at: "terminal/shell", when: "opening a terminal"}, rule{at: "formatter/external", fields: []string{"command", "arguments"}, when: "saving a file"},
			rule{at: "languages/*/formatter/external", fields: []string{"command", "arguments"}, when: "saving a file"})},
	{Name: "Sublime Text", Source: "sublimetext.com/docs/build_systems.html", Files: []string{"{W}/*.sublime-project"}, Launches: settings(parseJSONC, rule{at: "build_systems/*", fields: []string{"cmd", "shell_cmd"}, when: "building"})},
}
