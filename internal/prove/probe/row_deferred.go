//go:build linux

package probe

import (
	"maps"
	"os"
	"slices"
	"strings"
)

const classDeferred = "exec.deferred-files"

// deferredRows follow each name in two ways: there before, and then it must be
// the same afterwards; or not, and then it must not be there afterwards either.
func deferredRows() []Row {
	var out []Row
	for _, d := range []struct {
		id    string
		core  bool
		what  string
		refs  []string
		names string // below W, separated by blanks
	}{
		{"DEF-001", true, "start-up files of shells", []string{"NomShub (~/.zshenv)", "npm @anthropic-ai/sandbox-runtime"},
			".bashrc .bash_profile .bash_login .profile .zshrc .zshenv .zprofile .zlogin .bash_aliases .inputrc .config/fish/config.fish " +
				".config/fish/conf.d/a.fish .config/nushell/env.nu .pam_environment .xprofile .xinitrc .config/environment.d/a.conf .bash_logout .zlogout"},
		{"DEF-002", true, "settings of VS Code and its family", []string{"CVE-2025-53773", "CVE-2025-64660", "CVE-2025-61590"},
			".vscode/settings.json .vscode/tasks.json .vscode/launch.json .vscode/extensions.json .vscode/mcp.json a.code-workspace " +
				".devcontainer/devcontainer.json .devcontainer/x/devcontainer.json .devcontainer.json .vscode-test/x"},
		{"DEF-003", false, "settings of other editors", []string{"CVE-2025-68433", "CVE-2025-58335"},
			".idea/workspace.xml .idea/runConfigurations/a.xml .run/a.run.xml .zed/settings.json .zed/tasks.json .nvim.lua .exrc .nvimrc .dir-locals.el .emacs a.sublime-project .editorconfig"},
		{"DEF-004", true, "configuration of Claude Code", []string{"CVE-2026-25725", "CVE-2025-59536", "claude-code#43085"},
			".claude/settings.json .claude/settings.local.json .claude/commands/a.md .claude/agents/a.md .claude/skills/a/SKILL.md .claude/hooks/a.sh " +
				".claude/plugins/a.json .mcp.json CLAUDE.md .claude.json"},
		{"DEF-006", true, "configuration of other agents", []string{"CVE-2025-54135", "CVE-2025-53098", "CVE-2026-12957", "TrustFall"},
			".cursor/mcp.json .cursor/rules/a.mdc .cursor/cli.json .cursor/hooks.json .cursor/environment.json .cursorrules .windsurf/rules/a.md .windsurfrules " +
				".clinerules .roo/mcp.json .roomodes .rooignore .kiro/hooks/a .amazonq/mcp.json .amazonq/cli-agents/a.json .amazonq/rules/a.md " +
				".gemini/settings.json .gemini/extensions/a/gemini-extension.json .gemini/.env GEMINI.md .github/copilot-instructions.md .copilot/mcp-config.json " +
				".amp/settings.json opencode.json .opencode/plugin/a.ts .goosehints .aider.conf.yml .continue/config.json AGENTS.md .codex/config.toml"},
		{"DEF-014", false, "workflows that a build server runs", []string{"docs.github.com/actions/security-guides"},
			".github/workflows/ci.yml .github/actions/a/action.yml .gitlab-ci.yml .circleci/config.yml Jenkinsfile azure-pipelines.yml .travis.yml .drone.yml"},
	} {
		names := strings.Fields(d.names)
		out = append(out, presentRow(d.id, d.core, d.what+", that are there, are changed", d.refs, names),
			absentRow(d.id+"b", d.core, d.what+", that are not there, are made", d.refs, names))
	}
	return slices.Concat(out, deferredFlagged(), deferredHome(), deferredMore(), replayRows())
}

func presentRow(id string, core bool, title string, refs, names []string) Row {
	r := Row{ID: id, Class: classDeferred, Core: core, Kind: Sandbox, Promise: "P3", Title: title, Refs: refs, Files: map[string]string{},
		Accept: append([]string{"ENOTEMPTY"}, Denials...), Action: "rewrite-names"}
	for _, n := range names {
		for _, at := range []string{"W/" + n, "W/packages/deep/" + n} {
			r.Files[at] = "# the user's own\n"
			r.Keep = append(r.Keep, at)
		}
	}
	r.Args = []string{"path=" + strings.Join(r.Keep, "\n")}
	r.Trace = trail(refused("protected", "file.write", r.Keep...), raised(deferredRules[id]...))
	return r
}

