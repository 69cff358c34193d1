//go:build linux

package inside

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func handlesActions() map[string]Action {
	return map[string]Action{
		"inherited":        inherited,
		"path-descriptors": pathDescriptors,
		"open-spellings":   openSpellings,
		"take-descriptor":  takeDescriptor,
		"run-descriptor":   runDescriptor,
		"run-memory":       runMemory,
		"reopen-standard":  reopenStandard,
		"standard-input":   standardInput,
	}
}

// inherited examines every descriptor except the standard three, and those in the
// argument "fds". What this program opened itself closes at execve; inherited
// descriptors do not.
func inherited(p *Probe) {
	seen := map[int]bool{}
	for word := range strings.FieldsSeq(p.Arg("fds")) {
		fd, err := strconv.Atoi(word)
		if err != nil {
			continue
		}
		seen[fd] = true
		if isInherited(fd) || !isOpen(fd) {
			useDescriptor(p, fd)
		} else {
			p.Try(word+" was given", func() error { return unix.EBADF })
		}
	}
	for fd := 3; fd < 1200; fd++ {
		if !seen[fd] && isInherited(fd) {
			useDescriptor(p, fd)
		}
	}
	p.Try("the descriptor after the last", func() error { _, err := unix.FcntlInt(1200, unix.F_GETFD, 0); return err })
}

func isOpen(fd int) bool {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	return err == nil
}

// isInherited reports whether a descriptor is open and was inherited.
func isInherited(fd int) bool {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	return err == nil && flags&unix.FD_CLOEXEC == 0
}

// useDescriptor tries what a descriptor of any kind can do.
func useDescriptor(p *Probe, fd int) {
	what, _ := os.Readlink(procFD(fd))
	name := fmt.Sprintf("descriptor %d (%s): ", fd, what)
	p.Try(name+"is open", func() error { _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); return err })
	p.Read(name+"read", func() ([]byte, error) {
		b := make([]byte, 4096)
		n, err := unix.Pread(fd, b, 0)
		return b[:max(n, 0)], err
	})
	p.Read(name+"open again", func() ([]byte, error) { return readNow(procFD(fd)) })
	p.Try(name+"write", func() error { _, err := unix.Pwrite(fd, []byte(mark), 0); return err })
	for _, path := range []string{"canary", "sub/canary", "../o/canary", strings.TrimPrefix(p.In("O", "canary"), "/")} {
		p.Read(name+"openat "+path, func() ([]byte, error) { return readAt(fd, path) })
		p.Read(name+"through /proc, "+path, func() ([]byte, error) { return readNow(procFD(fd) + "/" + path) })
	}
	p.Read(name+"change to it", func() ([]byte, error) {
		if err := unix.Fchdir(fd); err != nil {
			return nil, err
		}
		defer func() { _ = os.Chdir(p.Arg("W")) }()
		return os.ReadFile("canary")
	})
	p.Read(name+"ask for a descriptor", func() ([]byte, error) {
		if err := unix.Sendto(fd, []byte(mark), unix.MSG_DONTWAIT, nil); err != nil {
			return nil, err
		}
		return receive(fd)
	})
}

// readNow reads what is there and does not wait for more, as reading a pipe
// would.
func readNow(path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return drain(fd)
}

