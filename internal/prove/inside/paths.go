//go:build linux

package inside

import (
	"os"

	"golang.org/x/sys/unix"
)

func pathsActions() map[string]Action {
	return map[string]Action{
		"deep-link":     deepLink,
		"deep-hook":     deepHook,
		"overwrite-odd": overwriteOdd,
	}
}

const (
	deepName  = "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789"
	deepLevel = 50
)

// deepLink builds a path of 5000 bytes, step by step, and writes through a link
// at its end.
func deepLink(p *Probe) {
	fd, err := descend(p.Arg("W"), true)
	if err != nil {
		p.Control("build a deep path", func() error { return err })
		return
	}
	defer unix.Close(fd)
	p.Control("link at the end of a deep path", func() error { return unix.Symlinkat(p.In("O", "canary"), fd, "out") })
	p.Try("write through it", func() error {
		f, err := unix.Openat(fd, "out", unix.O_WRONLY|unix.O_TRUNC|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(f)
		_, err = unix.Write(f, []byte(mark))
		return err
	})
}

// deepHook changes the hook of an existing repository.
func deepHook(p *Probe) {
	fd, err := descend(p.Arg("W"), false)
	if err != nil {
		p.Try("reach the deep repository", func() error { return err })
		return
	}
	defer unix.Close(fd)
	p.Try("overwrite the deep hook", func() error { return overwrite(procFD(fd) + "/.git/hooks/pre-commit") })
	p.Try("replace the deep hook", func() error { return replace(procFD(fd)+"/.git/hooks/pre-commit", 0) })
	p.Try("rename the deep hooks", func() error { return unix.Renameat(fd, ".git/hooks", fd, ".git/away") })
	p.Try("rename the deep repository", func() error { return unix.Renameat(fd, ".git", fd, "away") })
}

func descend(root string, build bool) (int, error) {
	fd, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	for i := 0; err == nil && i < deepLevel; i++ {
		if build {
			if err := unix.Mkdirat(fd, deepName, 0o755); err != nil {
				return -1, err
			}
		}
		var next int
		next, err = unix.Openat(fd, deepName, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		unix.Close(fd)
		fd = next
	}
	return fd, err
}

// overwriteOdd overwrites the protected file in every directory of the workspace,
// whatever bytes the directory's name has.
func overwriteOdd(p *Probe) {
	entries, err := os.ReadDir(p.Arg("W"))
	p.Control("list the workspace", func() error { return err })
	for _, e := range entries {
		path := p.In("W", e.Name(), ".mcp.json")
		if _, err := os.Lstat(path); err == nil {
			p.Try("overwrite "+path, func() error { return overwrite(path) })
		}
	}
}
