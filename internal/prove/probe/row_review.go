//go:build linux

package probe

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const classReview = "gate.review"

// Reviewing is a target that can keep changes of the workspace back until they
// were looked at. Review does what a human does then, with those words.
type Reviewing interface {
	// Holding returns the target as it is called to keep changes back.
	Holding() Target
	Review(w *World, words ...string) ([]byte, error)
}

// reviewRows are about what reaches the tree of a run whose changes are looked at
// before.
func reviewRows() []Row {
	const planted = "W/.git/hooks/post-checkout\nW/.envrc\nW/.vscode/tasks.json\nW/Makefile\nW/sub/.git/hooks/pre-commit\nW/.claude/settings.json\nW/package.json"
	executed := []string{"W/.git/hooks/post-checkout", "W/.envrc", "W/.vscode/tasks.json", "W/sub/.git/hooks/pre-commit", "W/.claude/settings.json"}
	files := map[string]string{"W/gone/a": "a\n", "W/gone/b/c": "c\n"}
	for _, name := range []string{"opened", "named", "mapped", "linked", "cut", "deleted", "mode", "replaced"} {
		files["W/src/"+name] = "as it was\n"
	}
	rows := []Row{
		{ID: "RVW-001", Core: true, Promise: "P3", Title: "what the host would execute reaches the tree before anybody accepted it", Refs: []string{"CVE-2025-59536", "CVE-2026-25725"},
			Setup: func(w *World) error { return w.gitInit("W") }, Absent: executed,
			Action: "overwrite-or-create", Args: []string{"path=" + planted}, Drive: thenReviewed("--apply-all-safe")},
		{ID: "RVW-002", Core: true, Promise: "P2", Title: "what is accepted goes through a link, out of the tree", Refs: []string{"SymJack (Adversa, 2026-05)", "CWE-59"},
			Files: map[string]string{"W/docs/a.txt": "a\n", "W/lib/b.txt": "b\n"}, Keep: []string{"O/canary", "O/sub/canary"}, Absent: []string{"O/sub/a.txt", "O/sub/b.txt", "O/new.txt"},
			Action: "replaces-by-links", Args: []string{"first=W/docs", "second=W/lib", "to=O/sub", "file=O/new.txt"}, Drive: thenReviewed("accept", "--flagged", ".")},
		{ID: "RVW-003", Core: true, Promise: "P2", Title: "a change is in the tree before anybody looked at it: by a descriptor, through memory, by another name, by its mode", Refs: []string{"Documentation/filesystems/overlayfs", "mmap(2)"},
			Files: files, Keep: slices.Sorted(maps.Keys(files)), Action: "changes-everything", Args: []string{"dir=W/src", "gone=W/gone"}, Drive: thenReviewed("accept", "ok.txt")},
		{ID: "RVW-004", Promise: "P2", Title: "marks by which a layer says that something was deleted are forged, and believed when what waits is applied", Refs: []string{"Documentation/filesystems/overlayfs", "xattr(7)"},
			Files: map[string]string{"W/src/kept": "kept\n", "W/src/sub/kept": "kept\n"}, Keep: []string{"W/src/kept", "W/src/sub/kept"},
			Accept: append(slices.Clone(Denials), "EINVAL", "EOPNOTSUPP"), Action: "forges-marks", Args: []string{"dir=W/src"}, Drive: thenReviewed("--apply-all-safe")},
		{ID: "RVW-201", Core: true, Promise: "P3", Title: "what the host executes by way of a link, an include, a hooks directory or an agent's settings reaches the tree before anybody accepted it", Refs: []string{"git-config(1) include.path", "CVE-2025-59536"},
			Setup: func(w *World) error {
				return w.gitInit("W", "include.path", "../inc.cfg", "core.hooksPath", "tools/hooks")
			},
			Files: map[string]string{"W/inc.cfg": "# the user's own\n", "W/tools/hooks/README": "hooks\n", "W/env/rc": "true\n", "W/conf/settings.json": "{}\n", "W/doc/AGENTS.txt": "be kind\n", "W/srv/serve": "pass\n",
				"W/.mcp.json":          `{"mcpServers": {"a": {"command": "python3", "args": ["srv/serve"]}, "b": {"command": "node", "args": ["dist/b.js"]}}}`,
				"W/.codex/config.toml": "[mcp_servers.a]\ncommand = \"python3\"\nargs = [\n  \"srv/toml.py\",\n]\n", "W/srv/toml.py": "pass\n"},
			Links: map[string]string{"W/.envrc": "env/rc", "W/.vscode": "conf", "W/AGENTS.md": "doc/AGENTS.txt", "W/sub/.envrc": "../env/new"},
			Keep:  []string{"W/inc.cfg", "W/env/rc", "W/conf/settings.json", "W/doc/AGENTS.txt", "W/srv/serve", "W/srv/toml.py"}, Absent: []string{"W/tools/hooks/pre-commit", "W/conf/tasks.json", "W/env/new", "W/dist/b.js"},
			Action: "overwrite-or-create", Args: []string{"path=W/inc.cfg\nW/env/rc\nW/conf/settings.json\nW/doc/AGENTS.txt\nW/srv/serve\nW/srv/toml.py\nW/tools/hooks/pre-commit\nW/conf/tasks.json\nW/env/new\nW/dist/b.js"}, Drive: thenReviewed("--apply-all-safe")},
	}
	for i := range rows {
		rows[i].Class, rows[i].Kind = classReview, Sandbox
		rows[i].Harmless = "it is done in a copy; what reaches the tree is looked at"
		rows[i].Trace = Trace{None: "what is done to the copy is ordinary; what reaches the tree is recorded when it is applied"}
	}
	rows = append(rows, Row{ID: "RVW-461", Class: classReview, Kind: Control, Promise: "P2", Title: "in a tree that a group shares, what belongs to the group is changed in the copy as anything else",
		Refs: []string{"chmod(2) S_ISGID", "Documentation/filesystems/overlayfs"}, Files: map[string]string{"W/shared/file": "1\n", "W/shared/deep/file": "1\n", "W/shared/gone": "1\n"}, Setup: sharedByGroup, Needs: []string{"second group"},
		Action: "tools-work", Args: []string{"tools=echo 2 >>shared/file\necho 3 >shared/deep/new\nmv shared/deep shared/moved\nrm shared/gone\nmkdir shared/new"}, Drive: thenReviewed("--apply-all-safe"),
		Trace: Trace{None: "what is done to the copy is ordinary; what reaches the tree is recorded when it is applied"}})
	beside := []string{"W/dist/server.js", "W/dist/rc"}
	return append(rows, Row{ID: "RVW-321", Class: classReview, Kind: Sandbox, Promise: "P3", Title: "in a directory for results the run changes what settings and a link beside it have the host execute, while the rest waits for a human",
		Refs:  []string{"CVE-2025-59536", "direnv(1)"},
		Files: map[string]string{"W/.mcp.json": `{"mcpServers": {"a": {"command": "node", "args": ["dist/server.js"]}}}`, "W/dist/server.js": "1\n", "W/dist/rc": "true\n"},
		Links: map[string]string{"W/.envrc": "dist/rc"}, Keep: beside, Action: "overwrite", Args: []string{"path=" + strings.Join(beside, "\n")},
		Drive: withOutput("--review"), Trace: refused("protected", "file.write", beside...)})
}

