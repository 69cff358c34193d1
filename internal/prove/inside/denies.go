//go:build linux

package inside

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

func deniesActions() map[string]Action {
	return map[string]Action{
		"make-name":      makeName,
		"move-in":        moveIn,
		"read-late":      readLate,
		"read-hidden":    each(readHidden),
		"make-repo":      each(makeRepo),
		"make-gitfile":   makeGitFile,
		"move-workspace": moveWorkspace,
		"metadata":       each(metadata),
		"swap-all":       each(swapAll),
		"after-go":       afterGo,
		"nothing-denied": func(p *Probe) {
			p.Try("a name that does not exist", func() error { return openWith("/no-such-name", 0) })
		},
		"close-directory": func(p *Probe) { p.Control("close it", func() error { return os.Chmod(p.Arg("path"), 0) }); gone(p) },
		"open-and-write":  openAndWrite,
		"make-skeleton":   each(makeSkeleton),
		"rename-pairs":    renamePairs,
		"create-armed":    each(createArmed),
		"arm-configs":     armConfigs,
		"unmake-repo":     each(unmakeRepo),
		"make-link":       makeLink,
		"deep-repo":       deepRepo,
		"closed-repo":     closedRepo,
		"among-many":      amongMany,
		"leave-setuid":    leaveSetuid,
		"swap-until":      swapUntil,
	}
}

// gone is an attempt that always fails, for a command that only prepares.
func gone(p *Probe) {
	p.Try("a name that does not exist", func() error { return unix.Access("/no-such-name", unix.F_OK) })
}

// makeName makes one name in every way in which a name can come into being.
func makeName(p *Probe) {
	at := func(n int) string { return p.In("W", "made-"+itoa(n), p.Arg("name")) }
	p.Try("open with O_CREAT", func() error { return create(at(1)) })
	p.Try("rename", func() error {
		other := p.In("W", "harmless-name")
		return errors.Join(create(other), os.MkdirAll(filepath.Dir(at(2)), 0o755), os.Rename(other, at(2)))
	})
	p.Try("hard link", func() error {
		return errors.Join(os.MkdirAll(filepath.Dir(at(3)), 0o755), os.Link(p.In("W", "ok.txt"), at(3)))
	})
	p.Try("symbolic link", func() error {
		other := p.In("W", "harmless-target")
		return errors.Join(create(other), os.MkdirAll(filepath.Dir(at(4)), 0o755), os.Symlink(other, at(4)))
	})
	p.Try("unnamed file, linked", func() error {
		if err := os.MkdirAll(filepath.Dir(at(5)), 0o755); err != nil {
			return err
		}
		fd, err := unix.Open(p.Arg("W"), unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o644)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Linkat(unix.AT_FDCWD, procFD(fd), unix.AT_FDCWD, at(5), unix.AT_SYMLINK_FOLLOW)
	})
}

func moveIn(p *Probe) {
	p.Try("move a tree with a protected name in it", func() error {
		return errors.Join(
			create(p.In("W", "made", "plain", "tasks.json")),
			os.Rename(p.In("W", "made", "plain"), p.In("W", "made", ".vscode")),
			os.MkdirAll(p.In("W", "in"), 0o755),
			os.Rename(p.In("W", "made"), p.In("W", "in", "place")))
	})
}

// readLate looks for files that do not exist yet, reports that, and looks again
// after they have been made.
func readLate(p *Probe) {
	for path := range strings.SplitSeq(p.Arg("path"), "\n") {
		_, err := os.ReadFile(path)
		p.Note("first look at "+path, []byte(ErrnoName(err)))
	}
	p.Control("say that it has looked", func() error { return create(p.In("W", "looked")) })
	p.Control("wait for what is made late", func() error { return p.await("late") })
	for path := range strings.SplitSeq(p.Arg("path"), "\n") {
		p.Read("read "+path, func() ([]byte, error) { return os.ReadFile(path) })
	}
}

// readHidden reads a file, and again after it was renamed, linked, or reached
// through its parent directory.
func readHidden(p *Probe, path string) {
	readWays(p, path)
	moved := p.In("W", "moved-"+filepath.Base(filepath.Dir(path)))
	for _, get := range []struct {
		name string
		do   func() error
	}{
		{"rename", func() error { return unix.Rename(path, moved) }},
		{"link", func() error { return unix.Link(path, moved) }},
		{"exchange", func() error {
			return errors.Join(create(moved), unix.Renameat2(unix.AT_FDCWD, moved, unix.AT_FDCWD, path, unix.RENAME_EXCHANGE))
		}},
		{"copy", func() error { return copyFile(path, moved) }},
	} {
		p.Read(get.name+" "+path, func() ([]byte, error) {
			if err := get.do(); err != nil {
				return nil, err
			}
			return os.ReadFile(moved)
		})
	}
	p.Try("overwrite "+path, func() error { return overwrite(path) })
	p.Try("unlink "+path, func() error { return unix.Unlink(path) })
}

