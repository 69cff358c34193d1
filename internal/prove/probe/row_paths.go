//go:build linux

package probe

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const classPaths = "fs.path-strings"

func pathsRows() []Row {
	return append(pathSpellings(), pathNames()...)
}

func pathSpellings() []Row {
	return []Row{
		{ID: "PTH-001", Class: classPaths, Core: true, Kind: Sandbox, Promise: "P1",
			Title:  "a sibling directory begins with the name of the workspace",
			Refs:   []string{"CVE-2025-54794", "CVE-2025-53110"},
			Plant:  []string{"S/w_evil/canary"},
			Action: "both", Args: []string{"path=S/w_evil/canary"}},
		{ID: "PTH-003", Class: classPaths, Core: true, Kind: Sandbox, Promise: "P1",
			Title:  "dot-dot leads out of the workspace",
			Refs:   []string{"CVE-2025-53110", "CVE-2026-45482"},
			Action: "both", Args: []string{"path=../o/canary\n./../w/../o/canary\n" +
				".probe/../../o/canary\nW/../o/canary\nW/./..//o/./canary\nW/../w/../o/sub/canary"}},
		{ID: "PTH-004", Class: classPaths, Core: true, Kind: Sandbox, Promise: "P3",
			Title:  "a protected name in other letters, where the file system does not tell them apart",
			Refs:   []string{"CVE-2025-59944"},
			Needs:  []string{"root"},
			Setup:  foldingWorkspace,
			Action: "create", Args: []string{"path=W/fold/.CURSOR/MCP.json\nW/fold/.Git/Hooks/PRE-COMMIT"}},
		{ID: "PTH-004b", Class: classPaths, Core: true, Kind: Sandbox, Promise: "P3",
			Title:  "a protected name in other letters is not left for a host that does not tell them apart",
			Refs:   []string{"CVE-2025-59944", "CVE-2021-21300"},
			Absent: []string{"W/.CURSOR/MCP.json", "W/sub/.Claude/Settings.json", "W/.MCP.json", "W/.VsCode/tasks.json"},
			Action: "create", Args: []string{"path=W/.CURSOR/MCP.json\nW/sub/.Claude/Settings.json\nW/.MCP.json\nW/.VsCode/tasks.json"},
			Harmless: takenAway},
		{ID: "PTH-010", Class: classPaths, Kind: Sandbox, Promise: "P1",
			Title:   "slashes and dots in the name of a hidden file of the workspace",
			Refs:    []string{"CVE-2025-64108"},
			Plant:   []string{"W/.env"},
			Options: Options{Hide: []string{"W/.env"}},
			Action:  "read", Args: []string{"path=W//.env\nW/./.env\nW/x/../.env\nW/../w/.env\n.env\n./.env"}},
		{ID: "PTH-010b", Class: classPaths, Kind: Sandbox, Promise: "P3",
			Title:  "slashes and dots in the name of a protected file",
			Refs:   []string{"CVE-2025-64108", "path_resolution(7)"},
			Files:  map[string]string{"W/.mcp.json": "{}\n", "W/x/y": ""},
			Keep:   []string{"W/.mcp.json"},
			Action: "overwrite", Args: []string{"path=W//.mcp.json\nW/./.mcp.json\nW/x/../.mcp.json\nW/../w/.mcp.json\n.mcp.json\n./.mcp.json"}},
		{ID: "PTH-010c", Class: classPaths, Kind: Sandbox, Promise: "P1",
			Title:  "slashes, dots and other roots in the name of a secret outside",
			Refs:   []string{"CVE-2025-64108", "path_resolution(7)"},
			Action: "read", Args: []string{"path=W/..//h/.aws/./credentials\n../h/.ssh/../.aws/credentials\nW/../..//.aws/./credentials\n../../.ssh/../.aws/credentials\nH//.netrc\nH/.aws/./credentials\nH/.ssh/./id_probe"}},
		{ID: "PTH-013", Class: classPaths, Kind: Sandbox, Promise: "P2",
			Title:  "a link to the outside at the end of a path that is longer than any system call takes",
			Refs:   []string{"path_resolution(7)", "limits.h PATH_MAX"},
			Action: "deep-link"},
		{ID: "PTH-013b", Class: classPaths, Kind: Sandbox, Promise: "P3",
			Title:        "a protected file at the end of a path that is longer than any system call takes",
			Refs:         []string{"path_resolution(7)", "limits.h PATH_MAX"},
			Setup:        deepRepo,
			RefusalHolds: true,
			Oracle:       deepRepoChanged,
			Action:       "deep-hook"},
	}
}

// takenAway is why creating a protected name may succeed: the row's Absent
// decides whether the host ever gets to see it.
const takenAway = "what appears under such a name may be taken away when the command has ended"

