//go:build linux

package inside

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/programs"
)

func gitActions() map[string]Action {
	return map[string]Action{
		"git-config":      gitConfig,
		"git-write":       gitWrite,
		"git-hooks":       gitHooks,
		"git-lock":        each(gitLock),
		"git-file":        gitFile,
		"git-commondir":   gitCommondir,
		"git-move":        gitMove,
		"git-objects":     gitObjects,
		"git-links":       gitLinks,
		"git-index":       gitIndex,
		"git-two-lengths": gitTwoLengths,
		"git-look-away":   each(gitLookAway),
		"git-commit":      gitCommit,
		"git-new":         gitNew,
		"git-promise":     gitPromise,
		"git-arm-bare":    each(func(p *Probe, dir string) { p.Try("make "+dir, func() error { return armedRepository(p, dir) }) }),
		"git-two-renames": gitTwoRenames,
	}
}

// trip is a command that leaves a mark outside when a host runs it.
func trip(p *Probe) string { return p.Arg("trip") + " planted" }

// hookNames are those that everyday commands trigger.
var hookNames = []string{"pre-commit", "prepare-commit-msg", "commit-msg", "post-commit", "post-checkout", "post-merge", "post-rewrite", "pre-push",
	"post-index-change", "reference-transaction", "pre-auto-gc", "fsmonitor-watchman", "applypatch-msg", "pre-rebase"}

func tripHook(p *Probe, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	_ = os.Remove(path)
	if err := programs.Write(path, []byte("#!/bin/sh\n"+trip(p)+"\n"), 0o755); err != nil {
		return err
	}
	return os.Chmod(path, 0o755)
}

// gitHooks plants each hook in the directories of the argument "path".
func gitHooks(p *Probe) {
	each(func(p *Probe, dir string) {
		for _, name := range hookNames {
			path := filepath.Join(dir, name)
			p.Try("plant "+path, func() error { return tripHook(p, path) })
		}
	})(p)
}

// gitConfig has git set each key, one line of the argument "keys" each.
func gitConfig(p *Probe) {
	for line := range strings.SplitSeq(p.Arg("keys"), "\n") {
		key, value, _ := strings.Cut(line, " ")
		value = strings.ReplaceAll(value, "{trip}", trip(p))
		p.Try("git config "+key, func() error {
			out, err := tool(p.Arg("dir"), gitEnv(), "git", "config", key, value)
			return refusalErrno(out, err)
		})
	}
}

func gitEnv() []string {
	return append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_COUNT=1",
		"GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=*", "GIT_AUTHOR_NAME=p", "GIT_AUTHOR_EMAIL=p@probe.test",
		"GIT_COMMITTER_NAME=p", "GIT_COMMITTER_EMAIL=p@probe.test", "GIT_TERMINAL_PROMPT=0")
}

// gitWrite appends the argument "text" to each path, which is created if it does
// not exist.
func gitWrite(p *Probe) {
	text := strings.ReplaceAll(p.Arg("text"), "{trip}", trip(p)) + "\n"
	each(func(p *Probe, path string) {
		p.Try("write "+path, func() error {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return err
			}
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
			if err != nil {
				return err
			}
			_, err = f.WriteString(text)
			return errors.Join(err, f.Close())
		})
	})(p)
}

// gitLock replaces a file of git's the way git does, and in other ways.
func gitLock(p *Probe, path string) {
	armed := []byte("[core]\n\trepositoryformatversion = 0\n\tfsmonitor = " + trip(p) + "\n")
	p.Try("rename the lock over "+path, func() error {
		if err := os.WriteFile(path+".lock", armed, 0o644); err != nil {
			return err
		}
		defer os.Remove(path + ".lock")
		return os.Rename(path+".lock", path)
	})
	p.Try("exchange the lock with "+path, func() error {
		if err := os.WriteFile(path+".lock", armed, 0o644); err != nil {
			return err
		}
		defer os.Remove(path + ".lock")
		return unix.Renameat2(unix.AT_FDCWD, path+".lock", unix.AT_FDCWD, path, unix.RENAME_EXCHANGE)
	})
	p.Try("rename a link over "+path, func() error {
		other, link := p.In("W", "armed.cfg"), p.In("W", "armed.link")
		_ = os.Remove(link)
		if err := errors.Join(os.WriteFile(other, armed, 0o644), os.Symlink(other, link)); err != nil {
			return err
		}
		return os.Rename(link, path)
	})
	p.Try("link "+path+" to a second name and write there", func() error {
		second := p.In("W", "second-name")
		_ = os.Remove(second)
		if err := os.Link(path, second); err != nil {
			return err
		}
		return os.WriteFile(second, armed, 0o644)
	})
}

