//go:build linux

package inside

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// makeLink makes a protected name a link to a directory that has another.
func makeLink(p *Probe) {
	p.Try("make a link", func() error {
		return errors.Join(create(p.In("to", p.Arg("file"))), os.Symlink(p.Arg("to"), p.Arg("at")))
	})
}

// deepRepo makes a repository at the end of a path of 5000 bytes.
func deepRepo(p *Probe) {
	fd, err := descend(p.Arg("W"), true)
	if err != nil {
		p.Control("build a deep path", func() error { return err })
		return
	}
	defer unix.Close(fd)
	makeRepo(p, procFD(fd)+"/.git")
}

// closedRepo makes an unreadable repository.
func closedRepo(p *Probe) {
	dir := p.In("W", "closed")
	makeRepo(p, filepath.Join(dir, ".git"))
	p.Try("another protected name", func() error { return create(filepath.Join(dir, ".mcp.json")) })
	p.Try("close what is in it", func() error { return os.Chmod(filepath.Join(dir, ".git", "hooks"), 0) })
	p.Try("close it", func() error { return os.Chmod(dir, 0) })
}

// amongMany hides a repository among empty directories and files.
func amongMany(p *Probe) {
	p.Control("make many", func() error {
		for i := range 50 {
			dir := p.In("W", "many", "d"+itoa(i))
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
			for j := range 100 {
				if err := os.WriteFile(filepath.Join(dir, "f"+itoa(j)), nil, 0o644); err != nil {
					return err
				}
			}
		}
		return nil
	})
	makeRepo(p, p.In("W", "many", "zz", ".git"))
}

// leaveSetuid leaves programs that run with their owner's rights.
func leaveSetuid(p *Probe) {
	for i, mode := range []uint32{0o4755, 0o2755, 0o6755} {
		path := p.In("W", "takes-rights-"+itoa(i))
		p.Try("chmod", func() error { return errors.Join(create(path), unix.Chmod(path, mode)) })
		p.Try("open with the mode", func() error {
			fd, err := unix.Open(path+"-opened", unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, mode)
			if err == nil {
				unix.Close(fd)
			}
			return err
		})
		p.Try("fchmod", func() error {
			f, err := os.Create(path + "-fchmod")
			if err != nil {
				return err
			}
			defer f.Close()
			return unix.Fchmod(int(f.Fd()), mode)
		})
		p.Try("fchmodat2", func() error {
			at := path + "-fchmodat2"
			return errors.Join(create(at), unix.Fchmodat(unix.AT_FDCWD, at, mode, unix.AT_SYMLINK_NOFOLLOW))
		})
		p.Try("mknod", func() error { return unix.Mknod(path+"-mknod", unix.S_IFREG|mode, 0) })
	}
	p.Try("set capabilities", func() error {
		path := p.In("W", "capable")
		// Version 2, effective: CAP_DAC_OVERRIDE.
		caps := []byte{1, 0, 0, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
		return errors.Join(create(path), unix.Setxattr(path, "security.capability", caps, 0))
	})
}

// swapUntil swaps a directory with protected names for a link to one outside, as
// fast as it can, until it is told to stop.
func swapUntil(p *Probe) {
	dir, link := p.In("W", "d"), p.In("W", "l")
	deadline := time.Now().Add(15 * time.Second)
	swaps := 0
	for time.Now().Before(deadline) {
		if swaps%512 == 0 {
			if _, err := os.Lstat(p.In("W", "go")); err == nil {
				break
			}
			for _, name := range []string{".mcp.json", ".git/hooks/pre-commit", ".git/HEAD", ".git/config", ".git/objects/x", ".git/refs/x"} {
				_ = create(filepath.Join(dir, name))
			}
		}
		_ = unix.Renameat2(unix.AT_FDCWD, dir, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE)
		swaps++
	}
	p.Note("swaps", []byte(itoa(swaps)))
	canary := p.In("O", "canary")
	p.Try("overwrite "+canary, func() error { return overwrite(canary) })
}
