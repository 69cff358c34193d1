//go:build linux

package probe

import (
	"errors"
	"os"
	"path/filepath"
)

// inGit makes a repository at each template, with settings.
func inGit(config []string, templates ...string) func(*World) error {
	return func(w *World) error {
		for _, t := range templates {
			if err := w.gitInit(t, config...); err != nil {
				return err
			}
		}
		return nil
	}
}

// otherProject makes a project in the home with a token in its history.
func otherProject(w *World) error {
	if err := errors.Join(w.gitInit("W"), w.gitInit("H/other")); err != nil {
		return err
	}
	if err := w.Plant("H/other/secret"); err != nil {
		return err
	}
	out, err := w.git(w.Path("H/other"), "hash-object", "-w", "secret")
	w.Arg("objects=" + w.Path("H/other/.git/objects"))
	w.Arg("blob=" + firstLine(out))
	return err
}

// worktreeElsewhere makes the workspace a worktree of a repository beside it.
func worktreeElsewhere(w *World) error {
	if err := w.gitInit("S/main"); err != nil {
		return err
	}
	_, err := w.git(w.Path("S/main"), "worktree", "add", "-q", w.Path("S/tree"))
	return errors.Join(err, os.Rename(w.Path("S/tree/.git"), w.Path("W/.git")), w.File("S/main/.git/worktrees/tree/gitdir", w.W+"/.git\n"))
}

// repositoryWhole checks from outside that the new repository has its commit.
func repositoryWhole(s *Session) {
	s.Run(Command{})
	if out, err := s.World.git(s.World.Path("W/fresh"), "log", "-1", "--format=%s"); err != nil || firstLine(out) != "first" {
		s.Fail(errors.Join(errors.New("the new repository is incomplete on the host"), err))
	}
}

// linkedPart makes a repository with one part replaced by a link into the tree.
func linkedPart(part, to string) func(*World) error {
	return func(w *World) error {
		err := w.gitInit("W")
		return errors.Join(err, os.Rename(w.Path("W/.git/"+part), w.Path("W/"+to)), os.Symlink("../"+to, w.Path("W/.git/"+part)))
	}
}

// repositoriesOfAll makes a repository with another one and a worktree in it.
func repositoriesOfAll(w *World) error {
	err := inGit(nil, "W", "W/sub")(w)
	_, err2 := w.git(w.W, "worktree", "add", "-q", w.Path("W/tree"))
	return errors.Join(err, err2)
}

// fetchedFrom makes a repository and a service that stands for the remote one.
func fetchedFrom(w *World) error {
	l, err := w.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	w.args = append(w.args, "url=git://"+l.Addr+"/what-was-read-inside")
	return w.gitInit("W")
}

// thenDiffed looks at the changes in each repository that was made, as a human does.
func thenDiffed(s *Session) {
	s.Run(Command{})
	made, err := filepath.Glob(s.World.Path("W/fresh/*/file"))
	if err != nil || len(made) != 3 {
		return // refused
	}
	for _, file := range made {
		_, _ = s.World.git(filepath.Dir(file), "diff") // it may fail: what counts is whom it asked
	}
}

// upstream makes the workspace a clone, with a submodule, of a repository in
// which others have committed to both.
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