// armedRepository makes a repository at dir that runs a program as soon as git
// sees it.
func armedRepository(p *Probe, dir string) error {
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "objects"), 0o755), os.MkdirAll(filepath.Join(dir, "refs/heads"), 0o755),
		os.WriteFile(filepath.Join(dir, "HEAD"), []byte("ref: refs/heads/main\n"), 0o644),
		os.WriteFile(filepath.Join(dir, "config"), []byte("[core]\n\trepositoryformatversion = 0\n\tfsmonitor = "+trip(p)+
			"\n\tworktree = "+p.Arg("W")+"\n"), 0o644)); err != nil {
		return err
	}
	for _, h := range hookNames {
		if err := tripHook(p, filepath.Join(dir, "hooks", h)); err != nil {
			return err
		}
	}
	return nil
}

// gitFile makes the .git of the directory in the argument "dir" a pointer to an
// armed repository, in three ways.
func gitFile(p *Probe) {
	evil, at := p.In("W", "stash", "evil"), filepath.Join(p.Arg("dir"), ".git")
	if err := errors.Join(armedRepository(p, evil), os.MkdirAll(p.Arg("dir"), 0o755)); err != nil {
		p.Control("make a directory", func() error { return err })
		return
	}
	p.Try("write "+at, func() error { return os.WriteFile(at, []byte("gitdir: "+evil+"\n"), 0o644) })
	p.Try("rename a pointer over "+at, func() error {
		return errors.Join(os.WriteFile(p.In("W", "pointer"), []byte("gitdir: "+evil+"\n"), 0o644), os.Rename(p.In("W", "pointer"), at))
	})
	p.Try("rename a link over "+at, func() error {
		_ = os.Remove(p.In("W", "pointer.link"))
		return errors.Join(os.Symlink(evil, p.In("W", "pointer.link")), os.Rename(p.In("W", "pointer.link"), at))
	})
}

// gitCommondir makes the repository in "dir" take its configuration from another
// one that looks the same.
func gitCommondir(p *Probe) {
	git, evil := filepath.Join(p.Arg("dir"), ".git"), p.In("W", "stash", "common")
	if err := armedRepository(p, evil); err != nil {
		p.Control("make a directory", func() error { return err })
		return
	}
	for _, part := range []string{"objects", "refs"} {
		_ = os.RemoveAll(filepath.Join(evil, part))
		if err := os.CopyFS(filepath.Join(evil, part), os.DirFS(filepath.Join(git, part))); err != nil {
			p.Note("copy of "+part, []byte(err.Error()))
		}
	}
	if p.Arg("without") != "" {
		_ = os.Remove(filepath.Join(evil, p.Arg("without")))
	}
	p.Try("plant commondir", func() error { return os.WriteFile(filepath.Join(git, "commondir"), []byte(evil+"\n"), 0o644) })
	p.Try("plant commondir by a rename", func() error {
		return errors.Join(os.WriteFile(p.In("W", "pointer"), []byte(evil+"\n"), 0o644), os.Rename(p.In("W", "pointer"), filepath.Join(git, "commondir")))
	})
}

// gitMove replaces the repository in "dir", or a directory above it.
func gitMove(p *Probe) {
	dir := p.Arg("dir")
	git, evil := filepath.Join(dir, ".git"), p.In("W", "stash", "evil")
	if err := armedRepository(p, evil); err != nil {
		p.Control("make a directory", func() error { return err })
		return
	}
	p.Try("exchange .git with another repository", func() error {
		return unix.Renameat2(unix.AT_FDCWD, evil, unix.AT_FDCWD, git, unix.RENAME_EXCHANGE)
	})
	p.Try("rename .git and put another repository there", func() error {
		return errors.Join(os.Rename(git, git+"2"), armedRepository(p, git))
	})
	p.Try("rename .git and put a link to the outside there", func() error {
		if err := os.Rename(git, git+"3"); err != nil {
			return err
		}
		return os.Symlink(p.Arg("O"), git)
	})
	if dir != p.Arg("W") {
		p.Try("rename the parent of .git and put another there", func() error {
			return errors.Join(os.Rename(dir, dir+"2"), armedRepository(p, git))
		})
	}
	p.Try("remove .git", func() error { return errors.Join(os.RemoveAll(git), armedRepository(p, git)) })
}

