//go:build linux

package probe

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/programs"
)

// repo returns what makes a directory a repository for git, without using git.
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

// oddObjects makes files on which a careless search hangs or fails.
func oddObjects(w *World) error {
	for _, dir := range []string{"W/a", "W/b", "W/c", "W/.mcp.json", "W/d/.claude"} {
		if err := os.MkdirAll(w.Path(dir), 0o755); err != nil {
			return err
		}
	}
	return errors.Join(
		unix.Mkfifo(w.Path("W/.git"), 0o644),
		unix.Mkfifo(w.Path("W/a/.mcp.json"), 0o644),
		unix.Mkfifo(w.Path("W/d/.claude/settings.json"), 0o644),
		os.Symlink(".vscode", w.Path("W/.vscode")),
		os.Symlink("../b/.git", w.Path("W/c/.git")), os.Symlink("../c/.git", w.Path("W/b/.git")),
		os.Symlink("/proc/self/fd/0", w.Path("W/.envrc")),
		w.File("W/big/.git", "gitdir: "+strings.Repeat("x/", 1<<20)))
}

func bindAlias(w *World) error {
	alias := filepath.Join(w.B, "alias")
	if err := os.Mkdir(alias, 0o755); err != nil {
		return err
	}
	// Unmounted when the world is removed.
	return unix.Mount(w.W, alias, "", unix.MS_BIND, "")
}

// foldingWorkspace puts a case-insensitive file system into the workspace.
func foldingWorkspace(w *World) error {
	dir := w.Path("W/fold")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "casefold"); err != nil {
		return fmt.Errorf("%w: a file system that ignores case: %v", ErrMissing, err)
	}
	if err := foldCase(dir); err != nil {
		return err
	}
	for _, p := range []string{"W/fold/.cursor/mcp.json", "W/fold/.git/hooks/pre-commit", "W/fold/.git/HEAD", "W/fold/.git/config",
		"W/fold/.git/objects/keep", "W/fold/.git/refs/keep"} {
		if err := w.File(p, "ref: refs/heads/main\n"); err != nil {
			return err
		}
	}
	return errors.Join(w.Keep(w.Path("W/fold/.cursor/mcp.json")), w.Keep(w.Path("W/fold/.git/hooks/pre-commit")))
}

const casefold = 0x40000000 // FS_CASEFOLD_FL, linux/fs.h

// foldCase makes the names in an empty directory, and in those made below it
// later, case-insensitive.
func foldCase(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return unix.IoctlSetPointerInt(int(d.Fd()), unix.FS_IOC_SETFLAGS, casefold)
}

const (
	deepName  = "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"
	deepLevel = 50 // of deepName: 5050 bytes, and PATH_MAX is 4096
)

// deepRepo makes a repository that no absolute path can reach.
func deepRepo(w *World) error {
	fd, err := unix.Open(w.W, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	names := append(strings.Split(strings.Repeat(deepName+" ", deepLevel), " ")[:deepLevel], ".git", "hooks")
	for _, name := range names {
		if err := unix.Mkdirat(fd, name, 0o755); err != nil {
			return err
		}
		next, err := unix.Openat(fd, name, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		unix.Close(fd)
		if err != nil {
			return err
		}
		fd = next
	}
	defer unix.Close(fd)
	for name, content := range map[string]string{"pre-commit": hook, "../HEAD": "ref: refs/heads/main\n", "../config": "[core]\n\tbare = false\n"} {
		if err := programs.Write(procFD(fd)+"/"+name, []byte(content), 0o755); err != nil {
			return err
		}
	}
	return errors.Join(
		os.Mkdir(procFD(fd)+"/../objects", 0o755),
		os.Mkdir(procFD(fd)+"/../refs", 0o755))
}

// descendTo opens the directory at the end of the deep path.
func descendTo(root string) (int, error) {
	fd, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	for i := 0; err == nil && i < deepLevel; i++ {
		var next int
		next, err = unix.Openat(fd, deepName, unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		unix.Close(fd)
		fd = next
	}
	return fd, err
}

func procFD(fd int) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }

// deepRepoChanged looks at the hook of deepRepo.
func deepRepoChanged(w *World, _ Observation) []string {
	fd, err := descendTo(w.W)
	if err != nil {
		return []string{"the deep repository is gone: " + err.Error()}
	}
	defer unix.Close(fd)
	b, err := os.ReadFile(procFD(fd) + "/.git/hooks/pre-commit")
	if err != nil || string(b) != hook {
		return []string{fmt.Sprintf("the hook of the deep repository is now %q, %v", b, err)}
	}
	return nil
}
