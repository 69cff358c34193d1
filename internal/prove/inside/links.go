//go:build linux

package inside

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func linksActions() map[string]Action {
	return map[string]Action{
		"mutate":    each(mutate),
		"read-ways": each(readWays),
		"hard-link": hardLink,
		"relink":    relink,
		"tmpfile":   tmpfile,
		"supplant":  each(supplant),

		"replace-above": replaceAbove,
	}
}

func itoa(n int) string { return strconv.Itoa(n) }

// readWays reads a file by a plain open, and in every way that does not use
// read(2) on one.
func readWays(p *Probe, path string) {
	p.Read("open "+path, func() ([]byte, error) { return os.ReadFile(path) })
	p.Read("map "+path, func() ([]byte, error) {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, err
		}
		defer unix.Close(fd)
		return unix.Mmap(fd, 0, 32, unix.PROT_READ, unix.MAP_PRIVATE)
	})
	p.Read("openat2 "+path, func() ([]byte, error) {
		fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_RDONLY})
		if err != nil {
			return nil, err
		}
		return drain(fd)
	})
	p.Read("reopen of an O_PATH descriptor of "+path, func() (b []byte, err error) {
		err = onPath(func(name string) error { b, err = os.ReadFile(name); return err })(path)
		return b, err
	})
	p.Read("sendfile from "+path, func() ([]byte, error) { return pumped(path) })
	p.Try("access "+path, func() error { return unix.Access(path, unix.R_OK) })
}

func drain(fd int) ([]byte, error) {
	defer unix.Close(fd)
	b := make([]byte, 4096)
	n, err := unix.Read(fd, b)
	return b[:max(n, 0)], err
}

func pumped(path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return nil, err
	}
	_, err = unix.Sendfile(pipe[1], fd, nil, 4096)
	unix.Close(pipe[1])
	b, _ := drain(pipe[0])
	return b, err
}

// replaceAbove renames directories above a path, one after the other, and puts a
// file of its own at the path.
func replaceAbove(p *Probe) {
	path := p.Arg("path")
	for above := range strings.SplitSeq(p.Arg("above"), "\n") {
		p.Try("rename "+above, func() error {
			if err := os.Rename(above, above+".moved"); err != nil {
				return err
			}
			return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), create(path))
		})
	}
}

// hardLink gives a file outside a second name in the workspace and writes through
// it.
func hardLink(p *Probe) {
	from, to := p.Arg("path"), p.In("W", "second-name")
	p.Try("link", func() error { return errors.Join(unix.Link(from, to), overwrite(to)) })
	p.Try("link that follows", func() error {
		to := to + "-2"
		return errors.Join(unix.Linkat(unix.AT_FDCWD, from, unix.AT_FDCWD, to, unix.AT_SYMLINK_FOLLOW), overwrite(to))
	})
	p.Try("rename into the workspace", func() error {
		to := to + "-3"
		return errors.Join(unix.Rename(from, to), overwrite(to))
	})
	p.Try("exchange with a file of the workspace", func() error { return replace(from, unix.RENAME_EXCHANGE) })
}

// relink makes a name for a file that was opened for reading.
func relink(p *Probe) {
	fd, err := unix.Open(p.Arg("path"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		p.Try("open it for reading", func() error { return err })
		return
	}
	defer unix.Close(fd)
	p.Try("linkat of /proc/self/fd", func() error {
		to := p.In("W", "relinked")
		return errors.Join(unix.Linkat(unix.AT_FDCWD, procFD(fd), unix.AT_FDCWD, to, unix.AT_SYMLINK_FOLLOW), overwrite(to))
	})
	p.Try("linkat with an empty path", func() error {
		to := p.In("W", "relinked-2")
		return errors.Join(unix.Linkat(fd, "", unix.AT_FDCWD, to, unix.AT_EMPTY_PATH), overwrite(to))
	})
	p.Try("fchmod of the read-only descriptor", func() error { return unix.Fchmod(fd, 0o777) })
	p.Try("write after a reopen", func() error { return openWith(procFD(fd), unix.O_WRONLY) })
}

// tmpfile makes a file outside without a name and gives it one.
func tmpfile(p *Probe) {
	dir := p.Arg("path")
	for _, to := range []string{filepath.Join(dir, "named"), p.In("W", "named")} {
		p.Try("O_TMPFILE in "+dir+" linked to "+to, func() error {
			fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o644)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return unix.Linkat(unix.AT_FDCWD, procFD(fd), unix.AT_FDCWD, to, unix.AT_SYMLINK_FOLLOW)
		})
	}
	p.Try("unnamed file of the workspace linked into "+dir, func() error {
		fd, err := unix.Open(p.Arg("W"), unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o644)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Linkat(unix.AT_FDCWD, procFD(fd), unix.AT_FDCWD, filepath.Join(dir, "named-2"), unix.AT_SYMLINK_FOLLOW)
	})
}

// supplant replaces a directory: by renaming it, exchanging it, or deleting it,
// and with a link in its place.
func supplant(p *Probe, dir string) {
	evil := p.In("W", "evil-"+filepath.Base(dir))
	plant := func() error { return create(filepath.Join(evil, "planted")) }
	p.Try("exchange with another directory: "+dir, func() error {
		return errors.Join(plant(), unix.Renameat2(unix.AT_FDCWD, evil, unix.AT_FDCWD, dir, unix.RENAME_EXCHANGE))
	})
	p.Try("rename and put a link there: "+dir, func() error {
		if err := unix.Rename(dir, dir+"-away"); err != nil {
			return err
		}
		return errors.Join(plant(), os.Symlink(evil, dir))
	})
	p.Try("rename by descriptor of the parent: "+dir, func() error {
		fd, err := unix.Open(filepath.Dir(dir), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Renameat(fd, filepath.Base(dir), unix.AT_FDCWD, dir+"-away-2")
	})
	p.Try("rename another directory over it: "+dir, func() error {
		return errors.Join(plant(), unix.Rename(evil, dir))
	})
	p.Try("delete and put a link there: "+dir, func() error {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
		return errors.Join(plant(), os.Symlink(evil, dir))
	})
}