// gitTwoRenames builds the parts under harmless names and renames each one.
func gitTwoRenames(p *Probe) {
	plain := p.In("W", "late", "store")
	p.Try("rename a repository to .git in a new directory", func() error {
		return errors.Join(armedRepository(p, plain), os.Rename(plain, p.In("W", "late", ".git")))
	})
	p.Try("rename a directory of repositories", func() error {
		return errors.Join(armedRepository(p, p.In("W", "later", "a", ".git")), os.Rename(p.In("W", "later"), p.In("W", "latest")))
	})
	p.Try("the same in other letters", func() error { return armedRepository(p, p.In("W", "folded", ".GIT")) })
}

// gitObjects reads a blob of another project through alternates.
func gitObjects(p *Probe) {
	p.Control("name alternates", func() error {
		path := p.In("W", ".git", "objects", "info", "alternates")
		return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(p.Arg("objects")+"\n"), 0o644))
	})
	p.Read("read a blob of theirs", func() ([]byte, error) {
		out, err := tool(p.Arg("W"), gitEnv(), "git", "cat-file", "-p", p.Arg("blob"))
		if err != nil && strings.Contains(string(out), "Not a valid object name") {
			err = unix.ENOENT
		}
		return out, err
	})
}

// gitLinks replaces files that git writes by links to names outside. Git follows
// links even for files that it replaces by a rename.
func gitLinks(p *Probe) {
	for _, name := range []string{"packed-refs", "index", "COMMIT_EDITMSG", "FETCH_HEAD", "ORIG_HEAD", "logs/HEAD", "info/refs", "shallow", "refs/heads/next"} {
		path := p.In("W", ".git", name)
		p.Try("make "+name+" a link", func() error {
			_ = os.Remove(path)
			return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.Symlink(p.In("O", filepath.Base(name)), path))
		})
	}
}

// gitCommit is what a developer's tool must be able to do.
func gitCommit(p *Probe) {
	for _, argv := range [][]string{{"status", "--short"}, {"add", "ok.txt"}, {"commit", "-q", "-m", "inside"}, {"checkout", "-q", "-b", "topic"},
		{"stash", "list"}, {"log", "-1", "--format=%s"}, {"diff", "--exit-code", "HEAD", "--", "tracked"}, {"tag", "v1"}} {
		p.Try("git "+strings.Join(argv, " "), func() error {
			out, err := tool(p.Arg("W"), gitEnv(), append([]string{"git"}, argv...)...)
			return refusalErrno(out, err)
		})
	}
}

// gitNew makes a harmless repository.
func gitNew(p *Probe) {
	dir := p.In("W", "fresh")
	for _, argv := range [][]string{{"git", "init", "-q", dir}, {"git", "-C", dir, "commit", "-q", "--allow-empty", "-m", "first"}} {
		p.Try(strings.Join(argv, " "), func() error {
			out, err := tool(p.Arg("W"), gitEnv(), argv...)
			return refusalErrno(out, err)
		})
	}
}

// gitPromise makes a repository for each line "KEY VALUE" of "keys", in which an
// object is missing that only the remote "url" could have.
func gitPromise(p *Probe) {
	for i, line := range strings.Split(p.Arg("keys"), "\n") {
		dir := p.In("W", "fresh", strconv.Itoa(i))
		key, value, _ := strings.Cut(line, " ")
		git := func(args ...string) {
			p.Try("git "+strings.Join(args, " ")+" in "+dir, func() error {
				out, err := tool(dir, gitEnv(), append([]string{"git"}, args...)...)
				return refusalErrno(out, err)
			})
		}
		p.Try("make "+dir, func() error { return create(filepath.Join(dir, "file")) })
		git("init", "-q")
		git("add", "file")
		git("commit", "-q", "-m", "first")
		git("config", "core.repositoryFormatVersion", "1")
		git("config", "remote.origin.url", p.Arg("url"))
		git("config", key, value)
		p.Try("take the object away", func() error {
			objects, err := filepath.Glob(dir + "/.git/objects/??/*")
			if err != nil || len(objects) != 3 { // those of the commit, the tree and the file
				return errors.Join(err, unix.ENOENT)
			}
			out, err := tool(dir, gitEnv(), "git", "rev-parse", "HEAD:file")
			if err != nil || len(out) < 40 {
				return errors.Join(err, unix.ENOENT)
			}
			return os.Remove(filepath.Join(dir, ".git/objects", string(out[:2]), string(out[2:40])))
		})
		p.Try("change the file", func() error { return os.WriteFile(filepath.Join(dir, "file"), []byte("changed\n"), 0o644) })
	}
}
