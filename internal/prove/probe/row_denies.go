//go:build linux

package probe

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

const classDenies = "fs.deny-carveouts"

func deniesRows() []Row {
	return slices.Concat(deniesAbsent(), deniesPresent(), deniesHost(), deniesTricks(), deniesRepos())
}

// deniesAbsent are names that do not exist at the start.
func deniesAbsent() []Row {
	return []Row{
		{ID: "DNY-001", Class: classDenies, Core: true, Kind: Sandbox, Promise: "P3",
			Title:    "an agent's settings, absent at the start, are made with hooks in them",
			Refs:     []string{"CVE-2026-25725"},
			Absent:   []string{"W/.claude/settings.json"},
			Harmless: takenAway,
			Action:   "create", Args: []string{"path=W/.claude/settings.json"}},
		{ID: "DNY-001b", Class: classDenies, Kind: Sandbox, Promise: "P3",
			Title:    "an absent protected name is made by every way of making a name",
			Refs:     []string{"CVE-2026-25725", "rename(2)", "link(2)", "symlink(2)"},
			Absent:   []string{"W/made-1/.mcp.json", "W/made-2/.mcp.json", "W/made-3/.mcp.json", "W/made-4/.mcp.json", "W/made-5/.mcp.json"},
			Harmless: takenAway,
			Action:   "make-name", Args: []string{"name=.mcp.json"}},
		{ID: "DNY-001c", Class: classDenies, Kind: Sandbox, Promise: "P3",
			Title:    "a directory with a protected name in it is made elsewhere and moved in",
			Refs:     []string{"rename(2)"},
			Absent:   []string{"W/in/place/.vscode/tasks.json"},
			Harmless: takenAway,
			Action:   "move-in"},
		{ID: "DNY-002", Class: classDenies, Core: true, Kind: Sandbox, Promise: "P1",
			Title:  "a secret that comes into being outside after the start is read",
			Refs:   []string{"github.com/anthropics/claude-code/issues/92901"},
			Drive:  lateSecret,
			Action: "read-late", Args: []string{"path=H/.config/gh/hosts.yml\nO/late"}},
		{ID: "DNY-002b", Class: classDenies, Kind: Sandbox, Promise: "P1",
			Title:    "a hidden name of the workspace, absent at the start, is filled by the user during the run",
			Refs:     []string{"github.com/anthropics/claude-code/issues/92901"},
			Options:  Options{Hide: []string{"W/credentials.json"}},
			Residual: "names are hidden that are there at the start: nothing can be mounted over a name that does not exist without leaving a file on the host",
			Drive:    lateWorkspaceSecret,
			Action:   "read-late", Args: []string{"path=W/credentials.json"}},
		{ID: "DNY-002c", Class: classDenies, Kind: Sandbox, Promise: "P1",
			Title:   "a hidden file of the workspace is read under other names and by other ways",
			Refs:    []string{"github.com/anthropics/claude-code/issues/92901", "link(2)", "rename(2)"},
			Plant:   []string{"W/credentials.json", "W/sub/credentials.json"},
			Options: Options{Hide: []string{"W/credentials.json", "W/sub/credentials.json"}},
			Accept:  append([]string{"EINVAL", "EBADF"}, mutateDenials...),
			Action:  "read-hidden", Args: []string{"path=W/credentials.json\nW/sub/credentials.json"},
			// A mask may be an empty file.
			Harmless: "what can be opened there may be a mask; the token may not be seen"},
		{ID: "DNY-012", Class: classDenies, Core: true, Kind: Sandbox, Promise: "P3",
			Title:    "a repository made during the run has a hook",
			Refs:     []string{"github.com/openai/codex codex-rs/linux-sandbox", "npm @anthropic-ai/sandbox-runtime"},
			Absent:   []string{"W/sub/.git/hooks/pre-commit", "W/deep/er/.git/hooks/post-checkout"},
			Harmless: takenAway,
			Action:   "make-repo", Args: []string{"path=W/sub/.git\nW/deep/er/.git"}},
		{ID: "DNY-012b", Class: classDenies, Kind: Sandbox, Promise: "P3",
			Title:    "a repository made during the run has a configuration that runs a program",
			Refs:     []string{"git-config(1) core.fsmonitor, core.hooksPath"},
			Oracle:   armedConfigs("W/sub/.git/config", "W/bare/config", "W/plain.git/config"),
			Harmless: takenAway,
			Action:   "make-repo", Args: []string{"path=W/sub/.git\nW/bare\nW/plain.git"}},
		{ID: "DNY-012c", Class: classDenies, Kind: Sandbox, Promise: "P3",
			Title:    "a .git file made during the run points to a repository with a hook under another name",
			Refs:     []string{"gitrepository-layout(5)"},
			Oracle:   armedGitFile,
			Harmless: takenAway,
			Action:   "make-gitfile"},
		{ID: "DNY-012d", Class: classDenies, Kind: Sandbox, Promise: "P3",
			Title:    "hooks are made in a repository that had none",
			Refs:     []string{"githooks(5)"},
			Files:    repo("W/.git", nil),
			Absent:   []string{"W/.git/hooks/pre-commit", "W/.git/hooks/post-checkout"},
			Harmless: takenAway,
			Action:   "create", Args: []string{"path=W/.git/hooks/pre-commit\nW/.git/hooks/post-checkout"}},
	}
}

