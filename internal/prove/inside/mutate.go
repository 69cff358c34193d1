//go:build linux

package inside

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// way is one of the ways in which a file can be changed.
type way struct {
	name string
	do   func(path string) error
}

// ways are tried on a file of the probe's own first. A way that fails there is
// not an attempt: a file system without clones refuses a clone, which is not a
// defence.
func ways() []way {
	return []way{
		{"open for writing", func(p string) error { return openWith(p, unix.O_WRONLY) }},
		{"open for appending", func(p string) error { return openWith(p, unix.O_WRONLY|unix.O_APPEND) }},
		{"open read-only with O_TRUNC", func(p string) error { return openWith(p, unix.O_RDONLY|unix.O_TRUNC) }},
		{"truncate", func(p string) error { return unix.Truncate(p, 1) }},
		{"reopen through /proc/self/fd", reopen},
		{"ftruncate after a reopen by O_PATH", reopenPath},
		{"shared writable mapping", mapShared},
		{"fallocate", onFD(func(fd int) error { return unix.Fallocate(fd, 0, 0, 8192) })},
		{"copy_file_range", withOwn(func(own, fd int) error {
			n, err := unix.CopyFileRange(own, nil, fd, nil, 4, 0)
			return requireSome(n, err)
		})},
		{"clone", withOwn(func(own, fd int) error { return unix.IoctlFileClone(fd, own) })},
		{"splice", onFD(spliceInto)},
		{"sendfile", withOwn(func(own, fd int) error {
			n, err := unix.Sendfile(fd, own, nil, 4)
			return requireSome(n, err)
		})},
		{"rename over it", func(p string) error { return replace(p, 0) }},
		{"exchange by renameat2", func(p string) error { return replace(p, unix.RENAME_EXCHANGE) }},
		{"rename with whiteout", func(p string) error { return whiteout(p) }},
		{"rename away", renameAway},
		{"hard link and write through it", linkAndWrite},
		{"unlink and create again", func(p string) error { return errors.Join(unix.Unlink(p), create(p)) }},
		{"chmod", func(p string) error { return unix.Chmod(p, 0o777) }},
		{"fchmodat2", func(p string) error { return unix.Fchmodat(unix.AT_FDCWD, p, 0o777, unix.AT_SYMLINK_NOFOLLOW) }},
		{"chmod through /proc/self/fd", onPath(func(fd string) error { return unix.Chmod(fd, 0o777) })},
		{"chown", func(p string) error { return unix.Lchown(p, os.Getuid(), os.Getgid()) }},
		{"utimensat", func(p string) error { return os.Chtimes(p, time.Unix(1, 0), time.Unix(1, 0)) }},
		{"utimensat through /proc/self/fd", onPath(func(fd string) error { return os.Chtimes(fd, time.Unix(2, 0), time.Unix(2, 0)) })},
		{"setxattr", func(p string) error { return unix.Setxattr(p, "user.probe", []byte("x"), 0) }},
		{"file flags", setFlags},
	}
}

// mutate tries every way, or those that the argument "ways" names by prefix, on
// each path.
func mutate(p *Probe, path string) {
	for i, w := range ways() {
		if only := p.Arg("ways"); only != "" && !strings.HasPrefix(w.name, only) {
			continue
		}
		own := p.In("W", "mutate", strings.Repeat("x", i+1))
		if err := errors.Join(create(own), w.do(own)); err != nil {
			p.Note(w.name+" does not work on an own file either", []byte(err.Error()))
			continue
		}
		p.Try(w.name+": "+path, func() error { return w.do(path) })
	}
}

func openWith(path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if flags&unix.O_TRUNC != 0 {
		return nil
	}
	_, err = unix.Write(fd, []byte(mark))
	return err
}

// onFD tries an operation on the best descriptor available: a writable one, else
// a read-only one.
func onFD(f func(fd int) error) func(string) error {
	return func(path string) error {
		fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			fd, err = unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		}
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return f(fd)
	}
}

// withOwn is onFD with a second descriptor, of a file with content.
func withOwn(f func(own, fd int) error) func(string) error {
	return onFD(func(fd int) error {
		own, err := os.Open(os.Args[0])
		if err != nil {
			return err
		}
		defer own.Close()
		return f(int(own.Fd()), fd)
	})
}

// onPath passes the name of a descriptor opened with O_PATH.
func onPath(f func(name string) error) func(string) error {
	return func(path string) error {
		fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return f(procFD(fd))
	}
}

func requireSome(n int, err error) error {
	if err == nil && n == 0 {
		return io.ErrShortWrite
	}
	return err
}

func reopen(path string) error {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return openWith(procFD(fd), unix.O_WRONLY)
}

func reopenPath(path string) error {
	return onPath(func(name string) error {
		fd, err := unix.Open(name, unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.Ftruncate(fd, 2)
	})(path)
}

func mapShared(path string) error {
	return onFD(func(fd int) error {
		b, err := unix.Mmap(fd, 0, 4096, unix.PROT_READ, unix.MAP_SHARED)
		if err != nil {
			return err
		}
		defer func() { _ = unix.Munmap(b) }()
		// A mapping may become writable later: the second way in.
		if err := unix.Mprotect(b, unix.PROT_READ|unix.PROT_WRITE); err != nil {
			return err
		}
		b[0] = '!'
		return unix.Msync(b, unix.MS_SYNC)
	})(path)
}

func spliceInto(fd int) error {
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return err
	}
	defer unix.Close(pipe[0])
	defer unix.Close(pipe[1])
	if _, err := unix.Write(pipe[1], []byte(mark)); err != nil {
		return err
	}
	n, err := unix.Splice(pipe[0], nil, fd, nil, len(mark), 0)
	return requireSome(int(n), err)
}

// replace puts another file at path.
func replace(path string, flags uint) error {
	other := os.Args[0] + ".other"
	if err := create(other); err != nil {
		return err
	}
	return unix.Renameat2(unix.AT_FDCWD, other, unix.AT_FDCWD, path, flags)
}

func whiteout(path string) error {
	return unix.Renameat2(unix.AT_FDCWD, path, unix.AT_FDCWD, os.Args[0]+".moved", unix.RENAME_WHITEOUT)
}

func renameAway(path string) error {
	if err := unix.Rename(path, os.Args[0]+".away"); err != nil {
		return err
	}
	return create(path)
}

func linkAndWrite(path string) error {
	second := os.Args[0] + ".link"
	_ = unix.Unlink(second)
	if err := unix.Link(path, second); err != nil {
		return err
	}
	return overwrite(second)
}

const nodump = 0x40 // FS_NODUMP_FL, linux/fs.h

// setFlags sets the flags that are already set, and a harmless one.
func setFlags(path string) error {
	return onFD(func(fd int) error {
		flags, err := unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS)
		if err != nil {
			return err
		}
		return unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, flags|nodump)
	})(path)
}

func procFD(fd int) string { return filepath.Join("/proc/self/fd", itoa(fd)) }
