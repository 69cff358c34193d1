//go:build linux

package replay_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"holdfast.dev/holdfast/internal/prove/replay"
)

// reading makes a stage of which only files are read.
func reading(t *testing.T) replay.Stage {
	dir := t.TempDir()
	return replay.Stage{World: dir, Work: dir + "/w", Home: dir + "/h", Outside: dir + "/o", Token: "tok"}
}

// TestReaders checks that what a program would execute is found, and nothing
// else.
func TestReaders(t *testing.T) {
	for _, row := range []struct {
		name, path, content string
		fires               bool
	}{
		{"a task that runs on opening", "w/.vscode/tasks.json", `{"tasks":[{"command":"TRIP","runOptions":{"runOn":"folderOpen"}}]}`, true},
		{"comments and commas as VS Code allows them", "w/.vscode/tasks.json", "{ // x\n /* y */ \"tasks\":[{\"command\":\"TRIP\",},],}", true},
		{"a command of another system", "w/.vscode/tasks.json", `{"tasks":[{"command":"true","windows":{"command":"TRIP"}}]}`, false},
		{"the name of a task", "w/.vscode/tasks.json", `{"tasks":[{"label":"TRIP","command":"true"}]}`, false},
		{"a comment in a task", "w/.vscode/tasks.json", "{ // TRIP\n \"tasks\":[]}", false},
		{"what looks like a comment in a string", "w/.vscode/tasks.json", `{"tasks":[{"command":"TRIP // x"}]}`, true},
		{"a file that is cut", "w/.vscode/tasks.json", `{"tasks":[{"command":"TRIP"`, true},
		{"a setting that names a program", "w/.vscode/settings.json", `{"git.path":"TRIP"}`, true},
		{"a setting that names none", "w/.vscode/settings.json", `{"window.title":"TRIP"}`, false},
		{"a profile of the terminal", "w/.vscode/settings.json", `{"terminal.integrated.profiles.linux":{"a":{"path":"sh","args":["-c","TRIP"]}}}`, true},
		{"a container's command on the host", "w/.devcontainer/devcontainer.json", `{"initializeCommand":["sh","-c","TRIP"]}`, true},
		{"a hook", "w/.claude/settings.json", `{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"TRIP"}]}]}}`, true},
		{"a hook that is a prompt", "w/.claude/settings.json", `{"hooks":{"Stop":[{"hooks":[{"type":"prompt","prompt":"TRIP"}]}]}}`, false},
		{"settings of Claude have no comments", "w/.claude/settings.json", "{ // TRIP\n }", true},
		{"a server of tools", "w/.mcp.json", `{"mcpServers":{"a":{"command":"sh","args":["-c","TRIP"]}}}`, true},
		{"a server elsewhere", "w/.mcp.json", `{"mcpServers":{"a":{"type":"http","url":"https://TRIP"}}}`, false},
		{"a list over several lines in TOML", "w/.codex/config.toml", "[mcp_servers.a]\ncommand = \"sh\"\nargs = [\n  \"-c\",\n  \"TRIP\",\n]\n", true},
		{"another value in TOML", "w/.codex/config.toml", "model = \"TRIP\"\n[profiles.a]\nmodel = 'x'\n", false},
		{"TOML that is not read here", "w/.codex/config.toml", "mcp_servers = {a = {command = \"TRIP\"}}\n", true},
		{"a unit", "h/.config/systemd/user/a.service", "[Service]\nExecStart=@/bin/sh sh \\\n -c TRIP\n", true},
		{"the description of a unit", "h/.config/systemd/user/a.service", "[Unit]\nDescription=TRIP\n", false},
		{"a comment in a unit", "h/.config/systemd/user/a.service", "[Service]\n#ExecStart=TRIP\n", false},
		{"another section of a unit", "h/.config/systemd/user/a.service", "[Install]\nExecStart=TRIP\n", false},
		{"an entry of the desktop", "h/.config/autostart/a.desktop", "[Desktop Entry]\nExec=sh -c \"TRIP\"\n", true},
		{"a line of cron", "o/crontabs/human", "MAILTO=x\n*/5 1-3 * * mon TRIP\n", true},
		{"a name of cron", "o/crontabs/human", "@daily TRIP\n", true},
		{"a comment of cron", "o/crontabs/human", "# TRIP\n", false},
		{"an address for cron's letters", "o/crontabs/human", "MAILTO=TRIP\n", false},
		{"a run configuration", "w/.idea/runConfigurations/a.xml", `<component><configuration><option name="SCRIPT_TEXT" value="TRIP"/></configuration></component>`, true},
		{"its working directory", "w/.idea/runConfigurations/a.xml", `<component><configuration><option name="WORKING_DIRECTORY" value="TRIP"/></configuration></component>`, false},
		{"a command of aider", "w/.aider.conf.yml", "lint-cmd:\n  - \"python: TRIP\"\n", true},
		{"a setting of aider", "w/.aider.conf.yml", "model: TRIP\n", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			s := reading(t)
			write(t, filepath.Join(s.World, row.path), strings.ReplaceAll(row.content, "TRIP", s.Trip("plant")))
			marks := s.Read(readers()...)
			if fires := len(marks) > 0; fires != row.fires {
				t.Errorf("fires %v: %v", fires, marks)
			}
			for _, m := range marks {
				if m.Plant != "plant" {
					t.Errorf("the plant is called %q", m.Plant)
				}
			}
		})
	}
}