func copyFile(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o644)
}

// armed is a configuration from which git would run a program.
const armed = "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = ./run-me\n\thooksPath = ../planted\n"

// makeRepo makes what git takes for a repository, with everything in it that runs
// on the host.
func makeRepo(p *Probe, dir string) {
	p.Try("make the skeleton of "+dir, func() error {
		return errors.Join(
			os.MkdirAll(filepath.Join(dir, "objects"), 0o755),
			os.MkdirAll(filepath.Join(dir, "refs"), 0o755),
			os.WriteFile(filepath.Join(dir, "HEAD"), []byte("ref: refs/heads/main\n"), 0o644))
	})
	p.Try("arm the configuration of "+dir, func() error { return os.WriteFile(filepath.Join(dir, "config"), []byte(armed), 0o644) })
	p.Try("make hooks in "+dir, func() error {
		return errors.Join(create(filepath.Join(dir, "hooks", "pre-commit")), create(filepath.Join(dir, "hooks", "post-checkout")))
	})
}

func makeGitFile(p *Probe) {
	makeRepo(p, p.In("W", "elsewhere"))
	p.Try("make a .git file that points to it", func() error {
		return errors.Join(os.MkdirAll(p.In("W", "tree"), 0o755),
			os.WriteFile(p.In("W", "tree", ".git"), []byte("gitdir: ../elsewhere\n"), 0o644))
	})
}

func moveWorkspace(p *Probe) {
	w := p.Arg("W")
	p.Try("rename by path", func() error { return unix.Rename(w, w+".old") })
	p.Try("rename from inside", func() error { return unix.Rename("../"+filepath.Base(w), "../"+filepath.Base(w)+".old") })
	p.Try("exchange with a directory inside", func() error {
		return errors.Join(os.MkdirAll(p.In("W", "new"), 0o755), unix.Renameat2(unix.AT_FDCWD, w, unix.AT_FDCWD, p.In("W", "new"), unix.RENAME_EXCHANGE))
	})
	p.Try("remove and link", func() error { return errors.Join(unix.Rmdir(w), os.Symlink("/", w)) })
}

// metadata sets metadata to its current values, except the times and one
// attribute.
func metadata(p *Probe, path string) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		p.Try("stat "+path, func() error { return err })
		return
	}
	p.Try("chmod "+path, func() error { return unix.Chmod(path, st.Mode&0o777) })
	p.Try("fchmodat2 "+path, func() error { return unix.Fchmodat(unix.AT_FDCWD, path, st.Mode&0o777, unix.AT_SYMLINK_NOFOLLOW) })
	p.Try("chown "+path, func() error { return unix.Lchown(path, os.Getuid(), os.Getgid()) })
	p.Try("utimensat "+path, func() error { return os.Chtimes(path, time.Unix(1, 0), time.Unix(1, 0)) })
	p.Try("setxattr "+path, func() error { return unix.Setxattr(path, "user.probe", []byte("x"), 0) })
	p.Try("set an access list on "+path, func() error {
		// Version 2: owner, group and others unchanged.
		acl := []byte{2, 0, 0, 0, 1, 0, 7, 0, 255, 255, 255, 255, 4, 0, 5, 0, 255, 255, 255, 255, 32, 0, 5, 0, 255, 255, 255, 255}
		return unix.Setxattr(path, "system.posix_acl_access", acl, 0)
	})
	p.Try("set the flags of "+path, func() error { return setFlags(path) })
}

// swapAll replaces everything in a directory with links to the outside.
func swapAll(p *Probe, dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		p.Try("list "+dir, func() error { return err })
		return
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		p.Try("swap "+path, func() error {
			return errors.Join(os.Rename(path, path+".away"), os.Symlink(p.Arg("O"), path))
		})
	}
	gone(p)
}

// awaitGo waits until another command in the same workspace has ended.
func awaitGo(p *Probe) {
	p.Control("say that it waits", func() error { return create(p.In("W", "waits")) })
	p.Control("wait for the other's end", func() error { return p.await("go") })
}

func afterGo(p *Probe) {
	awaitGo(p)
	each(func(p *Probe, path string) { p.Try("create "+path, func() error { return create(path) }) })(p)
}

func openAndWrite(p *Probe) {
	// What was closed may be ours to open, but the hook is not ours to change.
	if err := os.Chmod(p.Arg("path"), 0o755); err != nil {
		p.Note("it stays closed", []byte(err.Error()))
	}
	p.Try("overwrite the hook", func() error { return overwrite(p.Arg("file")) })
	p.Try("replace the hook", func() error { return replace(p.Arg("file"), 0) })
}
