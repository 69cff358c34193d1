//go:build linux

package probe

import (
	"fmt"
	"os"
)

const classLinks = "fs.links"

// repo is what makes a directory a repository for git, without git.
func repo(dir string, more map[string]string) map[string]string {
	files := map[string]string{
		dir + "/HEAD":           "ref: refs/heads/main\n",
		dir + "/config":         "[core]\n\trepositoryformatversion = 0\n\tbare = false\n",
		dir + "/objects/keep":   "",
		dir + "/refs/heads/top": "",
	}
	for name, content := range more {
		files[name] = content
	}
	return files
}

const hook = "#!/bin/sh\nexit 0\n"

func linksRows() []Row {
	return append(append(linksToOutside(), linksToNames()...), linksOfFlags()...)
}

func linksToOutside() []Row {
	return []Row{
		{ID: "LNK-001", Class: classLinks, Core: true, Kind: Sandbox, Promise: "P2",
			Title:  "a link made in the workspace leads a write to a file outside",
			Refs:   []string{"CVE-2026-39861", "CVE-2025-53109"},
			Links:  map[string]string{"W/l": "O/canary"},
			Action: "overwrite", Args: []string{"path=W/l"}},
		{ID: "LNK-001b", Class: classLinks, Kind: Sandbox, Promise: "P2",
			Title:   "a link leads any way of changing a file to one that may only be read",
			Refs:    []string{"path_resolution(7)"},
			Links:   map[string]string{"W/l": "R/canary"},
			Options: Options{Read: []string{"R"}},
			Action:  "mutate", Args: []string{"path=W/l", "ways=open"}},
		{ID: "LNK-002", Class: classLinks, Core: true, Kind: Sandbox, Promise: "P1",
			Title:  "a link in the workspace leads a read to a secret",
			Refs:   []string{"CVE-2026-25724", "CVE-2025-59829"},
			Links:  map[string]string{"W/k": "H/.ssh/id_probe"},
			Action: "read-ways", Args: []string{"path=W/k"}},
		{ID: "LNK-003", Class: classLinks, Core: true, Kind: Sandbox, Promise: "P2",
			Title:  "a link in the middle of a path leads a write outside",
			Refs:   []string{"CVE-2025-53109"},
			Links:  map[string]string{"W/d": "O"},
			Action: "overwrite", Args: []string{"path=W/d/sub/canary"}},
		{ID: "LNK-004", Class: classLinks, Kind: Sandbox, Promise: "P2",
			Title: "a chain of ten links ends outside",
			Refs:  []string{"github.com/Kilo-Org/kilocode/pull/11596"},
			Setup: linkChain, Action: "both", Args: []string{"path=W/l0"}},
		{ID: "LNK-006", Class: classLinks, Kind: Sandbox, Promise: "P2",
			Title:  "dot-dot after a link goes to the parent of the target, not back to the workspace",
			Refs:   []string{"github.com/justi/claude-code-project-boundary"},
			Links:  map[string]string{"W/link": "O/sub"},
			Absent: []string{"O/canary2"},
			Action: "create", Args: []string{"path=W/link/../canary2\nW/link/../canary"}},
		{ID: "LNK-008", Class: classLinks, Core: true, Kind: Sandbox, Promise: "P1",
			Title:  "/proc/self/root is another name for the root",
			Refs:   []string{"github.com/AxeForging/aigate"},
			Setup:  aliases("/proc/self/root", "/proc/1/root", "/proc/self/task/../root"),
			Action: "read"},
		{ID: "LNK-009", Class: classLinks, Kind: Sandbox, Promise: "P1",
			Title:  "/proc/thread-self/root and /proc/self/cwd are other names for what is denied",
			Refs:   []string{"github.com/AxeForging/aigate", "github.com/multikernel/sandlock"},
			Setup:  aliases("/proc/thread-self/root", "/proc/self/cwd/../../../../../../../..", "/dev/fd/../root"),
			Action: "read", Args: nil},
	}
}

// linkChain makes l0 to l9, the last of which points outside.
func linkChain(w *World) error {
	for i := range 9 {
		if err := os.Symlink(fmt.Sprintf("l%d", i+1), w.Path(fmt.Sprintf("W/l%d", i))); err != nil {
			return err
		}
	}
	return os.Symlink(w.Path("O/canary"), w.Path("W/l9"))
}

// aliases names a credential file below other names of the root directory.
func aliases(roots ...string) func(*World) error {
	return func(w *World) error {
		paths := ""
		for i, root := range roots {
			if i > 0 {
				paths += "\n"
			}
			paths += root + w.Path("H/.aws/credentials")
		}
		w.Arg("path=" + paths)
		return nil
	}
}