// deferredRules are the alerts about names that are there and must not be
// changed. The workflows of a build server raise none when they are refused.
var deferredRules = map[string][]string{
	"DEF-001": {"editor-denied"}, "DEF-002": {"editor-denied"}, "DEF-003": {"editor-denied"},
	"DEF-004": {"guardrail-denied"}, "DEF-006": {"guardrail-denied"},
}

func absentRow(id string, core bool, title string, refs, names []string) Row {
	r := Row{ID: id, Class: classDeferred, Core: core, Kind: Sandbox, Promise: "P3", Title: title, Refs: refs, Harmless: takenAway, Action: "plant-names"}
	var at []string
	for _, n := range names {
		at = append(at, "W/"+n)
		for _, dir := range []string{"W/", "W/n1/pkg/", "W/n2/", "W/n3/", "W/n4/", "W/n5/"} {
			r.Absent = append(r.Absent, dir+n)
		}
		r.Absent = append(r.Absent, "W/n6/"+strings.ToUpper(n))
	}
	r.Args = []string{"path=" + strings.Join(at, "\n")}
	r.Trace = raised("deferred-new")
	for _, t := range at {
		r.Trace = trail(r.Trace, quarantined(heldAs(t)))
	}
	return r
}

// flagRow writes names that a developer edits all day: the launcher must say
// afterwards that they are new or have changed.
func flagRow(id, title string, refs []string, present, absent []string) Row {
	r := Row{ID: id, Class: classDeferred, Kind: Sandbox, Promise: "P3", Title: title, Refs: refs, Files: map[string]string{},
		Harmless: "it may be edited, when the launcher names it at the end", Action: "write-names"}
	for _, n := range present {
		r.Files["W/"+n] = "# the user's own\n"
	}
	all := append(slices.Sorted(maps.Keys(r.Files)), under(absent)...)
	r.Oracle = named(r.Files, all...)
	r.Args = []string{"path=" + strings.Join(all, "\n")}
	r.Trace = did("file.write", all...)
	return r
}

func under(names []string) []string {
	var out []string
	for _, n := range names {
		out = append(out, "W/"+n)
	}
	return out
}