func pathNames() []Row {
	return []Row{
		{ID: "PTH-012", Class: classPaths, Kind: Host, Promise: "P2",
			Title: "newlines and messages in file names are taken for entries of a list",
			Refs:  []string{"npm @anthropic-ai/sandbox-runtime"},
			Setup: func(w *World) error {
				return errors.Join(
					w.File("W/x\n"+w.O+"/canary", ""),
					w.File("W/a: Permission denied/.git/hooks/pre-commit", hook),
					w.File("W/b\tc\x1b[2J/.mcp.json", "{}"))
			},
			Keep:         []string{"W/a: Permission denied/.git/hooks/pre-commit", "W/b\tc\x1b[2J/.mcp.json"},
			RefusalHolds: true,
			Action:       "overwrite", Args: []string{"path=O/canary\nW/a: Permission denied/.git/hooks/pre-commit\nW/b\tc\x1b[2J/.mcp.json"}},
		{ID: "PTH-012b", Class: classPaths, Kind: Host, Promise: "P3",
			Title:        "a protected file in a directory whose name holds newlines, quotes and bytes that are no text",
			Refs:         []string{"path_resolution(7)"},
			Files:        map[string]string{"W/new\nline/.mcp.json": "{}", "W/\xff\xfe'\"\\/.mcp.json": "{}"},
			Keep:         []string{"W/new\nline/.mcp.json", "W/\xff\xfe'\"\\/.mcp.json"},
			RefusalHolds: true,
			Action:       "overwrite-odd"},
		{ID: "PTH-012c", Class: classPaths, Kind: Host, Promise: "P10",
			Title:        "protected names are pipes, sockets, loops and directories where files belong",
			Refs:         []string{"fifo(7)", "path_resolution(7)"},
			Setup:        oddObjects,
			RefusalHolds: true,
			Action:       "overwrite", Args: []string{"path=O/canary"}},
		{ID: "PTH-015", Class: classPaths, Kind: Sandbox, Promise: "P3",
			Title: "ignore files hide a protected file from the search for it",
			Refs:  []string{"npm @anthropic-ai/sandbox-runtime"},
			Files: map[string]string{"W/.gitignore": "*\n", "W/.ignore": "*\n", "W/.rgignore": "*\n", "W/sub/.gitignore": "*\n",
				"W/sub/.vscode/tasks.json": "{}\n"},
			Keep:   []string{"W/sub/.vscode/tasks.json"},
			Action: "overwrite", Args: []string{"path=W/sub/.vscode/tasks.json"}},
		{ID: "PTH-017", Class: classPaths, Kind: Sandbox, Promise: "P3",
			Title: "glob characters in the name of a directory hide a protected file",
			Refs:  []string{"github.com/anthropic-experimental/sandbox-runtime/issues/432"},
			Files: map[string]string{"W/[x]/.mcp.json": "{}", "W/*/.mcp.json": "{}", "W/{a,b}/.mcp.json": "{}", "W/?!/.mcp.json": "{}"},
			Keep:  []string{"W/[x]/.mcp.json", "W/*/.mcp.json", "W/{a,b}/.mcp.json", "W/?!/.mcp.json"},
			// One more that is made only during the run.
			Absent:   []string{"W/[late]/.mcp.json"},
			Harmless: takenAway,
			Action:   "create", Args: []string{"path=W/[x]/.mcp.json\nW/*/.mcp.json\nW/{a,b}/.mcp.json\nW/?!/.mcp.json\nW/[late]/.mcp.json"}},
		strangeWorkspace("PTH-018", "the name of the workspace looks like flags of a launcher", "- --bind . . --dev-bind x y"),
		strangeWorkspace("PTH-018b", "the name of the workspace is a flag", "--help"),
		strangeWorkspace("PTH-018c", "the name of the workspace holds what separates the layers of an overlay", `w,lowerdir=a:b\:c=`),
		strangeWorkspace("PTH-018d", "the name of the workspace holds quotes, a shell expression and a newline", "q'\"$(touch x)`y`\n;z"),
		{ID: "PTH-020", Class: classPaths, Kind: Sandbox, Promise: "P3",
			Title:  "the workspace is mounted a second time elsewhere",
			Refs:   []string{"mount(8) --bind"},
			Needs:  []string{"root"},
			Files:  repo("W/.git", map[string]string{"W/.git/hooks/pre-commit": hook}),
			Setup:  bindAlias,
			Keep:   []string{"W/.git/hooks/pre-commit"},
			Absent: []string{"W/.git/hooks/post-commit"},
			Action: "create", Args: []string{"path=B/alias/.git/hooks/pre-commit\nB/alias/.git/hooks/post-commit"}},
	}
}