func readAt(dir int, path string) ([]byte, error) {
	fd, err := unix.Openat(dir, path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return drain(fd)
}

// pathDescriptors opens directories without reading them, and continues from
// there.
func pathDescriptors(p *Probe) {
	for dir := range strings.SplitSeq(p.Arg("path"), "\n") {
		fd, err := unix.Open(dir, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			p.Try("open "+dir+" by O_PATH", func() error { return err })
			continue
		}
		p.Read("openat from "+dir, func() ([]byte, error) { return readAt(fd, "canary") })
		p.Read("openat over the parent of "+dir, func() ([]byte, error) { return readAt(fd, "../o/canary") })
		p.Read("openat2 from "+dir, func() ([]byte, error) {
			f, err := unix.Openat2(fd, "canary", &unix.OpenHow{Flags: unix.O_RDONLY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_BENEATH})
			if err != nil {
				return nil, err
			}
			return drain(f)
		})
		p.Read("through /proc from "+dir, func() ([]byte, error) { return os.ReadFile(procFD(fd) + "/../o/canary") })
		p.Read("change to "+dir, func() ([]byte, error) {
			if err := unix.Fchdir(fd); err != nil {
				return nil, err
			}
			defer func() { _ = os.Chdir(p.Arg("W")) }()
			b, err := os.ReadFile("canary")
			if err != nil {
				b, err = os.ReadFile("../o/canary")
			}
			return b, err
		})
		unix.Close(fd)
	}
}

// openSpellings opens one file with every system call that opens.
func openSpellings(p *Probe) {
	path := p.Arg("path")
	rel, err := filepath.Rel(p.Arg("W"), path)
	if err != nil {
		rel = path
	}
	w, err := unix.Open(p.Arg("W"), unix.O_PATH|unix.O_CLOEXEC, 0)
	p.Control("open the workspace", func() error { return err })
	defer unix.Close(w)
	root, _ := unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0)
	defer unix.Close(root)
	for _, how := range []struct {
		name    string
		dir     int
		path    string
		resolve uint64
	}{
		{"plain", unix.AT_FDCWD, path, 0},
		{"from the workspace", w, rel, 0},
		{"from the root, taken for the root", root, path, unix.RESOLVE_IN_ROOT},
		{"without links", root, strings.TrimPrefix(path, "/"), unix.RESOLVE_NO_SYMLINKS},
		{"without magic links", unix.AT_FDCWD, path, unix.RESOLVE_NO_MAGICLINKS},
		{"from the cache", unix.AT_FDCWD, path, resolveCached},
	} {
		for _, flags := range []uint64{unix.O_RDONLY, unix.O_WRONLY | unix.O_TRUNC, unix.O_RDWR} {
			p.Read(fmt.Sprintf("openat2 %s, flags %#x", how.name, flags), func() ([]byte, error) {
				fd, err := unix.Openat2(how.dir, how.path, &unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Resolve: how.resolve})
				if err != nil {
					return nil, err
				}
				b, _ := drain(fd)
				return b, nil
			})
		}
	}
	p.Read("openat from the workspace", func() ([]byte, error) { return readAt(w, rel) })
	p.Read("openat from the root", func() ([]byte, error) { return readAt(root, strings.TrimPrefix(path, "/")) })
	p.Try("truncate", func() error { return unix.Truncate(path, 0) })
}

// receive takes a descriptor from a message and reads from it.
func receive(sock int) ([]byte, error) {
	tv := unix.Timeval{Sec: 1}
	_ = unix.SetsockoptTimeval(sock, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv)
	b, oob := make([]byte, 64), make([]byte, unix.CmsgSpace(4*8))
	_, n, _, _, err := unix.Recvmsg(sock, b, oob, unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return nil, err
	}
	messages, err := unix.ParseSocketControlMessage(oob[:n])
	if err != nil {
		return nil, err
	}
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil || len(fds) == 0 {
			continue
		}
		text, err := drain(fds[0])
		return text, err
	}
	return nil, unix.ENOENT
}

// takeDescriptor connects to each address and asks for the descriptor that it
// hands out.
func takeDescriptor(p *Probe) {
	for addr := range strings.SplitSeq(p.Arg("addr"), "\n") {
		p.Read("take a descriptor from "+addr, func() ([]byte, error) {
			fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return nil, err
			}
			defer unix.Close(fd)
			if err := unix.Connect(fd, &unix.SockaddrUnix{Name: addr}); err != nil {
				return nil, err
			}
			return receive(fd)
		})
	}
}

