//go:build linux

package inside

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

func deferredActions() map[string]Action {
	all := map[string]Action{
		"rewrite-names": func(p *Probe) { ordinary(p); each(rewriteName)(p) },
		"plant-names":   func(p *Probe) { ordinary(p); plantNames(p) },
		"write-names":   each(writeName),
		"map-names":     each(mapName),
		"write-second":  writeSecond,
		"name-second":   nameSecond,
		"home-names":    each(homeName),
		"copy-into":     each(copyInto),
		"may-write":     each(mayWrite),
		"odd-files":     oddFiles,
		"leave-special": each(leaveSpecial),
		"make-runnable": each(makeExecutable),
	}
	maps.Copy(all, replayActions())
	return all
}

// ordinary is the control of the class: a name that is never run is not refused.
func ordinary(p *Probe) {
	p.Control("write an ordinary file", func() error { return create(p.In("W", "src", "x.txt")) })
}

// rewriteName changes an existing file, as editors and attackers do. The last
// attempt moves its parent.
func rewriteName(p *Probe, path string) {
	spare := p.In("W", "spare")
	p.Try("overwrite "+path, func() error { return overwrite(path) })
	p.Try("append to "+path, func() error { return openWith(path, unix.O_WRONLY|unix.O_APPEND) })
	p.Try("rename over "+path, func() error { return errors.Join(create(spare), os.Rename(spare, path)) })
	p.Try("rename a link over "+path, func() error {
		_ = os.Remove(spare)
		return errors.Join(os.Symlink(p.In("W", "src", "x.txt"), spare), os.Rename(spare, path))
	})
	p.Try("remove "+path, func() error { return os.Remove(path) })
	if dir := filepath.Dir(path); dir != p.Arg("W") {
		p.Try("move the parent of "+path, func() error { return errors.Join(os.Rename(dir, dir+".moved"), create(path)) })
	}
}

// plantNames makes each name of the argument "path", below W, that does not
// exist: in its place, in directories below, and in other ways of making a name.
func plantNames(p *Probe) {
	for path := range strings.SplitSeq(p.Arg("path"), "\n") {
		name, _ := filepath.Rel(p.Arg("W"), path)
		at := func(dir string) string { return p.In("W", dir, name) }
		p.Try("create "+path, func() error { return create(path) })
		p.Try("create it below: "+at("n1"), func() error { return create(at("n1/pkg")) })
		p.Try("rename to "+at("n2"), func() error {
			return errors.Join(create(p.In("W", "spare")), os.MkdirAll(filepath.Dir(at("n2")), 0o755), os.Rename(p.In("W", "spare"), at("n2")))
		})
		p.Try("make a link "+at("n3"), func() error {
			return errors.Join(create(p.In("W", "src", "target")), os.MkdirAll(filepath.Dir(at("n3")), 0o755), os.Symlink(p.In("W", "src", "target"), at("n3")))
		})
		p.Try("make a second name "+at("n4"), func() error {
			return errors.Join(os.MkdirAll(filepath.Dir(at("n4")), 0o755), os.Link(p.In("W", "ok.txt"), at("n4")))
		})
		p.Try("move it in with its parent: "+at("n5"), func() error {
			return errors.Join(create(p.In("W", "aside", name)), os.MkdirAll(p.In("W", "n5"), 0o755), moveFirst(p.In("W", "aside"), p.In("W", "n5"), name))
		})
		p.Try("create it in other letters: "+name, func() error { return create(p.In("W", "n6", strings.ToUpper(name))) })
	}
}

// moveFirst moves the first component of name from one directory to another,
// which may already have that name.
func moveFirst(from, to, name string) error {
	first, rest, _ := strings.Cut(name, "/")
	err := os.Rename(filepath.Join(from, first), filepath.Join(to, first))
	if rest != "" && (errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST)) {
		return moveFirst(filepath.Join(from, first), filepath.Join(to, first), rest)
	}
	return err
}

// writeName adds a line to a file, which is created if it does not exist.
func writeName(p *Probe, path string) {
	p.Try("write "+path, func() error {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o755)
		if err != nil {
			return err
		}
		_, err = f.WriteString(mark)
		return errors.Join(err, f.Close())
	})
}

