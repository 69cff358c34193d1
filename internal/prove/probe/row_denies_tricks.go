//go:build linux

package probe

import (
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// deniesTricks aim at what finds protected names before the start and after
// the end: at what it does not see, and at what it touches.
func deniesTricks() []Row {
	return append(tricksLeft(), tricksFound()...)
}

// tricksLeft leave something that the host executes later.
func tricksLeft() []Row {
	return []Row{
		{ID: "DNY-012e", Class: classDenies, Kind: Sandbox, Promise: "P3",
			Title:    "the workspace itself is made a bare repository with a configuration that runs a program",
			Refs:     []string{"git-config(1) safe.bareRepository"},
			Oracle:   armedConfigs("W/config"),
			Absent:   []string{"W/hooks/pre-commit"},
			Harmless: takenAway,
			Action:   "make-repo", Args: []string{"path=W"}},
		{ID: "DNY-012f", Class: classDenies, Kind: Sandbox, Promise: "P3",
			Title:    "a submodule's and a worktree's repository are made inside the one that is there",
			Refs:     []string{"gitrepository-layout(5)"},
			Files:    repo("W/.git", nil),
			Oracle:   armedConfigs("W/.git/modules/evil/config", "W/.git/worktrees/evil/config"),
			Absent:   []string{"W/.git/modules/evil/hooks/pre-commit", "W/.git/worktrees/evil/hooks/pre-commit"},
			Harmless: takenAway,
			Action:   "make-repo", Args: []string{"path=W/.git/modules/evil\nW/.git/worktrees/evil"}},
		{ID: "DNY-012g", Class: classDenies, Kind: Sandbox, Promise: "P3",
			Title:    "the absent hooks of a repository are made as a link to a directory full of them",
			Refs:     []string{"githooks(5)"},
			Files:    repo("W/.git", nil),
			Absent:   []string{"W/.git/hooks/pre-commit"},
			Harmless: takenAway,
			Action:   "make-link", Args: []string{"at=W/.git/hooks", "to=W/plain", "file=pre-commit"}},
		{ID: "DNY-012h", Class: classDenies, Kind: Sandbox, Promise: "P3",
			Title:    "an absent directory of editor settings is made as a link to a harmless name",
			Refs:     []string{"symlink(2)"},
			Absent:   []string{"W/.vscode/tasks.json"},
			Harmless: takenAway,
			Action:   "make-link", Args: []string{"at=W/.vscode", "to=W/plain", "file=tasks.json"}},
		{ID: "DNY-012i", Class: classDenies, Kind: Sandbox, Promise: "P3",
			Title:    "a repository is made at the end of a path that is longer than any system call takes",
			Refs:     []string{"limits.h PATH_MAX"},
			Oracle:   deepHookLeft,
			Harmless: takenAway,
			Action:   "deep-repo"},
		{ID: "DNY-012j", Class: classDenies, Kind: Sandbox, Promise: "P3",
			Title: "a repository is made in a directory that is then closed",
			Refs:  []string{"chmod(2)"},
			Drive: func(s *Session) {
				s.Run(Command{})
				// The human who wonders about it opens it.
				_ = filepath.WalkDir(s.World.Path("W/closed"), func(p string, d fs.DirEntry, _ error) error { return os.Chmod(p, 0o755) })
			},
			Absent:   []string{"W/closed/.git/hooks/pre-commit", "W/closed/.mcp.json"},
			Harmless: takenAway,
			Action:   "closed-repo"},
		{ID: "DNY-012k", Class: classDenies, Kind: Sandbox, Promise: "P3",
			Title:    "a repository is made in a tree of installed packages",
			Refs:     []string{"githooks(5)"},
			Absent:   []string{"W/node_modules/x/.git/hooks/pre-commit", "W/vendor/y/.git/hooks/pre-commit", "W/.venv/z/.git/hooks/pre-commit"},
			Harmless: takenAway,
			Action:   "make-repo", Args: []string{"path=W/node_modules/x/.git\nW/vendor/y/.git\nW/.venv/z/.git"}},
		{ID: "DNY-012l", Class: classDenies, Kind: Sandbox, Promise: "P3",
			Title:    "protected names in spellings that some file system or program takes for the same",
			Refs:     []string{"CVE-2014-9390", "CVE-2019-1352"},
			Absent:   []string{"W/a/.git /hooks/pre-commit", "W/a/.git./hooks/pre-commit", "W/a/GIT~1/hooks/pre-commit", "W/a/.g\u200cit/hooks/pre-commit", "W/a/.git::$INDEX_ALLOCATION/hooks/pre-commit"},
			Harmless: takenAway,
			Action:   "make-repo", Args: []string{"path=W/a/.git \nW/a/.git.\nW/a/GIT~1\nW/a/.g\u200cit\nW/a/.git::$INDEX_ALLOCATION"}},
		{ID: "DNY-012m", Class: classDenies, Kind: Sandbox, Promise: "P3",
			Title:    "a hook is made between five thousand other files",
			Refs:     []string{"githooks(5)"},
			Absent:   []string{"W/many/zz/.git/hooks/pre-commit"},
			Harmless: takenAway,
			Timeout:  60 * time.Second,
			Action:   "among-many"},
		{ID: "DNY-016c", Class: classDenies, Kind: Sandbox, Promise: "P7",
			Title:    "a program that takes its owner's rights is left in the workspace",
			Refs:     []string{"chmod(2) S_ISUID", "capabilities(7)", "CVE-2017-1000253"},
			Oracle:   takesRights,
			Harmless: "it may be gone when the command has ended",
			Action:   "leave-setuid"},
	}
}

// takesRights looks for setuid and setgid programs and capabilities of files.
func takesRights(w *World, _ Observation) []string {
	var out []string
	_ = filepath.WalkDir(w.W, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return nil
		}
		if info, err := d.Info(); err == nil && info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
			out = append(out, w.short(p)+" takes the rights of its owner")
		}
		if containsAny([]byte(xattrs(p)), "security.capability") {
			out = append(out, w.short(p)+" has capabilities")
		}
		return nil
	})
	return out
}

