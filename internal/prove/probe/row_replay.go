//go:build linux

package probe

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"holdfast.dev/holdfast/internal/floor/paths"
	"holdfast.dev/holdfast/internal/prove/replay"
)

// replayRow is a row whose action plants payloads and whose oracle is the human
// who then starts programs.
type replayRow struct {
	id, title string
	refs      []string
	plants    []planted
	programs  []replay.Program
	readers   []replay.Reader
	files     map[string]string
	setup     func(*World) error
	residual  string
	rules     []string // that must raise an alert
}

func (r replayRow) row(class string) Row {
	row := Row{ID: r.id, Class: class, Kind: Sandbox, Promise: "P3", Title: r.title, Refs: r.refs, Files: r.files, Setup: arming(r.setup),
		Harmless: "what counts is what the programs of a human execute afterwards", Accept: append([]string{"EEXIST", "ENOTDIR"}, Denials...),
		Residual: r.residual, Trace: r.trailOf(), Oracle: fired(r.plants...), Action: "replay-plant", Args: []string{plantsArg(r.plants)}}
	for _, p := range r.programs {
		for _, need := range p.Needs {
			if need = "program " + need; !slices.Contains(row.Needs, need) {
				row.Needs = append(row.Needs, need)
			}
		}
	}
	row.Drive = func(s *Session) {
		s.Run(Command{})
		if len(r.programs) > 0 {
			s.Replay(r.programs...)
		}
		s.Reread(r.readers...)
	}
	return row
}

// replayTraces are those of rows in which only some of the files are held back.
var replayTraces = sync.OnceValue(func() map[string]Trace {
	return map[string]Trace{
		"DEF-025": trail(quarantined("W/.npmrc"), did("file.write", "W/package.json", "W/node_modules/.bin/probe-tool", "W/tools/shell", "W/tools/hook.cjs")),
	}
})

// trailOf is what must be seen of each payload: of what was there, or belongs
// to what was, that it was refused; of what is held back at the end that it was;
// of all else that it was written, in the home to a private place.
func (r replayRow) trailOf() (t Trace) {
	for _, table := range []map[string]Trace{gitTraces(), replayTraces()} {
		if t, ok := table[r.id]; ok {
			return t
		}
	}
	for _, p := range r.plants {
		_, there := r.files[p.At]
		whole := heldAs(p.At)
		for name := range r.files {
			there = there || whole != p.At && paths.Below(whole, name)
		}
		switch {
		case strings.HasPrefix(p.At, "O/"):
			t = trail(t, refused("view", "file.mkdir", "O"))
		case p.flag != "" || p.never != "" || r.residual != "" || strings.HasPrefix(p.At, "H/"):
			t = trail(t, did("file.write", p.At))
		case there && filepath.Dir(p.At) == whole || there && whole == p.At:
			t = trail(t, refused("protected", "file.write", p.At))
		case there:
			t = trail(t, refused("protected", "file.mkdir", filepath.Join(whole, strings.Split(strings.TrimPrefix(p.At, whole+"/"), "/")[0])))
		default:
			t = trail(t, quarantined(whole))
		}
	}
	return trail(t, raised(r.rules...))
}

func replayRows() []Row {
	var rows []Row
	for _, r := range slices.Concat(shellReplays(), buildReplays(), editorReplays(), readReplays()) {
		rows = append(rows, r.row(classDeferred))
	}
	for _, r := range slices.Concat(gitReplays(), gitStateReplays()) {
		rows = append(rows, r.row(classGit))
	}
	return rows
}

const (
	sh = "#!/bin/sh\n{trip}\n"
	// unlisted is why a name that no list has can be executed afterwards.
	unlisted = "files that hold source code, and files that a file of the user's own names, are not on the list of protected names; what is to be protected besides is named by workspace.protect"
)

// every is the same payload at several names.
func every(text string, at ...string) []planted {
	var out []planted
	for _, a := range at {
		out = append(out, plant(a, text))
	}
	return out
}