// lateSecret makes a credential outside while the command is looking for it.
func lateSecret(s *Session) {
	madeLate(s, "H/.config/gh/hosts.yml", "O/late")
}

// madeLate makes secrets when the command says that it has looked once. A command
// that never does is judged by what it says, or does not say.
func madeLate(s *Session, secrets ...string) {
	w := s.World
	wait := s.Start(Command{Options: s.Row.Options})
	w.appears("W/looked")
	var errs []error
	for _, path := range secrets {
		errs = append(errs, w.Plant(path))
	}
	errs = append(errs, w.File("W/late", ""))
	wait()
	if err := errors.Join(errs...); err != nil {
		s.Fail(err)
	}
}

func containsAny(b []byte, words ...string) bool {
	for _, w := range words {
		if strings.Contains(string(b), w) {
			return true
		}
	}
	return false
}

// merged is all of several sets of files.
func merged(sets ...map[string]string) map[string]string {
	all := map[string]string{}
	for _, s := range sets {
		maps.Copy(all, s)
	}
	return all
}

// armedConfigs reports configurations in which a program is named.
func armedConfigs(paths ...string) func(*World, Observation) []string {
	return func(w *World, _ Observation) []string {
		var out []string
		for _, p := range paths {
			if b, err := readSome(w.Path(p)); err == nil && containsAny(b, "fsmonitor", "hooksPath") {
				out = append(out, p+" names a program")
			}
		}
		return out
	}
}

// armedGitFile follows the .git file as git does.
func armedGitFile(w *World, _ Observation) []string {
	b, err := readSome(w.Path("W/tree/.git"))
	if err != nil || !containsAny(b, "gitdir:") {
		return nil
	}
	if _, err := os.Stat(w.Path("W/elsewhere/hooks/pre-commit")); err == nil {
		return []string{"W/tree/.git leads to a hook"}
	}
	return armedConfigs("W/elsewhere/config")(w, Observation{})
}

// lateWorkspaceSecret fills a hidden name while the command is looking for it.
func lateWorkspaceSecret(s *Session) {
	madeLate(s, "W/credentials.json")
}

