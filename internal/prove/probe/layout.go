//go:build linux

package probe

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"holdfast.dev/holdfast/internal/floor/paths"
)

// Layout is where the workspace, the home and the outside are in a world.
type Layout string

// The layouts. The zero value is LayoutSiblings.
const (
	LayoutHome     Layout = "home"         // the workspace below the home, beside other projects: ~/src/w, ~/src/o
	LayoutSiblings Layout = "siblings"     // workspace and home side by side, nothing above them
	LayoutApart    Layout = "apart"        // the workspace in [Runner.Apart], far from the home
	LayoutLinked   Layout = "linked"       // as LayoutHome, but the home is named by a symbolic link
	LayoutWorktree Layout = "worktree"     // as LayoutHome, but the workspace is a linked worktree (git-worktree(1))
	LayoutSub      Layout = "subdirectory" // as LayoutHome, but in a repository with its .git above the workspace
)

// lay sets where everything is in a world with the directory w.B.
func (w *World) lay(l Layout, apart, workspace string) error {
	if workspace == "" {
		workspace = "w"
	}
	w.H, w.S = filepath.Join(w.B, "h"), filepath.Join(w.B, "h", "src")
	switch l {
	case LayoutHome, LayoutWorktree, LayoutSub:
	case LayoutSiblings, "":
		w.S = w.B
	case LayoutApart:
		if apart == "" {
			return fmt.Errorf("%w: a directory apart from the home", ErrMissing)
		}
		// The same name, because processes of this world are found by it.
		w.S = filepath.Join(apart, filepath.Base(w.B))
		w.Defer(func() error { return RemoveAll(w.S) })
	case LayoutLinked:
		w.H, w.S = filepath.Join(w.B, "disk", "h"), filepath.Join(w.B, "disk", "h", "src")
		w.link = filepath.Join(w.B, "home")
	default:
		return fmt.Errorf("no layout is called %q", l)
	}
	w.W, w.O, w.R = filepath.Join(w.S, workspace), filepath.Join(w.S, "o"), filepath.Join(w.S, "r")
	if err := os.MkdirAll(w.S, 0o755); err != nil {
		return err
	}
	if w.link != "" {
		return os.Symlink(w.H, w.link)
	}
	return nil
}

// surround makes the repository that the layout puts the workspace in, before any
// other file is made.
func (w *World) surround(l Layout) error {
	switch l {
	case LayoutSub:
		return w.gitInit("S")
	case LayoutWorktree:
		err := w.gitInit("S/trunk")
		if err == nil {
			_, err = w.git(w.Path("S/trunk"), "worktree", "add", "-q", "-b", "work", w.W)
		}
		for _, dir := range []string{"objects", "refs", "logs", "worktrees"} { // the command may write these, as git does
			w.shared = append(w.shared, w.Path("S/trunk/.git/"+dir))
		}
		return err
	}
	return nil
}

// named returns path as the user of this layout names it: through the link to the
// home.
func (w *World) named(path string) string {
	if rel, below := paths.Rel(w.H, path); w.link != "" && (below || path == w.H) {
		return filepath.Join(w.link, rel)
	}
	return path
}

// Home returns the home as the launcher sees it, and Work the workspace.
func (w *World) Home() string { return w.named(w.H) }

// Work returns the workspace as the user names it.
func (w *World) Work() string { return w.named(w.W) }

// roots returns the directories of w and their templates, inner ones first.
func (w *World) roots() []root {
	all := []root{{w.W, "W"}, {w.O, "O"}, {w.R, "R"}, {w.S, "S"}, {w.H, "H"}, {w.B, "B"}}
	return slices.DeleteFunc(all, func(r root) bool { return r.name == "S" && r.path == w.B })
}

type root struct{ path, name string }
