//go:build linux

package probe

import (
	"errors"
	"os"

	"holdfast.dev/holdfast/internal/prove/replay"
)

func gitReplays() []replayRow {
	hookAt := func(dir string, names ...string) []planted {
		var at []string
		for _, n := range names {
			at = append(at, dir+n)
		}
		return every(sh, at...)
	}
	const armed = "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = \"{trip}; false\"\n"
	return []replayRow{
		{id: "GIT-020", title: "a human pulls what others did, with submodules", refs: []string{"githooks(5)", "gitsubmodules(7)"}, setup: upstream,
			programs: []replay.Program{replay.GitPull},
			plants: append(hookAt("W/.git/hooks/", "post-merge", "reference-transaction", "post-index-change"),
				hookAt("W/.git/modules/lib/hooks/", "post-checkout")...)},
		{id: "GIT-021", title: "a human makes a worktree and uses another", refs: []string{"git-worktree(1)"}, setup: withWorktree,
			programs: []replay.Program{replay.GitWorktree},
			plants: append(hookAt("W/.git/hooks/", "post-checkout", "pre-commit"),
				plant("W/.git/worktrees/tree/config.worktree", armed))},
		{id: "GIT-022", title: "attributes of the tree choose drivers from a file that the owner's configuration includes", refs: []string{"gitattributes(5)", "git-config(1) include.path"},
			setup: inGit([]string{"include.path", "../team.cfg"}, "W"), programs: []replay.Program{replay.Git},
			plants: []planted{
				plant("W/team.cfg", "[filter \"f\"]\n\tclean = \"{trip}; cat\"\n[diff \"f\"]\n\ttextconv = \"{trip}; cat\"\n"),
				flag("W/.gitattributes", "* filter=f diff=f\n").inert("it chooses what the other defines")}},
		{id: "GIT-023", title: "a human goes on with a rebase that was put under way", refs: []string{"git-rebase(1) exec"}, setup: inGit(nil, "W"),
			programs: []replay.Program{replay.GitContinue},
			plants:   append(underWay(), plant("W/.git/rebase-merge/git-rebase-todo", "exec {trip}\n"))},
		{id: "GIT-024", title: "an environment that is loaded on entering the project tells git what to run", refs: []string{"git(1) GIT_EXTERNAL_DIFF, GIT_CONFIG_COUNT"},
			setup: func(w *World) error {
				if err := w.gitInit("W"); err != nil {
					return err
				}
				if err := allowed(w, "dotenv_if_exists\n"); err != nil {
					return err
				}
				return w.File("W/tracked", "changed\n")
			},
			programs: []replay.Program{replay.DirenvGit},
			plants:   []planted{flag("W/.env", "GIT_CONFIG_COUNT=1\nGIT_CONFIG_KEY_0=diff.external\nGIT_CONFIG_VALUE_0='{trip};:'\n")}},
		{id: "GIT-025", title: "a repository below the project is looked into by the one above it", refs: []string{"git-status(1) submodules"},
			setup: gitlink, programs: []replay.Program{replay.Git},
			plants: []planted{plant("W/lib/.git/config", armed)}},
	}
}

// underWay are the files of a rebase, and more of them by name and text.
func underWay(more ...string) []planted {
	const whole = "it makes the rebase whole"
	out := []planted{plant("W/.git/rebase-merge/head-name", "refs/heads/main\n").inert(whole), plant("W/.git/rebase-merge/interactive", "").inert(whole),
		plant("W/.git/rebase-merge/onto", "{head}\n").inert(whole), plant("W/.git/rebase-merge/orig-head", "{head}\n").inert(whole)}
	for i := 0; i+1 < len(more); i += 2 {
		out = append(out, plant("W/.git/rebase-merge/"+more[i], more[i+1]).inert(whole))
	}
	return out
}

// upstream makes the workspace a clone, with a submodule, of a repository in
// which others have gone on in both.
func upstream(w *World) error {
	lib, up := w.Path("O/lib"), w.Path("O/up")
	if err := errors.Join(w.gitInit("O/lib"), w.gitInit("O/up")); err != nil {
		return err
	}
	next := []string{"commit", "-q", "--allow-empty", "-m", "next"}
	for _, step := range []struct {
		dir  string
		args []string
	}{
		{up, []string{"submodule", "--quiet", "add", lib, "lib"}}, {up, []string{"commit", "-q", "-m", "with a submodule"}},
		{w.W, []string{"init", "-q", "."}}, {w.W, []string{"remote", "add", "origin", up}}, {w.W, []string{"pull", "-q", "origin", "main"}},
		{w.W, []string{"branch", "-q", "--set-upstream-to=origin/main"}}, {w.W, []string{"submodule", "--quiet", "update", "--init"}},
		{lib, next}, {up + "/lib", []string{"pull", "-q"}}, {up, []string{"commit", "-q", "-a", "-m", "next of the submodule"}},
	} {
		if _, err := w.git(step.dir, step.args...); err != nil {
			return err
		}
	}
	return nil
}

func withWorktree(w *World) error {
	if err := w.gitInit("W", "extensions.worktreeConfig", "true"); err != nil {
		return err
	}
	_, err := w.git(w.W, "worktree", "add", "-q", w.Path("W/tree"))
	return err
}

// gitlink makes a repository whose index has another one below it.
func gitlink(w *World) error {
	if err := errors.Join(w.gitInit("W"), w.gitInit("W/lib")); err != nil {
		return err
	}
	if _, err := w.git(w.W, "-c", "advice.addEmbeddedRepo=false", "add", "lib"); err != nil {
		return err
	}
	return os.Remove(w.Path("W/lib/.git/index"))
}