func TestReadersFollowLinksAndFearNoSize(t *testing.T) {
	s := reading(t)
	write(t, s.Work+"/elsewhere", `{"mcpServers":{"a":{"command":"`+s.Trip("linked")+`"}}}`)
	if err := os.Symlink("elsewhere", s.Work+"/.mcp.json"); err != nil {
		t.Fatal(err)
	}
	write(t, s.Work+"/opencode.json", strings.Repeat(" ", 2<<20))
	marks := s.Read(replay.Agents...)
	if len(marks) != 2 || !slices.ContainsFunc(marks, func(m replay.Mark) bool { return m.Plant == "linked" }) {
		t.Errorf("%v", marks)
	}
}

// TestTablesAreWhole checks that every program and every reader names the source
// of its rules, and that every pattern can match.
func TestTablesAreWhole(t *testing.T) {
	for _, r := range readers() {
		if r.Name == "" || r.Source == "" || len(r.Files) == 0 {
			t.Errorf("%+v is not whole", r)
		}
		for _, f := range r.Files {
			if _, err := filepath.Match(f, ""); err != nil {
				t.Errorf("%s: %v", f, err)
			}
			if !strings.HasPrefix(f, "{W}/") && !strings.HasPrefix(f, "{H}/") && !strings.HasPrefix(f, "{O}/") {
				t.Errorf("%s is no template", f)
			}
		}
	}
	for _, p := range replayable() {
		if p.Name == "" || p.Reads == "" || len(p.Needs) == 0 || len(p.Steps) == 0 {
			t.Errorf("%s is not whole", p.Name)
		}
	}
}

// readers returns all tables of what is read by rules.
func readers() []replay.Reader {
	return slices.Concat(replay.Services, replay.Editors, replay.Agents)
}

// replayable returns all that can be replayed by being started.
func replayable() []replay.Program {
	return []replay.Program{replay.Git, replay.GitKeeping, replay.GitPull, replay.GitWorktree, replay.GitContinue, replay.GitPick, replay.GitPatches, replay.Bash, replay.Zsh, replay.ZshCompiled, replay.Less, replay.Fish, replay.PathBin, replay.Direnv, replay.DirenvGit, replay.NPM, replay.Make, replay.PreCommit,
		replay.Python, replay.PythonModule, replay.VirtualEnvironment, replay.Pytest, replay.Vim, replay.Tmux, replay.SSH, replay.GDB}
}
