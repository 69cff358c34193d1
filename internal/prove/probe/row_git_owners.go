//go:build linux

package probe

import (
	"errors"
	"os"
)

// gitOwnersRows are repositories whose owner has set them up in a way that
// lets files of the tree run.
func gitOwnersRows() []Row {
	submodule := func(w *World) error {
		err := errors.Join(w.gitInit("W"), os.Mkdir(w.Path("W/.git/modules"), 0o755))
		_, err2 := w.git(w.W, "init", "-q", "--separate-git-dir=.git/modules/sub", "sub")
		return errors.Join(err, err2)
	}
	// linked replaces a part of the repository by a link into the tree.
	linked := func(part, to string) func(*World) error {
		return func(w *World) error {
			err := w.gitInit("W")
			return errors.Join(err, os.Rename(w.Path("W/.git/"+part), w.Path("W/"+to)), os.Symlink("../"+to, w.Path("W/.git/"+part)))
		}
	}
	script := "#!/bin/sh\ncat\n"
	return []Row{
		{ID: "GIT-001j", Title: "the user's own configuration has the hooks of every repository in the tree", Refs: []string{"git-config(1) core.hooksPath"},
			Files: map[string]string{"H/.gitconfig": "[core]\n\thooksPath = .myhooks\n"}, Setup: inGit(nil, "W", "W/a"),
			Harmless: takenAway, Action: "git-hooks", Args: []string{"path=W/.myhooks\nW/a/.myhooks"}},
		{ID: "GIT-001k", Title: "the hooks of the repository are a link into the tree", Refs: []string{"githooks(5)"},
			Setup: linked("hooks", "githooks"), Harmless: takenAway, Action: "git-hooks", Args: []string{"path=W/githooks"}},
		{ID: "GIT-002e", Title: "the configuration of a submodule is replaced", Refs: []string{"gitsubmodules(7)"}, Setup: submodule,
			Files: map[string]string{"W/keep": ""}, Accept: append([]string{"EEXIST"}, Denials...),
			Action: "git-lock", Args: []string{"path=W/.git/modules/sub/config\nW/sub/.git"}},
		{ID: "GIT-002f", Title: "the configuration of the repository is a link into the tree", Refs: []string{"git-config(1)"},
			Setup: linked("config", "gitconfig"), Harmless: takenAway, Accept: append([]string{"EEXIST"}, Denials...),
			Action: "git-lock", Args: []string{"path=W/gitconfig"}},
		{ID: "GIT-003c", Title: "the owner's configuration runs a filter that lies in the tree", Refs: []string{"gitattributes(5) filter"},
			Setup:    inGit([]string{"filter.own.clean", "./tools/clean.sh", "alias.go", "!./tools/go.sh"}, "W"),
			Files:    map[string]string{"W/tools/clean.sh": script, "W/.gitattributes": "* filter=own\n"},
			Harmless: "it may be edited, when the launcher names it at the end", Oracle: named(map[string]string{"W/tools/clean.sh": script}, "W/tools/clean.sh"),
			Kind: Sandbox, Promise: "P3",
			Action: "write-names", Args: []string{"path=W/tools/clean.sh"}},
		{ID: "GIT-005d", Title: "the user's own configuration includes a file of the tree", Refs: []string{"git-config(1) includeIf"},
			Setup: func(w *World) error {
				return errors.Join(w.gitInit("W"), w.File("H/.gitconfig", "[includeIf \"gitdir:"+w.W+"/\"]\n\tpath = "+w.W+"/team.cfg\n"))
			},
			Harmless: takenAway, Action: "git-write", Args: []string{"path=W/team.cfg", "text=[core]\n\tfsmonitor = {trip}"}},
	}
}