// oddObjects makes things on which a careless search hangs or stumbles.
func oddObjects(w *World) error {
	for _, dir := range []string{"W/a", "W/b", "W/c", "W/.mcp.json", "W/d/.claude"} {
		if err := os.MkdirAll(w.Path(dir), 0o755); err != nil {
			return err
		}
	}
	return errors.Join(
		unix.Mkfifo(w.Path("W/.git"), 0o644),
		unix.Mkfifo(w.Path("W/a/.mcp.json"), 0o644),
		unix.Mkfifo(w.Path("W/d/.claude/settings.json"), 0o644),
		os.Symlink(".vscode", w.Path("W/.vscode")),
		os.Symlink("../b/.git", w.Path("W/c/.git")), os.Symlink("../c/.git", w.Path("W/b/.git")),
		os.Symlink("/proc/self/fd/0", w.Path("W/.envrc")),
		w.File("W/big/.git", "gitdir: "+strings.Repeat("x/", 1<<20)))
}

// strangeWorkspace plays a write to the outside and one to a protected file in
// a workspace of that name.
func strangeWorkspace(id, title, name string) Row {
	return Row{ID: id, Class: classPaths, Kind: Host, Promise: "P2", Title: title, Workspace: name,
		Refs:         []string{"CVE-2024-32462"},
		Files:        map[string]string{"W/.mcp.json": "{}\n"},
		Keep:         []string{"W/.mcp.json"},
		RefusalHolds: true,
		// Relative, because an argument with a newline is a list.
		Action: "overwrite", Args: []string{"path=../o/canary\n.mcp.json"}}
}

func bindAlias(w *World) error {
	alias := filepath.Join(w.B, "alias")
	if err := os.Mkdir(alias, 0o755); err != nil {
		return err
	}
	// Unmounted by the world when it is removed.
	return unix.Mount(w.W, alias, "", unix.MS_BIND, "")
}

// foldingWorkspace puts a file system that ignores case into the workspace.
func foldingWorkspace(w *World) error {
	dir := w.Path("W/fold")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "casefold"); err != nil {
		return fmt.Errorf("%w: a file system that ignores case: %v", ErrMissing, err)
	}
	if err := foldCase(dir); err != nil {
		return err
	}
	for _, p := range []string{"W/fold/.cursor/mcp.json", "W/fold/.git/hooks/pre-commit", "W/fold/.git/HEAD", "W/fold/.git/config",
		"W/fold/.git/objects/keep", "W/fold/.git/refs/keep"} {
		if err := w.File(p, "ref: refs/heads/main\n"); err != nil {
			return err
		}
	}
	return errors.Join(w.Keep(w.Path("W/fold/.cursor/mcp.json")), w.Keep(w.Path("W/fold/.git/hooks/pre-commit")))
}

const casefold = 0x40000000 // FS_CASEFOLD_FL, linux/fs.h

// foldCase makes the names in an empty directory, and in those made below it
// later, the same in upper and lower case.
func foldCase(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return unix.IoctlSetPointerInt(int(d.Fd()), unix.FS_IOC_SETFLAGS, casefold)
}

const (
	deepName  = "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"
	deepLevel = 50 // of deepName: 5050 bytes, and PATH_MAX is 4096
)

// deepRepo makes a repository that no absolute path reaches.
func deepRepo(w *World) error {
	fd, err := unix.Open(w.W, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	names := append(strings.Split(strings.Repeat(deepName+" ", deepLevel), " ")[:deepLevel], ".git", "hooks")
	for _, name := range names {
		if err := unix.Mkdirat(fd, name, 0o755); err != nil {
			return err
		}
		next, err := unix.Openat(fd, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		unix.Close(fd)
		if err != nil {
			return err
		}
		fd = next
	}
	defer unix.Close(fd)
	for name, content := range map[string]string{"pre-commit": hook, "../HEAD": "ref: refs/heads/main\n", "../config": "[core]\n\tbare = false\n"} {
		if err := os.WriteFile(procFD(fd)+"/"+name, []byte(content), 0o755); err != nil {
			return err
		}
	}
	return errors.Join(
		os.Mkdir(procFD(fd)+"/../objects", 0o755),
		os.Mkdir(procFD(fd)+"/../refs", 0o755))
}

// descendTo opens the directory at the end of the deep path.
func descendTo(root string) (int, error) {
	fd, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	for i := 0; err == nil && i < deepLevel; i++ {
		var next int
		next, err = unix.Openat(fd, deepName, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		unix.Close(fd)
		fd = next
	}
	return fd, err
}

func procFD(fd int) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }

// deepRepoChanged looks at the hook of deepRepo.
func deepRepoChanged(w *World, _ Observation) []string {
	fd, err := descendTo(w.W)
	if err != nil {
		return []string{"the deep repository is gone: " + err.Error()}
	}
	defer unix.Close(fd)
	b, err := os.ReadFile(procFD(fd) + "/.git/hooks/pre-commit")
	if err != nil || string(b) != hook {
		return []string{fmt.Sprintf("the hook of the deep repository is now %q, %v", b, err)}
	}
	return nil
}