// mapName writes to a file through shared memory, and leaves its descriptor in flight: each
// socket of a chain carries the one before it, the last carries itself, and the kernel
// closes them one by one when all processes have ended.
func mapName(p *Probe, path string) {
	p.Try("write to "+path+" through shared memory", func() error {
		fd, err := unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		m, err := unix.Mmap(fd, 0, len(mark), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
		if err != nil {
			return err
		}
		copy(m, mark)
		for last := range 51 {
			pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
			sent := []int{fd}
			if last == 50 {
				sent = append(sent, pair[1])
			}
			if err := unix.Sendmsg(pair[0], []byte{1}, unix.UnixRights(sent...), nil, 0); err != nil {
				return err
			}
			if err := errors.Join(unix.Close(fd), unix.Close(pair[0])); err != nil {
				return err
			}
			fd = pair[1]
		}
		return nil
	})
}

// nameSecond gives a file a second name, through which writeSecond, in another run, writes.
func nameSecond(p *Probe) {
	p.Try("give "+p.Arg("path")+" a second name", func() error { return os.Link(p.Arg("path"), p.Arg("second")) })
}

func writeSecond(p *Probe) {
	awaitGo(p)
	p.Try("write by the second name", func() error { return openWith(p.Arg("second"), unix.O_WRONLY|unix.O_APPEND) })
	p.Try("remove the second name", func() error { return os.Remove(p.Arg("second")) })
}

// homeName writes below the home, where what is in view may be a copy.
func homeName(p *Probe, path string) {
	writeName(p, path)
	p.Try("replace "+path, func() error {
		other := path + ".probe"
		return errors.Join(create(other), os.Rename(other, path))
	})
}

// copyInto asks for write access to a directory of programs, without leaving a
// trace.
func copyInto(p *Probe, dir string) {
	p.Try("make a file without a name in "+dir, func() error {
		fd, err := unix.Open(dir, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
		if err == nil {
			unix.Close(fd)
		}
		return err
	})
}

func mayWrite(p *Probe, path string) {
	p.Try("may write "+path, func() error { return unix.Faccessat(unix.AT_FDCWD, path, unix.W_OK, unix.AT_EACCESS) })
}

// oddFiles leaves files that an exit report must name although no list of names
// has them.
func oddFiles(p *Probe) {
	p.Try("set-user-ID file", func() error {
		return errors.Join(create(p.In("W", "suid")), os.Chmod(p.In("W", "suid"), 0o755|os.ModeSetuid))
	})
	p.Try("set-group-ID file", func() error {
		return errors.Join(create(p.In("W", "sgid")), os.Chmod(p.In("W", "sgid"), 0o755|os.ModeSetgid))
	})
	p.Try("link that leaves the workspace", func() error { return os.Symlink(p.In("O", "canary"), p.In("W", "leaving")) })
	p.Try("relative link that leaves the workspace", func() error {
		return errors.Join(os.MkdirAll(p.In("W", "docs"), 0o755), os.Symlink("../../o", p.In("W", "docs", "leaving")))
	})
	p.Try("second name of a tracked file", func() error { return os.Link(p.In("W", "Makefile"), p.In("W", "second")) })
	p.Try("fifo", func() error { return unix.Mkfifo(p.In("W", "fifo"), 0o666) })
}

// makeExecutable gives an existing file the execute bit.
func makeExecutable(p *Probe, path string) {
	p.Try("chmod +x "+path, func() error { return os.Chmod(path, 0o755) })
}

// leaveSpecial makes a pipe, or depending on the name, a socket without a
// listener, or the only device that any user may make.
func leaveSpecial(p *Probe, path string) {
	p.Try("make "+path, func() error {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		switch filepath.Base(path) {
		case "device":
			return unix.Mknod(path, unix.S_IFCHR|0o600, 0)
		case "socket":
			return unix.Mknod(path, unix.S_IFSOCK|0o600, 0)
		}
		return unix.Mkfifo(path, 0o600)
	})
}
