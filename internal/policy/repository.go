package policy

import (
	"os"
	"path/filepath"
	"slices"
)

// workspaceAround is the directory that a run works in where no workspace is named: the top
// of the git repository around dir, or the nearest directory on the way there with a policy
// of its project; else dir. What is above dir must belong to the same user, lie in the same
// file system, and be a directory that may be a workspace. A link is no mark: where it
// leads may not be in view.
func (h Host) workspaceAround(dir located) located {
	if h.UID != 0 && dir.owner != h.UID {
		return dir
	}
	for at := dir; ; {
		if at.isTop() {
			return at
		}
		up, err := locate(filepath.Dir(at.path))
		if err != nil || up.id.Dev != dir.id.Dev || up.owner != dir.owner || h.workspace(up.path) != nil {
			return dir
		}
		at = up
	}
}

// isTop reports whether a directory is the top of a repository, of a worktree or of a
// submodule of its owner's, or has a project's policy. It does not read what they say.
func (d located) isTop() bool {
	owns := func(name string) (at located, ok bool) {
		at, err := locate(filepath.Join(d.path, name))
		return at, err == nil && len(at.links) == 0 && at.owner == d.owner
	}
	if own, ok := owns(ProjectFile); ok && own.file {
		return true
	}
	git, ok := owns(".git")
	if !ok || git.file {
		return ok
	}
	for _, name := range []string{"HEAD", "objects", "refs"} { // without these git takes it for no repository
		if _, ok := owns(".git/" + name); !ok {
			return false
		}
	}
	return true
}

// WorkspaceAt is the directory that a run in the caller's working directory has for its
// workspace, where none is named.
func WorkspaceAt(h Host) string {
	at, err := locate(h.Dir)
	if err != nil {
		return h.Dir
	}
	return h.workspaceAround(at).path
}

// RepositoryAround is the repository that a workspace without one of its own lies in, and
// that is not in view; "" for none. The user's home is no workspace.
func (p Plan) RepositoryAround() string {
	for dir := p.Workspace; dir != "/" && !within(p.Identity.Home, dir); dir = filepath.Dir(dir) {
		git, err := os.Lstat(filepath.Join(dir, ".git"))
		if err == nil && git.IsDir() { // one without a HEAD git passes over
			_, err = os.Lstat(filepath.Join(dir, ".git/HEAD"))
		}
		switch {
		case err != nil:
		case dir == p.Workspace || slices.ContainsFunc(p.Paths, func(r PathRule) bool { return within(dir, r.Path) }):
			return ""
		case git.Mode()&os.ModeSymlink == 0: // where a link leads may not be in view either
			return dir
		}
	}
	return ""
}