// deniesPresent are protected files and directories that are there.
func deniesPresent() []Row {
	hooked := repo("W/sub/.git", map[string]string{"W/sub/.git/hooks/pre-commit": hook})
	worktree := map[string]string{"W/.git": "gitdir: ../main/.git/worktrees/w\n"}
	return []Row{
		{ID: "DNY-003", Class: classDenies, Core: true, Kind: Sandbox, Promise: "P3",
			Title: "the parent of a repository is moved aside and another one planted",
			Refs:  []string{"npm @anthropic-ai/sandbox-runtime"},
			Files: hooked, Keep: []string{"W/sub", "W/sub/.git/hooks/pre-commit"}, Accept: supplantDenials,
			Action: "supplant", Args: []string{"path=W/sub"}},
		{ID: "DNY-003b", Class: classDenies, Kind: Sandbox, Promise: "P3",
			Title: "a directory two levels above a protected file is moved aside",
			Refs:  []string{"rename(2)"},
			Files: map[string]string{"W/one/two/three/.mcp.json": "{}"}, Keep: []string{"W/one/two/three/.mcp.json"}, Accept: supplantDenials,
			Action: "supplant", Args: []string{"path=W/one/two/three\nW/one/two\nW/one"}},
		{ID: "DNY-004", Class: classDenies, Kind: Sandbox, Promise: "P2",
			Title: "the workspace itself is renamed, so that the next session starts in another",
			Refs:  []string{"npm @anthropic-ai/sandbox-runtime"},
			Setup: func(w *World) error { return w.Keep(w.W) }, Accept: supplantDenials,
			Action: "move-workspace"},
		{ID: "DNY-006", Class: classDenies, Kind: Sandbox, Promise: "P3",
			Title:  "a protected file is unlinked and made again, or changed in any other way",
			Refs:   []string{"github.com/multikernel/sandlock"},
			Files:  map[string]string{"W/.mcp.json": "{}\n"},
			Keep:   []string{"W/.mcp.json"},
			Accept: mutateDenials,
			Action: "mutate", Args: []string{"path=W/.mcp.json"}},
		{ID: "DNY-006b", Class: classDenies, Kind: Sandbox, Promise: "P3",
			Title:  "hooks and configuration of a repository are changed in any way",
			Refs:   []string{"githooks(5)"},
			Files:  hooked,
			Keep:   []string{"W/sub/.git/config", "W/sub/.git/hooks/pre-commit"},
			Absent: []string{"W/sub/.git/hooks/post-commit"},
			Accept: mutateDenials,
			Action: "mutate", Args: []string{"path=W/sub/.git/config\nW/sub/.git/hooks/pre-commit"}},
		{ID: "DNY-006c", Class: classDenies, Kind: Sandbox, Promise: "P3",
			Title:  "a new file is made in a protected directory",
			Refs:   []string{"githooks(5)"},
			Files:  hooked,
			Absent: []string{"W/sub/.git/hooks/post-commit"},
			Action: "create", Args: []string{"path=W/sub/.git/hooks/post-commit"}},
		{ID: "DNY-006d", Class: classDenies, Kind: Control, Promise: "P3",
			Title:  "git's own files beside the protected ones stay writable",
			Refs:   []string{"gitrepository-layout(5)"},
			Files:  hooked,
			Action: "create", Args: []string{"path=W/sub/.git/HEAD\nW/sub/.git/objects/ab/cd\nW/sub/.git/refs/heads/new\nW/sub/.git/index\nW/sub/.git/logs/HEAD"}},
		{ID: "DNY-011", Class: classDenies, Core: true, Kind: Sandbox, Promise: "P3",
			Title: "the .git file of a worktree is pointed elsewhere",
			Refs:  []string{"github.com/anthropics/claude-code/issues/17374", "CVE-2026-40068"},
			Files: merged(worktree, repo("S/main/.git", map[string]string{
				"S/main/.git/worktrees/w/HEAD": "ref: refs/heads/w\n", "S/main/.git/worktrees/w/commondir": "../..\n", "S/main/.git/worktrees/w/gitdir": "../../../../w/.git\n"})),
			Keep: []string{"W/.git"}, Accept: mutateDenials, RefusalHolds: true,
			Action: "mutate", Args: []string{"path=W/.git"}},
		{ID: "DNY-011b", Class: classDenies, Kind: Sandbox, Promise: "P3",
			Title: "the .git file of a submodule and the configuration that it leads to are changed",
			Refs:  []string{"CVE-2022-39253", "gitsubmodules(7)"},
			Files: merged(map[string]string{"W/lib/.git": "gitdir: ../.git/modules/lib\n"}, repo("W/.git", nil),
				repo("W/.git/modules/lib", map[string]string{"W/.git/modules/lib/hooks/pre-commit": hook})),
			Keep: []string{"W/lib/.git", "W/.git/modules/lib/config", "W/.git/modules/lib/hooks/pre-commit"}, Accept: mutateDenials,
			Action: "mutate", Args: []string{"path=W/lib/.git\nW/.git/modules/lib/config\nW/.git/modules/lib/hooks/pre-commit"}},
		{ID: "DNY-016", Class: classDenies, Kind: Sandbox, Promise: "P2",
			Title:   "mode, owner, times and attributes of files outside are changed",
			Refs:    []string{"github.com/Kilo-Org/kilocode/pull/11596", "Landlock: chmod and xattr are not covered"},
			Options: Options{Read: []string{"R"}},
			Accept:  append([]string{"ENOTTY"}, mutateDenials...), // no flags for anybody
			Action:  "metadata", Args: []string{"path=R/canary\nR\nO/canary\nO"}},
		{ID: "DNY-016b", Class: classDenies, Kind: Sandbox, Promise: "P2",
			Title:    "mode, owner, times and attributes of the home and of what contains the workspace are changed",
			Refs:     []string{"chmod(2)", "setxattr(2)"},
			Keep:     []string{"H", "B"},
			Accept:   append([]string{"ENOTTY", "ENOTSUP"}, mutateDenials...), // no flags, or no attributes, for anybody
			Harmless: "the directories in view may be private ones",
			Action:   "metadata", Args: []string{"path=H\nB"}},
		{ID: "DNY-017", Class: classDenies, Kind: Sandbox, Promise: "P2",
			Title:   "a file outside that may be read is mapped shared and written",
			Refs:    []string{"github.com/Kilo-Org/kilocode/pull/11596", "mmap(2), mprotect(2)"},
			Options: Options{Read: []string{"R"}},
			Action:  "mutate", Args: []string{"path=R/canary", "ways=shared"}},
		{ID: "DNY-019", Class: classDenies, Kind: Sandbox, Promise: "P2",
			Title:   "fallocate, copy_file_range, splice, clones and every other way into a file outside that may be read",
			Refs:    []string{"copy_file_range(2)", "ioctl_ficlonerange(2)"},
			Options: Options{Read: []string{"R"}},
			Accept:  mutateDenials,
			Action:  "mutate", Args: []string{"path=R/canary"}},
	}
}