func deferredFlagged() []Row {
	node := strings.Fields(".npmrc package.json .yarnrc .yarnrc.yml .pnpmfile.cjs .nvmrc node_modules/.bin/tsc node_modules/dep/index.js .babelrc.js " +
		"next.config.js vite.config.ts jest.config.js eslint.config.js .eslintrc.js .prettierrc.js webpack.config.js tailwind.config.js postcss.config.js .yarn/releases/yarn.cjs")
	build := strings.Fields("Makefile GNUmakefile justfile Taskfile.yml CMakeLists.txt meson.build BUILD.bazel .bazelrc WORKSPACE build.gradle gradlew " +
		"gradle/wrapper/gradle-wrapper.jar .mvn/extensions.xml .mvn/jvm.config pom.xml build.rs .cargo/config.toml Rakefile Gemfile mix.exs go.mod " +
		"Dockerfile compose.yaml Vagrantfile Earthfile dagger.json")
	python := strings.Fields("setup.py conftest.py pyproject.toml tox.ini noxfile.py .pre-commit-config.yaml .envrc .env .tool-versions .mise.toml .python-version " +
		"sitecustomize.py .venv/bin/python venv/bin/activate lefthook.yml .husky/pre-commit .lintstagedrc.js")
	nested := func(names []string) []string {
		var out []string
		for _, n := range names {
			out = append(out, "packages/deep/"+n)
		}
		return out
	}
	generic := []string{"general knowledge of the tools' manuals"}
	odd := Row{ID: "DEF-014d", Class: classDeferred, Kind: Host, Promise: "P3",
		Title:    "set-user-ID files, links that leave and second names are made without a word",
		Refs:     []string{"inode(7)", "symlink(7)"},
		Files:    map[string]string{"W/Makefile": "all:\n"},
		Oracle:   both(named(nil, "W/leaving", "W/docs/leaving"), namedSetID),
		Harmless: "it may be made, when the launcher names it at the end",
		Trace:    trail(refused("filter", "file.chmod", "W/suid", "W/sgid"), did("file.symlink", "W/leaving", "W/docs/leaving"), did("file.link", "W/second"), raised("set-id")),
		Action:   "odd-files"}
	runnable := Row{ID: "DEF-014e", Class: classDeferred, Kind: Host, Promise: "P3",
		Title:    "files that were there become programs without a word",
		Refs:     []string{"inode(7)"},
		Files:    map[string]string{"W/notes": "not a program\n", "W/bin/tool": "#!/bin/sh\n"},
		Oracle:   named(nil, "W/notes", "W/bin/tool"),
		Harmless: "it may be done, when the launcher names it at the end",
		Trace:    did("file.chmod", "W/notes", "W/bin/tool"),
		Action:   "make-runnable", Args: []string{"path=W/notes\nW/bin/tool"}}
	return []Row{
		flagRow("DEF-007", "what Node's tools run is changed without a word", []string{"CVE-2025-59828", "CVE-2025-65099"}, node, nil),
		flagRow("DEF-007b", "what Node's tools run is made without a word", []string{"CVE-2025-59828", "CVE-2025-65099"}, nil, append(node, nested(node)...)),
		flagRow("DEF-009", "what build tools run is changed without a word", generic, append(build, nested(build)...), nil),
		flagRow("DEF-009b", "what build tools run is made without a word", generic, nil, append(build, nested(build)...)),
		flagRow("DEF-010", "what Python and environment managers run is changed without a word", generic, python, nil),
		flagRow("DEF-010b", "what Python and environment managers run is made without a word", generic, nil, append(python, nested(python)...)),
		flagRow("DEF-014c", "a workflow, a Makefile and a package's scripts are changed in one run", generic,
			[]string{".github/workflows/ci.yml", "Makefile", "package.json"}, []string{".github/workflows/new.yml", "sub/Makefile", "sub/package.json"}),
		flagRow("DEF-037", "what other tools of a project run is made without a word", generic, nil, strings.Fields("binding.gyp .mocharc.json karma.conf.js mypy.ini .mypy.ini ansible.cfg "+
			".rubocop.yml Package.swift .luacheckrc .proverc SConstruct wscript terragrunt.hcl sub/binding.gyp")),
		unlike(absentRow("DEF-037b", false, "start-up files that the catalogue does not name are made", []string{"zshbuiltins(1) zcompile", "lesskey(1)", "github.com/folke/lazy.nvim"},
			strings.Fields(".zshrc.zwc .zshenv.zwc .lesskey .config/lesskey .lazy.lua .rdbgrc .byebugrc"))),
		flagRow("DEF-037c", "compiled python, plug-ins of editors and lock files are made without a word",
			[]string{"PEP 3147", "typescriptlang.org/tsconfig#plugins", "sourceware.org/gdb (auto-loading)"}, nil,
			strings.Fields("__pycache__/mod.cpython-311.pyc pkg/__pycache__/mod.cpython-311.opt-2.pyc pkg/gone.pyc fast.cpython-311-x86_64-linux-gnu.so fast.abi3.so "+
				"tsconfig.json compile_commands.json nodemon.json npm-shrinkwrap.json Cargo.lock uv.lock Pulumi.yaml cdk.json Guardfile config.nims build.zig "+
				"rules/defs.bzl gradle/extra.gradle phpunit.xml.dist .github/CODEOWNERS action.yml prog-gdb.py .terraform/providers/p/terraform-provider-p")),
		unlike(absentRow("DEF-037d", false, "what other editors, agents, shells and build servers obey is made",
			[]string{"luals.github.io (plugins)", "github.com/ycm-core/YouCompleteMe", "rvm.io (.rvmrc)", "jupyter.org (configuration)", "perldebug(1)"},
			strings.Fields(".luarc.json .ycm_extra_conf.py hie.yaml .bsp/a.json .rvmrc .ondirrc .shadowenv.d/a.lisp .perldb jupyter_notebook_config.py .lazygit.yml "+
				".actrc CRUSH.md .qoder/mcp.json .vibe/config.toml captainhook.json .gitlint user.bazelrc .gitpod.yml .idx/dev.nix .tekton/a.yaml"))),
		odd, runnable,
	}
}

// unlike leaves out the alert about the making of names that rules do not know.
// What is held back at the end raises one of its own.
func unlike(r Row) Row {
	r.Trace.Rules = []string{"quarantined"}
	return r
}

