//go:build linux

package probe

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// agentsHost are what the host's own programs around an agent obey.
func agentsHost() []Row {
	return []Row{
		{ID: "AGT-006", Kind: Host, Promise: "P10", Title: "a text that a link carries is pasted behind the command, and reads like the launcher's flags", Refs: []string{"Claude Code deeplink (0day.click)", "getopt(3)"},
			Setup: pasted("--rw=O", "--rw", "O", "--ro=H", "--ro", "H", "--policy=O/wide.yaml", "--policy", "O/wide.yaml", "--workspace=O", "--settings=W/evil.json", "--", "--rw=O"),
			// What is pasted is the command's; a launcher that refuses it is right too.
			RefusalHolds: true, Action: "both", Args: outsideAndHome},
		{ID: "AGT-006b", Kind: Host, Promise: "P10", Title: "a variable's value carries words that read like the launcher's flags", Refs: []string{"Claude Code deeplink (0day.click)"},
			Options: Options{Env: []string{"PROMPT=x --rw=/ --policy=wide.yaml", "OPTIONS=--rw=/\n--rw\n/"}}, RefusalHolds: true, Action: "both", Args: outsideAndHome},
		{ID: "AGT-011", Kind: Host, Title: "an answer is written where everybody knows, and a link lies there", Refs: []string{"CVE-2026-46406", "CWE-377"},
			Setup: knownTemp, Harmless: "its temporary directory may be its own", Action: "agent-temp"},
		{ID: "AGT-011b", Kind: Host, Promise: "P1", Title: "temporary files of the launcher, or of the agent, lie where others read them", Refs: []string{"CVE-2026-46406", "CWE-377"},
			Setup: watchedTemp, Harmless: "its temporary directory may be its own", Action: "agent-temp", Args: []string{"path=B/tmp/answer.md\nB/tmp/agent/answer.md"}},
		{ID: "AGT-321", Kind: Sandbox, Promise: "P3", Title: "programs of the project that the user's own settings of agents name are written anew", Refs: []string{"code.claude.com/docs/en/settings", "CVE-2025-54136"},
			Files: map[string]string{"W/ci/line.sh": hook, "W/srv/it": hook, "W/ci/tell.py": "pass\n"}, Keep: []string{"W/ci/line.sh", "W/srv/it", "W/ci/tell.py"},
			Setup: ownSettings, Action: "overwrite", Args: []string{"path=W/ci/line.sh\nW/srv/it\nW/ci/tell.py"}},
	}
}

// ownSettings are the user's settings of agents, with commands of this project.
func ownSettings(w *World) error {
	return errors.Join(
		w.File("H/.claude/settings.json", `{"statusLine": {"type": "command", "command": "sh `+w.Path("W/ci/line.sh")+`"}}`),
		w.File("H/.claude.json", `{"mcpServers": {"a": {"command": "`+w.Path("W/srv/it")+`"}}}`),
		w.File("H/.codex/config.toml", `notify = ["python3", "`+w.Path("W/ci/tell.py")+`"]`))
}

// pasted starts the launcher by a handler that ends no list of flags.
func pasted(words ...string) func(*World) error {
	return func(w *World) error {
		launch, err := w.helper()
		if err != nil {
			return err
		}
		for i := range words {
			flag, value, ok := strings.Cut(words[i], "=")
			if words[i] = w.Path(words[i]); ok {
				words[i] = flag + "=" + w.Path(value)
			}
		}
		w.Under = []string{launch, "-child", "x", "unterminated", "text=" + strings.Join(words, "\n"), "--"}
		return w.File("O/wide.yaml", "version: 1\nfilesystem:\n  write: ["+w.O+", "+w.H+"]\n")
	}
}

// knownTemp plants a link below /tmp, under names that the row tells the action.
func knownTemp(w *World) error {
	dir := "/tmp/probe-agent-" + hexes(6)
	if err := os.Mkdir(dir, 0o777); err != nil {
		return err
	}
	w.Defer(func() error { return os.RemoveAll(dir) })
	w.Absent(dir + "/answer.md")
	w.Arg("path=" + dir + "/response.md\n" + dir + "/answer.md\n" + dir + "/sub/canary")
	return errors.Join(os.Symlink(w.Path("O/canary"), dir+"/response.md"), os.Symlink(w.Path("O/sub"), dir+"/sub"))
}

// watchedTemp makes a temporary directory of the launcher's and looks at what
// comes into being there, also when it goes again.
func watchedTemp(w *World) error {
	dir := w.Path("B/tmp")
	if err := errors.Join(os.Mkdir(dir, 0o777), os.Chmod(dir, 0o777|os.ModeSticky)); err != nil {
		return err
	}
	w.Env = append(w.Env, "TMPDIR="+dir)
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return err
	}
	w.Defer(func() error { return unix.Close(fd) })
	if _, err := unix.InotifyAddWatch(fd, dir, unix.IN_CREATE|unix.IN_MOVED_TO); err != nil {
		return err
	}
	w.seen = append(w.seen, made(fd))
	return nil
}

// made is an inotify descriptor of a directory in which nothing may be made.
type made int

func (m made) effects() []string {
	buf := make([]byte, 4096)
	n, err := unix.Read(int(m), buf)
	if err != nil || n < unix.SizeofInotifyEvent {
		return nil
	}
	name, _, _ := strings.Cut(string(buf[unix.SizeofInotifyEvent:n]), "\x00")
	return []string{fmt.Sprintf("in the temporary directory of everybody there came to be %q", name)}
}

func (made) received() []byte { return nil }