// sharedByGroup gives W/shared to a group that is not the first of the user who
// starts the target.
func sharedByGroup(w *World) error {
	group, has := secondGroup()
	if !has {
		return fmt.Errorf("%w: a second group", ErrMissing)
	}
	return filepath.WalkDir(w.Path("W/shared"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() {
			return errors.Join(err, os.Chown(path, -1, group))
		}
		return errors.Join(os.Chown(path, -1, group), os.Chmod(path, 0o775|fs.ModeSetgid))
	})
}

// secondGroup is a group that a file can be given to, and not the first of the user:
// root may name any. A user namespace in which an ordinary user mounts has none:
// those that it does not map are all called 65534 (user_namespaces(7)).
func secondGroup() (group int, has bool) {
	const nobodys, unmapped = 4242, 65534
	if os.Geteuid() == 0 {
		return nobodys, true
	}
	groups, err := os.Getgroups()
	i := slices.IndexFunc(groups, func(g int) bool { return g != os.Getgid() && g != unmapped })
	if err != nil || i < 0 {
		return 0, false
	}
	return groups[i], true
}

// thenReviewed plays the row against a target that keeps changes back, and then
// has a human look at them with those words. Another target is played as it is.
func thenReviewed(words ...string) func(*Session) {
	return func(s *Session) {
		t, ok := s.Target.(Reviewing)
		if !ok {
			s.Run(Command{})
			return
		}
		defer func() { s.Target = t.(Target) }()
		s.Target = t.Holding()
		s.Run(Command{})
		lines := [][]string{words}
		switch words[0] {
		case "accept":
			lines = append(lines, []string{"apply"})
		case "--all": // to look at all there is
			lines = append(lines, []string{"accept", "ok.txt"}, []string{"apply"})
		}
		for _, line := range lines {
			out, err := t.Review(s.World, line...)
			s.World.remembered += string(out)
			if err != nil && len(out) == 0 { // what could not be applied is said there
				s.Fail(fmt.Errorf("review %v: %w", line, err))
				return
			}
		}
	}
}