// runDescriptor executes a program outside by descriptor, through the loader and
// by name.
func runDescriptor(p *Probe) {
	path := p.Arg("path")
	for _, flags := range []int{unix.O_RDONLY, unix.O_PATH} {
		p.Try(fmt.Sprintf("open with flags %#x and execute", flags), func() error {
			f, err := unix.Open(path, flags, 0) // no O_CLOEXEC: the child's /proc/self/fd must lead to it
			if err != nil {
				return err
			}
			defer unix.Close(f)
			c := exec.Command("/proc/self/fd/3", "-child", p.nonce, "nothing")
			c.ExtraFiles = []*os.File{os.NewFile(uintptr(f), path)}
			return c.Run()
		})
		p.Try(fmt.Sprintf("execveat with flags %#x", flags), func() error {
			f, err := unix.Open(path, flags, 0)
			if err != nil {
				return err
			}
			defer unix.Close(f)
			empty, keepEmpty := CString("")
			name, keepName := CString("x")
			argv := [2]uintptr{name}
			_, err = Forked([]Call{C(unix.SYS_EXECVEAT, uintptr(f), empty, Pointer(&argv), Pointer(&argv[1]), unix.AT_EMPTY_PATH)})
			runtime.KeepAlive([]*byte{keepEmpty, keepName})
			var k killed
			if errors.As(err, &k) && k.signal <= 0 {
				return nil // it ran another program, which exited
			}
			return err
		})
	}
	p.Try("execute by name", func() error { return exec.Command(path, "-child", p.nonce, "nothing").Run() })
	p.Try("execute through the loader", func() error {
		for _, loader := range []string{"/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1"} {
			if _, err := os.Stat(loader); err == nil {
				var msg bytes.Buffer
				c := exec.Command(loader, path)
				c.Stderr = &msg
				if err := c.Run(); err != nil && strings.Contains(msg.String(), "cannot open") {
					return unix.ENOENT
				} else if err != nil && strings.Contains(msg.String(), "ermission") {
					return unix.EACCES
				}
				return nil // the loader reached the file
			}
		}
		return unix.ENOENT
	})
}

// runMemory executes a program that has no name, which must be as confined as any
// other.
func runMemory(p *Probe) {
	bin, err := os.ReadFile(os.Args[0])
	p.Control("read the own program", func() error { return err })
	fd, err := unix.MemfdCreate("x", 0)
	if err != nil {
		p.Try("make a file in memory", func() error { return err })
		return
	}
	f := os.NewFile(uintptr(fd), "x")
	defer f.Close()
	if _, err := f.Write(bin); err != nil {
		p.Control("fill it", func() error { return err })
		return
	}
	c, done := p.Command("/proc/self/fd/3", "both")
	defer done()
	c.ExtraFiles = []*os.File{f}
	if err := c.Run(); err != nil {
		p.Try("run a program from memory", func() error { return err })
	}
}

// reopenStandard reopens the standard streams with more rights than were granted.
func reopenStandard(p *Probe) {
	for word := range strings.FieldsSeq(p.Arg("fds")) {
		fd, err := strconv.Atoi(word)
		if err != nil {
			continue
		}
		p.Try("open "+word+" again for writing", func() error { return openWith(procFD(fd), unix.O_WRONLY) })
		p.Try("empty "+word, func() error { return openWith(procFD(fd), unix.O_WRONLY|unix.O_TRUNC) })
		p.Read("open "+word+" again for reading", func() ([]byte, error) { return readNow(procFD(fd)) })
		p.Try("truncate "+word, func() error { return unix.Ftruncate(fd, 1) })
		p.Try("clear O_APPEND of "+word+" and write at the start", func() error {
			flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
			if err != nil {
				return err
			}
			if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFL, flags&^unix.O_APPEND); err != nil {
				return err
			}
			_, err = unix.Pwrite(fd, []byte("!"), 0)
			return err
		})
		p.Try("change the mode of "+word, func() error { return unix.Fchmod(fd, 0o777) })
	}
}

// standardInput uses a directory that is standard input.
func standardInput(p *Probe) { useDescriptor(p, 0) }

const resolveCached = 0x20 // RESOLVE_CACHED, openat2(2)