// agentsDeferred are files that are written inside, and an agent that is
// started outside, later, in the same project.
func agentsDeferred() []Row {
	later := func(id, title string, refs []string, write string) Row {
		return Row{ID: id, Kind: Host, Promise: "P3", Title: title, Refs: refs, Harmless: "what counts is what the agent outside starts afterwards", Accept: mutateDenials,
			Drive: thenOutside, Action: "agent-authors", Args: []string{"path=" + write}}
	}
	with := func(r Row, files, links map[string]string) Row {
		r.Files, r.Links, r.Setup = files, links, runnableScripts
		return r
	}
	all := "W/.claude/settings.json\nW/.claude/settings.local.json\nW/.mcp.json\nW/.claude/commands/a.md\nW/.claude/skills/a/SKILL.md\nW/.gemini/settings.json\nW/.gemini/extensions/a/gemini-extension.json\n" +
		"W/.qwen/settings.json\nW/.cursor/mcp.json\nW/.cursor/hooks.json\nW/.cursor/environment.json\nW/.codex/config.toml\nW/.codex/hooks.json\nW/.vscode/mcp.json\nW/.roo/mcp.json\nW/.amazonq/mcp.json\n" +
		"W/.amazonq/cli-agents/a.json\nW/.kiro/settings/mcp.json\nW/.copilot/mcp-config.json\nW/.github/hooks/a.json\nW/opencode.json\nW/.opencode/opencode.json"
	nested := strings.ReplaceAll(all, "W/", "W/packages/deep/")
	nested = nested + "\n" + strings.ReplaceAll(nested, "W/packages/deep/", "W/packages/new/")
	settings := "{\"hooks\": {\"SessionStart\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"./scripts/lint.sh\"}]}]}, \"enableAllProjectMcpServers\": true}\n"
	named := with(later("AGT-010e", "the settings stay, and the script that a hook in them names is written anew", []string{"CVE-2025-54136"}, "W/scripts/lint.sh\nW/tools/server"),
		map[string]string{"W/.claude/settings.json": settings, "W/.mcp.json": "{\"mcpServers\": {\"a\": {\"command\": \"./tools/server\"}}}\n", "W/scripts/lint.sh": hook, "W/tools/server": hook}, nil)
	loads := with(later("AGT-010g", "the settings and the script that they name stay, and what that script loads is written anew", []string{"CVE-2025-54136"}, "W/scripts/common.sh"),
		map[string]string{"W/.claude/settings.json": settings, "W/.mcp.json": "{}\n", "W/scripts/lint.sh": "#!/bin/sh\n. ./scripts/common.sh\n", "W/scripts/common.sh": hook}, nil)
	loads.Residual = "what a program loads that an agent's settings name is not followed: it is the project's own code, which whoever starts the agent outside runs"
	deep := with(later("AGT-010b", "an agent writes settings below the top, where the next session begins", []string{"CVE-2025-59536"}, nested), map[string]string{"W/packages/deep/main.go": "package main\n"}, nil)
	second := later("AGT-010f", "a second name of the settings, that was there before, is written", []string{"link(2)"}, "W/notes/plain.json")
	second.Setup = func(w *World) error {
		if err := errors.Join(w.File("W/.claude/settings.json", "{}\n"), w.File("W/notes/keep", "")); err != nil {
			return err
		}
		return os.Link(w.Path("W/.claude/settings.json"), w.Path("W/notes/plain.json"))
	}
	return []Row{
		later("AGT-010", "an agent writes hooks, servers, skills and plug-ins into the project, and the next session is outside", []string{"TNG omac poc_self_skill_escape_test.go", "CVE-2026-25725"}, all),
		deep,
		with(later("AGT-010c", "the settings' directory is a link into the project, and what it leads to is written", []string{"github.com/anthropics/claude-code/issues/57266"}, "W/docs/agent/settings.json\nW/docs/agent/commands/a.md"),
			map[string]string{"W/docs/agent/notes.md": "notes\n"}, map[string]string{"W/.claude": "docs/agent"}),
		with(later("AGT-010d", "the list of servers is a link into the project, and what it leads to is written, or made", []string{"symlink(7)"}, "W/config/servers.json\nW/config/cursor.json"),
			map[string]string{"W/.claude/settings.json": settings, "W/config/servers.json": "{}\n"}, map[string]string{"W/.mcp.json": "config/servers.json", "W/.cursor/mcp.json": "../config/cursor.json"}),
		named, loads, second,
	}
}

// runnableScripts makes those files of the project programs that are to be.
func runnableScripts(w *World) error {
	for _, t := range []string{"W/scripts/lint.sh", "W/tools/server"} {
		if err := os.Chmod(w.Path(t), 0o755); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// thenOutside plays the row, and then starts the stand-in outside, as its user
// would, in every directory of the workspace that has settings.
func thenOutside(s *Session) {
	s.Run(Command{Options: s.Row.Options})
	agent, err := s.World.helper()
	if err != nil {
		s.Fail(err)
		return
	}
	for _, dir := range []string{"", "packages/deep", "packages/new"} {
		if !exists(filepath.Join(s.World.W, dir)) {
			continue
		}
		ctx, cancel := context.WithTimeout(s.ctx, 20*time.Second)
		c := exec.CommandContext(ctx, agent, "-child", "x", "agent-start", "W="+s.World.W, "O="+s.World.O, "H="+s.World.H, "dir="+dir)
		c.Env = []string{"HOME=" + s.World.H, "PATH=" + os.Getenv("PATH")}
		c.Dir = filepath.Join(s.World.W, dir)
		c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
		c.WaitDelay = time.Second
		// What it says does not count: what it starts leaves a file outside.
		if err := c.Run(); err != nil && c.ProcessState == nil {
			s.Fail(fmt.Errorf("starting the agent outside: %w", err))
		}
		cancel()
	}
}