func linksToNames() []Row {
	return []Row{
		{ID: "LNK-011", Class: classLinks, Core: true, Kind: Sandbox, Promise: "P2",
			Title:  "a hard link gives a file outside a writable name in the workspace",
			Refs:   []string{"github.com/Kilo-Org/kilocode/pull/11596", "github.com/bindsch/scode/issues/2"},
			Action: "hard-link", Args: []string{"path=O/canary"}},
		{ID: "LNK-011b", Class: classLinks, Kind: Sandbox, Promise: "P2",
			Title:   "a hard link to a file that may be read makes it writable",
			Refs:    []string{"link(2)"},
			Options: Options{Read: []string{"R"}},
			Action:  "hard-link", Args: []string{"path=R/canary"}},
		{ID: "LNK-011c", Class: classLinks, Kind: Sandbox, Promise: "P3",
			Title:  "a hard link inside the workspace makes a protected hook writable",
			Refs:   []string{"link(2)"},
			Files:  repo("W/.git", map[string]string{"W/.git/hooks/pre-commit": hook}),
			Keep:   []string{"W/.git/hooks/pre-commit"},
			Action: "hard-link", Args: []string{"path=W/.git/hooks/pre-commit"}},
		{ID: "LNK-012", Class: classLinks, Core: true, Kind: Sandbox, Promise: "P2",
			Title: "a file of the workspace has been a hard link to one outside before the start",
			Refs:  []string{"github.com/nubjs/nub/pull/449"},
			Setup: func(w *World) error {
				w.Holds(w.Path("W/h"))
				if err := os.Link(w.Path("O/canary"), w.Path("W/h")); err != nil {
					return err
				}
				return w.Keep(w.Path("O/canary"))
			},
			RefusalHolds: true,
			Accept:       mutateDenials,
			Action:       "mutate", Args: []string{"path=W/h"}},
		{ID: "LNK-014", Class: classLinks, Kind: Sandbox, Promise: "P2",
			Title:   "a descriptor opened for reading is linked into the workspace and opened for writing",
			Refs:    []string{"openat(2)", "proc_pid_fd(5)"},
			Options: Options{Read: []string{"R"}},
			Action:  "relink", Args: []string{"path=R/canary"}},
		{ID: "LNK-014b", Class: classLinks, Kind: Sandbox, Promise: "P3",
			Title:  "a descriptor of a protected file is linked to a free name and opened for writing",
			Refs:   []string{"openat(2)"},
			Files:  repo("W/.git", map[string]string{"W/.git/hooks/pre-commit": hook}),
			Keep:   []string{"W/.git/hooks/pre-commit"},
			Action: "relink", Args: []string{"path=W/.git/hooks/pre-commit"}},
		{ID: "LNK-014c", Class: classLinks, Kind: Sandbox, Promise: "P2",
			Title:   "a file without a name is made outside, or linked there",
			Refs:    []string{"open(2) O_TMPFILE"},
			Options: Options{Read: []string{"R"}},
			Action:  "tmpfile", Args: []string{"path=R"}},
		{ID: "LNK-016", Class: classLinks, Kind: Sandbox, Promise: "P3",
			Title:  "a link takes the place of the directory that holds an agent's settings",
			Refs:   []string{"github.com/openai/codex codex-rs/linux-sandbox"},
			Files:  map[string]string{"W/.claude/settings.json": "{}\n"},
			Keep:   []string{"W/.claude", "W/.claude/settings.json"},
			Accept: supplantDenials,
			Action: "supplant", Args: []string{"path=W/.claude"}},
		{ID: "LNK-016b", Class: classLinks, Kind: Sandbox, Promise: "P3",
			Title:  "something else takes the place of a repository, its hooks, or what contains it",
			Refs:   []string{"rename(2) RENAME_EXCHANGE"},
			Files:  repo("W/a/b/.git", map[string]string{"W/a/b/.git/hooks/pre-commit": hook}),
			Keep:   []string{"W/a/b/.git/config", "W/a/b/.git/hooks/pre-commit"},
			Accept: supplantDenials,
			Action: "supplant", Args: []string{"path=W/a/b/.git/hooks\nW/a/b/.git\nW/a/b\nW/a"}},
		{ID: "LNK-017", Class: classLinks, Kind: Sandbox, Promise: "P3",
			Title:        "the protected name is a link to a directory that the repository tracks",
			Refs:         []string{"github.com/anthropic-experimental/sandbox-runtime/issues/221", "github.com/anthropics/claude-code/issues/57266"},
			Files:        repo("W/.git", map[string]string{"W/tracked-hooks/pre-commit": hook}),
			Links:        map[string]string{"W/.git/hooks": "../tracked-hooks"},
			Keep:         []string{"W/.git/hooks", "W/tracked-hooks/pre-commit"},
			RefusalHolds: true,
			Accept:       mutateDenials,
			Action:       "mutate", Args: []string{"path=W/tracked-hooks/pre-commit\nW/.git/hooks/pre-commit"}},
		{ID: "LNK-017b", Class: classLinks, Kind: Sandbox, Promise: "P3",
			Title:        "that directory, or the link to it, is replaced",
			Refs:         []string{"github.com/anthropic-experimental/sandbox-runtime/issues/221"},
			Files:        repo("W/.git", map[string]string{"W/tracked/hooks/pre-commit": hook}),
			Links:        map[string]string{"W/.git/hooks": "../tracked/hooks"},
			Keep:         []string{"W/.git/hooks", "W/tracked/hooks/pre-commit"},
			RefusalHolds: true,
			Accept:       append([]string{"ENOTDIR"}, supplantDenials...),
			Action:       "supplant", Args: []string{"path=W/.git/hooks\nW/tracked/hooks\nW/tracked"}},
	}
}

// supplantDenials are Denials and what replacing a directory answers when it
// gets as far as finding it in use.
var supplantDenials = append([]string{"ENOTEMPTY", "EEXIST", "EINVAL"}, Denials...)