func shellReplays() []replayRow {
	return []replayRow{
		{id: "DEF-020", title: "bash is started in a home that is kept in the workspace", refs: []string{"bash(1)", "NomShub (~/.zshenv)"},
			programs: []replay.Program{replay.Bash},
			plants: append(every("{trip}\n", "W/.bash_profile", "W/.bash_logout", "W/.bashrc", "W/second/.bash_login", "W/third/.profile"),
				plant("W/.inputrc", "\"#\": \"{trip}\\n\"\n"))},
		{id: "DEF-020b", rules: []string{"editor-denied"}, title: "the same, and the files are there before", refs: []string{"bash(1)"}, programs: []replay.Program{replay.Bash},
			files:  map[string]string{"W/.bash_profile": "", "W/.bashrc": "", "W/.inputrc": "", "W/second/.bash_login": ""},
			plants: append(every("{trip}\n", "W/.bash_profile", "W/.bashrc", "W/second/.bash_login"), plant("W/.inputrc", "\"#\": \"{trip}\\n\"\n"))},
		{id: "DEF-021", title: "zsh is started in a home that is kept in the workspace", refs: []string{"zsh(1)", "NomShub (~/.zshenv)"},
			programs: []replay.Program{replay.Zsh},
			plants:   every("{trip}\n", "W/.zshenv", "W/.zprofile", "W/.zshrc", "W/.zlogin", "W/.zlogout")},
		{id: "DEF-021b", title: "the start-up files of zsh are there before, and compiled ones are put beside them", refs: []string{"zshbuiltins(1) zcompile"},
			files: map[string]string{"W/.zshrc": "", "W/.zshenv": ""}, setup: compiled, programs: []replay.Program{replay.ZshCompiled},
			plants: []planted{plant("W/.zshrc.zwc", "").linked("W/tools/.zshrc.zwc"), plant("W/.zshenv.zwc", "").linked("W/tools/.zshenv.zwc")}},
		{id: "DEF-021c", title: "less is started in a home that is kept in the workspace", refs: []string{"lesskey(1)"}, programs: []replay.Program{replay.Less},
			plants: every("#env\nLESSOPEN=|{trip} %s\n", "W/.lesskey", "W/.config/lesskey")},
		{id: "DEF-022", title: "fish is started in a home that is kept in the workspace", refs: []string{"fish(1)"},
			programs: []replay.Program{replay.Fish},
			plants: append(every("{trip}\n", "W/.config/fish/config.fish", "W/.config/fish/conf.d/a.fish", "W/.config/fish/completions/probe_tool.fish"),
				plant("W/.config/fish/functions/probe_tool.fish", "function probe_tool\n  {trip}\nend\n"))},
		{id: "DEF-023", title: "direnv is entered where the user has allowed everything below", refs: []string{"direnv.toml(1) whitelist"},
			files: map[string]string{"W/sub/keep": ""},
			setup: func(w *World) error {
				return w.File("H/.config/direnv/direnv.toml", "[whitelist]\nprefix = [ \""+w.W+"\" ]\n")
			},
			programs: []replay.Program{replay.Direnv}, plants: every("{trip}\n", "W/.envrc", "W/sub/.envrc")},
		{id: "DEF-023b", title: "an .envrc that was allowed before loads what can be written", refs: []string{"direnv-stdlib(1) dotenv"},
			setup: func(w *World) error { return allowed(w, "dotenv_if_exists\n") }, files: map[string]string{"W/sub/keep": ""},
			programs: []replay.Program{replay.Direnv},
			plants:   []planted{flag("W/.env", "LESSOPEN='|{trip} %s'\n")}},
		{id: "DEF-023c", title: "the same, and what it sources is no name that programs know", refs: []string{"direnv-stdlib(1) source_env"},
			setup: func(w *World) error { return allowed(w, "source_env_if_exists tools/env.sh\n") }, files: map[string]string{"W/sub/keep": ""},
			programs: []replay.Program{replay.Direnv}, residual: unlisted,
			plants: []planted{plant("W/tools/env.sh", "{trip}\n")}},
		{id: "DEF-024", title: "programs of the project lie on the user's search path", refs: []string{"npm-run-script(1)", "PATH"},
			programs: []replay.Program{replay.PathBin}, plants: []planted{flag("W/node_modules/.bin/tsc", sh)}},
		{id: "DEF-024b", title: "the same, in a directory that programs do not know", refs: []string{"PATH"}, residual: unlisted,
			programs: []replay.Program{replay.PathBin}, plants: []planted{plant("W/bin/ls", sh)}},
	}
}