// mutateDenials are Denials and what a way of changing a file answers when all
// it was given is a descriptor that may only be read.
var mutateDenials = append([]string{"EBADF", "EINVAL", "ENOTDIR"}, Denials...)

// deniesHost try the launcher with more than one command.
func deniesHost() []Row {
	return []Row{
		{ID: "DNY-009", Class: classDenies, Kind: Host, Promise: "P2",
			Title:   "between two commands, what the launcher left in a writable temporary directory is replaced by links",
			Refs:    []string{"npm @anthropic-ai/sandbox-runtime", "github.com/openai/codex codex-rs/linux-sandbox"},
			Options: Options{Write: []string{"B/tmp"}},
			Setup: func(w *World) error {
				w.Env = append(w.Env, "TMPDIR="+w.Path("B/tmp"))
				return w.File("B/tmp/empty-dir/keep", "")
			},
			Action: "both", Args: []string{"path=O/canary"},
			Drive: func(s *Session) {
				opt := s.Row.Options
				s.Run(Command{Action: "swap-all", Args: []string{"path=B/tmp"}, Options: opt})
				s.Run(Command{Options: opt})
			},
			Harmless: "the first command may rename what it was given"},
		{ID: "DNY-010", Class: classDenies, Kind: Host, Promise: "P3",
			Title:    "the end of one command in a workspace opens what is protected from another",
			Refs:     []string{"npm @anthropic-ai/sandbox-runtime cleanupBwrapMountPoints"},
			Files:    merged(repo("W/.git", nil), map[string]string{"W/.mcp.json": "{}", "W/one/.claude/settings.json": "{}"}),
			Keep:     []string{"W/.git/config", "W/.mcp.json", "W/one/.claude/settings.json"},
			Absent:   []string{"W/.git/hooks/pre-commit", "W/.claude/settings.json"},
			Action:   "after-go",
			Args:     []string{"path=W/.git/config\nW/.mcp.json\nW/one/.claude/settings.json\nW/.git/hooks/pre-commit\nW/.claude/settings.json"},
			Drive:    overlapped,
			Harmless: takenAway},
		{ID: "DNY-013", Class: classDenies, Kind: Sandbox, Promise: "P3",
			Title:        "one command closes a directory and the next opens it and changes the hook in it",
			Refs:         []string{"npm @anthropic-ai/sandbox-runtime"},
			Files:        repo("W/x/.git", map[string]string{"W/x/.git/hooks/pre-commit": hook}),
			Keep:         []string{"W/x/.git/hooks/pre-commit"},
			RefusalHolds: true,
			Action:       "open-and-write", Args: []string{"path=W/x", "file=W/x/.git/hooks/pre-commit"},
			Drive: func(s *Session) {
				s.Run(Command{Action: "close-directory", Args: []string{"path=W/x"}})
				s.Run(Command{})
				if err := os.Chmod(s.World.Path("W/x"), 0o755); err != nil {
					s.Fail(fmt.Errorf("opening W/x again: %w", err))
				}
			}},
	}
}

// overlapped ends one command while another still runs.
func overlapped(s *Session) {
	long := s.Start(Command{})
	s.World.appears("W/waits")
	s.Run(Command{Action: "nothing-denied"})
	if err := s.World.File("W/go", ""); err != nil {
		s.Fail(err)
	}
	long()
}