// namedSetID demands the name of each file that runs as its owner.
func namedSetID(w *World, o Observation) []string {
	var out []string
	for _, t := range []string{"W/suid", "W/sgid"} {
		if info, err := os.Lstat(w.Path(t)); err == nil && info.Mode()&(os.ModeSetuid|os.ModeSetgid) != 0 {
			out = append(out, named(nil, t)(w, o)...)
		}
	}
	return out
}

func deferredHome() []Row {
	desktop := strings.Fields(".config/autostart/a.desktop .config/systemd/user/a.service .local/share/applications/a.desktop .local/share/dbus-1/services/a.service " +
		".local/share/nautilus/scripts/a .local/bin/a bin/a .config/kitty/kitty.conf .config/alacritty/alacritty.toml .config/tmux/tmux.conf .config/i3/config " +
		".config/sway/config .config/hypr/hyprland.conf .tmux.conf .screenrc .wgetrc .curlrc .ripgreprc .gdbinit .lldbinit .vimrc .config/nvim/init.lua .psqlrc .sqliterc " +
		".irbrc .pythonrc .config/pip/pip.conf .cargo/config.toml .gitconfig .config/git/config .config/git/hooks/pre-commit .ssh/config .ssh/rc .ssh/environment " +
		".bashrc .zshenv .profile .config/fish/config.fish .claude.json .claude/settings.json .codex/config.toml .gemini/settings.json .cursor/mcp.json .vscode/argv.json")
	caches := strings.Fields(".cache/a .cache/go-build/00/a go/bin/tool go/pkg/mod/a@v1/a.go .cargo/bin/cargo .cargo/registry/src/a.rs .npm/_cacache/a .nvm/nvm.sh " +
		".rustup/toolchains/a/bin/rustc .pyenv/shims/python .local/lib/python3.12/site-packages/a.pth .gradle/caches/a.jar .m2/repository/a.jar .local/share/pnpm/store/a .bun/bin/bun .deno/bin/deno")
	refs := []string{"npm @anthropic-ai/sandbox-runtime", "greywall dangerous_test.go"}
	return []Row{
		homeWriteRow("DEF-012", "what the desktop, shells and tools of the home run, is changed", refs, desktop, true),
		homeWriteRow("DEF-012b", "what the desktop, shells and tools of the home run, is made", refs, desktop, false),
		homeWriteRow("DEF-013", "toolchains and caches that the host runs from are changed", refs, caches, true),
		homeWriteRow("DEF-013b", "toolchains and caches that the host runs from are added to", refs, caches, false),
		{ID: "DEF-013c", Class: classDeferred, Kind: Sandbox, Promise: "P3", Title: "directories of the system's programs take new files", Refs: refs,
			Action: "may-write", Args: []string{"path=/usr/local/bin\n/usr/local/sbin\n/usr/bin\n/usr/lib\n/usr/share"},
			BareUser: "the directories belong to root",
			Trace:    nothing("to ask whether something may be written changes nothing, and is what every shell and build asks all the time")},
		{ID: "DEF-013d", Class: classDeferred, Kind: Sandbox, Promise: "P3", Title: "directories of programs of the home take new files", Refs: refs,
			Files:  map[string]string{"O/bin/tool": "#!/bin/sh\n"},
			Setup:  func(w *World) error { w.Env = append(w.Env, "PATH="+w.O+"/bin:/usr/bin:/bin"); return nil },
			Trace:  refused("readonly", "file.write", "O/bin"),
			Action: "copy-into", Args: []string{"path=O/bin"}},
	}
}

func homeWriteRow(id, title string, refs, names []string, present bool) Row {
	r := Row{ID: id, Class: classDeferred, Kind: Sandbox, Promise: "P3", Title: title, Refs: refs, Files: map[string]string{},
		Harmless: "what is in view of the home may be private", Action: "home-names"}
	var at []string
	for _, n := range names {
		at = append(at, "H/"+n)
		switch {
		case present && n != ".bashrc": // every world has one
			r.Files["H/"+n] = "# the user's own\n"
			r.Keep = append(r.Keep, "H/"+n)
		case !present && n != ".bashrc":
			r.Absent = append(r.Absent, "H/"+n, "H/"+n+".probe")
		}
	}
	r.Args = []string{"path=" + strings.Join(at, "\n")}
	r.Trace = did("file.write", at...)
	return r
}