// allowed makes an .envrc and the file by which direnv knows that its user has
// agreed to that content: direnv(1), and the name is the SHA-256 of path and
// content.
func allowed(w *World, content string) error {
	path := filepath.Join(w.W, ".envrc")
	sum := sha256.Sum256([]byte(path + "\n" + content))
	if err := w.File("W/.envrc", content); err != nil {
		return err
	}
	return w.File(fmt.Sprintf("H/.local/share/direnv/allow/%x", sum), path+"\n")
}

// compiled makes compiled start-up files whose payload is known only now: the
// files that are made of have the names of those that zsh looks for.
func compiled(w *World) error {
	for _, name := range []string{".zshrc", ".zshenv"} {
		at := w.Path("O/" + name)
		if err := w.write(at, replay.Trip(w.O, w.armed.token, "W/"+name+".zwc")+"\n"); err != nil {
			return err
		}
		out := w.Path("W/tools/" + name + ".zwc")
		if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
			return err
		}
		if b, err := exec.Command("zsh", "-f", "-c", `zcompile "$1" "$2"`, "zsh", out, at).CombinedOutput(); err != nil {
			return fmt.Errorf("compiling a file of zsh: %w: %s", err, b)
		}
	}
	return nil
}

func buildReplays() []replayRow {
	generic := []string{"general knowledge of the tools' manuals"}
	node := []string{"CVE-2025-59828", "CVE-2025-65099"}
	return []replayRow{
		{id: "DEF-025", title: "npm installs a project", refs: node, programs: []replay.Program{replay.NPM},
			plants: []planted{
				flag("W/package.json", `{"name":"w","version":"1.0.0","scripts":{"preinstall":"{trip}","postinstall":"probe-tool","prepare":"node -e 0"}}`),
				flag("W/node_modules/.bin/probe-tool", sh),
				plant("W/.npmrc", "script-shell={W}/tools/shell\nnode-options=--require={W}/tools/hook.cjs\n").inert("it names the next two"),
				plant("W/tools/shell", "#!/bin/sh\n{trip}\nexec /bin/sh \"$@\"\n"),
				plant("W/tools/hook.cjs", "require('child_process').execSync('{trip}')\n"),
			}},
		{id: "DEF-026", title: "make builds a project", refs: generic, programs: []replay.Program{replay.Make},
			files:  map[string]string{"W/Makefile": "all:\n", "W/plain/Makefile": "all: ; @true\n-include config.mk\n"},
			plants: []planted{flag("W/GNUmakefile", "all: ; @true $(shell {trip})\n"), flag("W/plain/config.mk", "$(shell {trip})\n")}},
		{id: "DEF-026b", title: "the same, with the makefile that was there", refs: generic, programs: []replay.Program{replay.Make},
			files:  map[string]string{"W/Makefile": "all:\n", "W/plain/makefile": "all:\n"},
			plants: []planted{flag("W/Makefile", "all: ; @{trip}\n"), flag("W/plain/makefile", "all: ; @{trip}\n")}},
		{id: "DEF-027", title: "pre-commit runs the hooks of a project", refs: []string{"pre-commit.com"}, programs: []replay.Program{replay.PreCommit},
			setup:  inGit(nil, "W"),
			plants: []planted{plant("W/.pre-commit-config.yaml", "repos:\n- repo: local\n  hooks:\n  - {id: a, name: a, language: system, entry: '{trip}', always_run: true, pass_filenames: false}\n")}},
		{id: "DEF-028", title: "python is started in a project", refs: []string{"docs.python.org/3/library/site.html"}, programs: []replay.Program{replay.Python},
			setup: virtualEnvironment, files: map[string]string{"W/prog.py": "pass\n"},
			plants: []planted{
				flag("W/sitecustomize.py", python), flag("W/usercustomize.py", python),
				flag("W/.venv/lib/"+pythonName()+"/site-packages/late.pth", "import os; os.system('{trip}')\n").named("W/.venv/lib"),
				plant("W/.pythonrc", python), plant("W/.pdbrc", "import os; os.system('{trip}')\n"),
			}},
		{id: "DEF-028b", title: "modules of the working directory come before those of python", refs: []string{"docs.python.org/3/using/cmdline.html#cmdoption-m"},
			programs: []replay.Program{replay.PythonModule}, residual: unlisted,
			plants: []planted{plant("W/json/tool.py", python), plant("W/json/__init__.py", "").inert("it makes the directory a package")}},
		{id: "DEF-028c", title: "a virtual environment's programs are replaced", refs: []string{"docs.python.org/3/library/venv.html"}, programs: []replay.Program{replay.VirtualEnvironment},
			setup: virtualEnvironment, files: map[string]string{"W/.venv/bin/pip": "#!/bin/sh\n", "W/.venv/bin/activate": "PATH=$PWD/.venv/bin:$PATH\n"},
			plants: []planted{flag("W/.venv/bin/pip", sh).named("W/.venv"), flag("W/.venv/bin/activate", "PATH=$PWD/.venv/bin:$PATH\n{trip}\n").named("W/.venv")}},
		{id: "DEF-028d", title: "pytest tests a project", refs: []string{"docs.pytest.org"}, programs: []replay.Program{replay.Pytest},
			files:  map[string]string{"W/sub/test_a.py": "def test_a():\n    pass\n"},
			plants: []planted{flag("W/conftest.py", python), flag("W/sub/conftest.py", python)}},
	}
}