// deepHookLeft looks for the hook that deep-repo makes.
func deepHookLeft(w *World, _ Observation) []string {
	fd, err := descendTo(w.W)
	if err != nil {
		return nil
	}
	d := os.NewFile(uintptr(fd), "deep")
	defer d.Close()
	r, err := os.OpenRoot(procFD(fd))
	if err != nil {
		return nil
	}
	defer r.Close()
	if _, err := r.Lstat(".git/hooks/pre-commit"); err == nil {
		return []string{"a hook stands at the end of the deep path"}
	}
	return nil
}

// tricksFound aim at files that are protected because they were found.
func tricksFound() []Row {
	return []Row{
		{ID: "DNY-006e", Class: classDenies, Kind: Sandbox, Promise: "P3",
			Title:    "a protected name is a link to a file that does not exist yet",
			Refs:     []string{"symlink(7)"},
			Links:    map[string]string{"W/.mcp.json": "later.json", "W/.vscode": "later-dir"},
			Absent:   []string{"W/later.json", "W/later-dir/tasks.json"},
			Harmless: takenAway, RefusalHolds: true,
			Action: "create", Args: []string{"path=W/later.json\nW/later-dir/tasks.json"}},
		{ID: "DNY-006f", Class: classDenies, Kind: Sandbox, Promise: "P3",
			Title: "a protected name is a link, over others, to a file of the workspace",
			Refs:  []string{"symlink(7)"},
			Files: map[string]string{"W/conf/real/mcp.json": "{}\n"},
			Links: map[string]string{"W/.mcp.json": "hop", "W/hop": "conf/link/mcp.json", "W/conf/link": "real"},
			Keep:  []string{"W/.mcp.json", "W/hop", "W/conf/link", "W/conf/real/mcp.json"}, Accept: mutateDenials, RefusalHolds: true,
			Action: "mutate", Args: []string{"path=W/conf/real/mcp.json\nW/hop\nW/conf/link\nW/.mcp.json", "ways=rename"}},
		{ID: "DNY-006g", Class: classDenies, Kind: Sandbox, Promise: "P3",
			Title: "what a protected link leads through is replaced",
			Refs:  []string{"rename(2)"},
			Files: map[string]string{"W/conf/real/mcp.json": "{}\n"},
			Links: map[string]string{"W/.mcp.json": "conf/real/mcp.json"},
			Keep:  []string{"W/.mcp.json", "W/conf/real/mcp.json"}, Accept: supplantDenials, RefusalHolds: true,
			Action: "supplant", Args: []string{"path=W/conf/real\nW/conf"}},
		{ID: "DNY-006h", Class: classDenies, Kind: Sandbox, Promise: "P3",
			Title:  "a repository among installed packages has a hook",
			Refs:   []string{"githooks(5)"},
			Files:  repo("W/node_modules/x/.git", map[string]string{"W/node_modules/x/.git/hooks/pre-commit": hook}),
			Keep:   []string{"W/node_modules/x/.git/hooks/pre-commit", "W/node_modules/x/.git/config"},
			Accept: mutateDenials,
			Action: "mutate", Args: []string{"path=W/node_modules/x/.git/hooks/pre-commit\nW/node_modules/x/.git/config"}},
		{ID: "DNY-006i", Class: classDenies, Kind: Sandbox, Promise: "P3",
			Title: "a protected name has another name in the workspace by a hard link",
			Refs:  []string{"link(2)"},
			Files: map[string]string{"W/.mcp.json": "{}\n"},
			Setup: func(w *World) error { return os.Link(w.Path("W/.mcp.json"), w.Path("W/plain.json")) },
			Keep:  []string{"W/.mcp.json"}, RefusalHolds: true, Accept: mutateDenials,
			Action: "mutate", Args: []string{"path=W/plain.json", "ways=open"}},
		{ID: "DNY-010b", Class: classDenies, Kind: Host, Promise: "P2",
			Title:   "while one command's end clears up, another swaps a directory for a link to the outside",
			Refs:    []string{"CVE-2021-30465", "symlink(7)"},
			Plant:   []string{"O/swap/.mcp.json", "O/swap/.git/hooks/pre-commit", "O/swap/.git/HEAD", "O/swap/.git/config"},
			Files:   map[string]string{"O/swap/.git/objects/keep": "", "O/swap/.git/refs/keep": ""},
			Links:   map[string]string{"W/l": "O/swap"},
			Action:  "swap-until",
			Drive:   swapped,
			Timeout: 30 * time.Second,
			// Where the ground moves while it is being laid, not to start is right.
			RefusalHolds: true,
			Harmless:     "it swaps what is its own"},
	}
}

// swapped ends several commands while another one swaps directories.
func swapped(s *Session) {
	long := s.Start(Command{})
	time.Sleep(200 * time.Millisecond)
	for range 8 {
		s.Run(Command{Action: "nothing-denied"})
	}
	if err := s.World.File("W/go", ""); err != nil {
		s.Fail(err)
	}
	long()
}