const python = "import os\nos.system('{trip}')\n"

// pythonName is the directory of the modules of the system's python, such as
// python3.11.
func pythonName() string {
	dirs, _ := filepath.Glob("/usr/lib/python3.[0-9]*")
	for _, d := range dirs {
		if exists(d + "/site.py") {
			return filepath.Base(d)
		}
	}
	return "python3"
}

// virtualEnvironment is what python3 -m venv makes, as far as it matters.
func virtualEnvironment(w *World) error {
	if err := w.File("W/.venv/pyvenv.cfg", "home = /usr/bin\ninclude-system-site-packages = false\n"); err != nil {
		return err
	}
	if err := w.File("W/.venv/lib/"+pythonName()+"/site-packages/README", ""); err != nil {
		return err
	}
	if err := os.MkdirAll(w.Path("W/.venv/bin"), 0o755); err != nil {
		return err
	}
	return os.Symlink("/usr/bin/python3", w.Path("W/.venv/bin/python"))
}

func editorReplays() []replayRow {
	const vim = "call system('{trip}')\n"
	return []replayRow{
		{id: "DEF-029", title: "vim is started in a project by a user who lets it load its settings", refs: []string{"vim starting.txt exrc", "CVE-2019-12735"},
			programs: []replay.Program{replay.Vim}, files: map[string]string{"H/.vimrc": "set exrc modeline\n", "W/second/keep": ""},
			plants: []planted{plant("W/.vimrc", vim), plant("W/second/.exrc", vim), plant("W/.vim/plugin/a.vim", vim),
				plant("W/second/notes.txt", "vim: set fdm=expr fde=system('{trip}'):\n").inert("system() is refused in the sandbox of a modeline")}},
		{id: "DEF-030", title: "tmux is started in a home that is kept in the workspace", refs: []string{"tmux(1)"}, programs: []replay.Program{replay.Tmux},
			plants: []planted{plant("W/.tmux.conf", "run-shell '{trip}'\n"), plant("W/second/.config/tmux/tmux.conf", "run-shell '{trip}'\n")}},
		{id: "DEF-031", title: "ssh is started with the configuration of a project", refs: []string{"ssh_config(5)"}, programs: []replay.Program{replay.SSH},
			plants: []planted{
				plant("W/.ssh/config", "Include {W}/.ssh/more\nMatch exec \"{trip}\"\nHost *\n").inert(""),
				plant("W/.ssh/more", "Match exec \"{trip}\"\nHost *\nProxyCommand {W}/.ssh/proxy\n"),
				plant("W/.ssh/proxy", sh)}},
		{id: "DEF-032", title: "a debugger is started in a project", refs: []string{"gdb's manual, Init File in the Current Directory"},
			programs: []replay.Program{replay.GDB}, files: map[string]string{"H/.gdbinit": "set auto-load safe-path /\n"},
			plants: []planted{plant("W/.gdbinit", "shell {trip}\n")}},
	}
}
