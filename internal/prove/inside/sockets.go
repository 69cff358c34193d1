//go:build linux

package inside

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

func socketsActions() map[string]Action {
	return map[string]Action{
		"connect":          connect,
		"connect-late":     connectLate,
		"move-and-connect": moveAndConnect,
		"send":             send,
		"announced":        announced,
		"find-sockets":     findSockets,
		"keyring":          keyring,
		"shared-segments":  sharedSegments,
		"watch-files":      each(watchFiles),
		"own-sockets":      ownSockets,
		"listed-names":     listedNames,
	}
}

// dial connects; a leading @ means an abstract name.
func dial(kind int, addr string) error {
	_, err := dialRead(kind, addr)
	return err
}

// dialRead connects and reads the greeting.
func dialRead(kind int, addr string) ([]byte, error) {
	fd, err := unix.Socket(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: addr}); err != nil {
		return nil, err
	}
	if kind == unix.SOCK_DGRAM {
		_, err := unix.Write(fd, []byte(mark))
		return nil, err
	}
	tv := unix.Timeval{Usec: 300_000}
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv)
	b := make([]byte, 256)
	n, _ := unix.Read(fd, b)
	return b[:max(n, 0)], nil
}

// connect tries each address by name, through a link made inside, from its
// directory and by descriptor.
func connect(p *Probe) {
	kind := unix.SOCK_STREAM
	if p.Arg("kind") == "seqpacket" {
		kind = unix.SOCK_SEQPACKET
	}
	for i, addr := range addresses(p) {
		p.Read("connect to "+addr, func() ([]byte, error) { return dialRead(kind, addr) })
		if strings.HasPrefix(addr, "@") {
			continue
		}
		p.Read("connect through a link to "+addr, func() ([]byte, error) {
			link := p.In("W", "link-"+itoa(i))
			if err := os.Symlink(addr, link); err != nil && !errors.Is(err, fs.ErrExist) {
				return nil, err
			}
			return dialRead(kind, link)
		})
		p.Read("connect from its directory to "+addr, func() ([]byte, error) {
			if err := os.Chdir(filepath.Dir(addr)); err != nil {
				return nil, err
			}
			defer func() { _ = os.Chdir(p.Arg("W")) }()
			return dialRead(kind, filepath.Base(addr))
		})
		p.Read("connect by descriptor to "+addr, func() (b []byte, err error) {
			err = onPath(func(name string) error { b, err = dialRead(kind, name); return err })(addr)
			return b, err
		})
	}
}

// connectLate waits for a socket and connects to it.
func connectLate(p *Probe) {
	for range 100 {
		if _, err := os.Lstat(p.Arg("path")); err == nil {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	p.Read("connect", func() (read []byte, err error) {
		for range 50 { // the socket has its name before it listens
			if read, err = dialRead(unix.SOCK_STREAM, p.Arg("path")); !errors.Is(err, unix.ECONNREFUSED) {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		return read, err
	})
}

// moveAndConnect moves and links sockets that may be masked only by their name.
func moveAndConnect(p *Probe) {
	below := p.Arg("below")
	second := p.In("W", "second.sock")
	p.Try("give the socket a second name", func() error { return unix.Link(filepath.Join(p.Arg("from"), below), second) })
	p.Read("connect to its second name", func() ([]byte, error) { return dialRead(unix.SOCK_STREAM, second) })
	p.Try("move its directory", func() error { return unix.Rename(p.Arg("from"), p.Arg("to")) })
	p.Read("connect to its new name", func() ([]byte, error) { return dialRead(unix.SOCK_STREAM, filepath.Join(p.Arg("to"), below)) })
	parent := filepath.Dir(filepath.Join(p.Arg("from"), below))
	p.Try("move its parent", func() error { return unix.Rename(parent, p.In("W", "moved-parent")) })
	p.Read("connect below its moved parent", func() ([]byte, error) {
		return dialRead(unix.SOCK_STREAM, p.In("W", "moved-parent", filepath.Base(below)))
	})
}

func addresses(p *Probe) []string {
	return strings.FieldsFunc(p.Arg("addr"), func(r rune) bool { return r == '\n' })
}

// send sends a datagram without connecting first, with every call that sends.
func send(p *Probe) {
	for i, addr := range addresses(p) {
		names := []string{addr}
		if !strings.HasPrefix(addr, "@") {
			link := p.In("W", "mail-"+itoa(i))
			p.Control("make a link", func() error { return os.Symlink(addr, link) })
			names = append(names, link)
		}
		for _, name := range names {
			sendTo(p, name)
		}
	}
}

func sendTo(p *Probe, name string) {
	to := &unix.SockaddrUnix{Name: name}
	with := func(f func(fd int) error) func() error {
		return func() error {
			fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return f(fd)
		}
	}
	p.Try("sendto "+name, with(func(fd int) error { return unix.Sendto(fd, []byte(mark), 0, to) }))
	p.Try("sendmsg to "+name, with(func(fd int) error { return unix.Sendmsg(fd, []byte(mark), nil, to, 0) }))
	p.Try("sendmsg with a descriptor to "+name, with(func(fd int) error {
		return unix.Sendmsg(fd, []byte(mark), unix.UnixRights(0), to, 0)
	}))
	p.Try("sendmmsg to "+name, with(func(fd int) error { return sendMany(fd, name) }))
	p.Try("connect and write to "+name, func() error { return dial(unix.SOCK_DGRAM, name) })
}

// sendMany is sendmmsg(2) with one message.
func sendMany(fd int, name string) error {
	var addr unix.RawSockaddrUnix
	addr.Family = unix.AF_UNIX
	raw := []byte(name)
	if raw[0] == '@' {
		raw[0] = 0
	}
	if len(raw) >= len(addr.Path) {
		return unix.ENAMETOOLONG
	}
	for i, c := range raw {
		addr.Path[i] = int8(c)
	}
	length := uint32(2 + len(raw))
	if raw[0] != 0 {
		length++
	}
	text := []byte(mark)
	iov := unix.Iovec{Base: &text[0]}
	iov.SetLen(len(text))
	message := struct {
		header unix.Msghdr
		sent   uint32
		_      uint32
	}{}
	message.header.Name, message.header.Namelen = namePointer(&addr), length
	message.header.Iov = &iov
	message.header.SetIovlen(1)
	_, err := Raw(unix.SYS_SENDMMSG, uintptr(fd), Pointer(&message), 1, 0)
	return err
}

// announced looks for the sockets that variables name, one NAME per line, and
// connects to their targets.
func announced(p *Probe) {
	for name := range strings.FieldsSeq(p.Arg("names")) {
		value, set := os.LookupEnv(name)
		p.Try("be told of "+name, func() error {
			if !set {
				return unix.ENOENT
			}
			return nil
		})
		addr := strings.TrimPrefix(value, "unix:path=")
		if filepath.IsAbs(addr) {
			p.Read("connect to what "+name+" names", func() ([]byte, error) { return dialRead(unix.SOCK_STREAM, addr) })
		}
	}
	connect(p)
}

// findSockets looks for sockets in view, but connects to none of them: they may
// belong to others.
func findSockets(p *Probe) {
	roots := []string{"/run", "/var/run", "/tmp", "/var/tmp", "/home", "/root", p.Arg("H"), p.Arg("O"), p.Arg("R")}
	found := 0
	for _, root := range roots {
		count := 0
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if count++; err != nil || count > 20000 {
				return fs.SkipDir
			}
			if d.Type()&fs.ModeSocket != 0 && !strings.HasPrefix(path, p.Arg("W")) {
				found++
			}
			return nil
		})
	}
	p.Try(fmt.Sprintf("see sockets of the host (%d)", found), func() error {
		if found == 0 {
			return unix.ENOENT
		}
		return nil
	})
}

// listedNames looks for the abstract names of the host.
func listedNames(p *Probe) {
	for _, path := range []string{"/proc/net/unix", "/proc/1/net/unix", "/proc/self/net/unix"} {
		p.Try("find the name in "+path, func() error {
			b, err := os.ReadFile(path)
			if err == nil && !bytes.Contains(b, []byte(addresses(p)[0])) {
				err = unix.ENOENT
			}
			return err
		})
	}
	connect(p)
}

// keyring looks for a key by its description.
func keyring(p *Probe) {
	p.Read("read /proc/keys", func() ([]byte, error) { return os.ReadFile("/proc/keys") })
	for _, ring := range []int{unix.KEY_SPEC_USER_KEYRING, unix.KEY_SPEC_SESSION_KEYRING, unix.KEY_SPEC_USER_SESSION_KEYRING} {
		p.Read(fmt.Sprintf("search keyring %d", ring), func() ([]byte, error) {
			id, err := unix.KeyctlSearch(ring, "user", p.Arg("key"), 0)
			if err != nil {
				return nil, err
			}
			b := make([]byte, 256)
			n, err := unix.KeyctlBuffer(unix.KEYCTL_READ, id, b, 0)
			return b[:max(n, 0)], err
		})
	}
	p.Try("request_key", func() error { _, err := unix.RequestKey("user", p.Arg("key"), "", 0); return err })
	p.Try("add_key", func() error {
		_, err := unix.AddKey("user", "holdfast-probe", []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING)
		return err
	})
}

// sharedSegments reads System V shared memory by number.
func sharedSegments(p *Probe) {
	id, err := strconv.Atoi(p.Arg("segment"))
	if err != nil {
		return
	}
	p.Read("attach the segment", func() ([]byte, error) {
		b, err := unix.SysvShmAttach(id, 0, unix.SHM_RDONLY)
		if err != nil {
			return nil, err
		}
		text := bytes.Clone(b[:64])
		return text, unix.SysvShmDetach(b)
	})
	p.Read("read /proc/sysvipc/shm", func() ([]byte, error) {
		b, err := os.ReadFile("/proc/sysvipc/shm")
		if err == nil && !bytes.Contains(b, []byte(" "+p.Arg("segment")+" ")) {
			err = unix.ENOENT
		}
		return nil, err
	})
}

// watchFiles asks for events about what happens outside.
func watchFiles(p *Probe, path string) {
	p.Try("inotify on "+path, func() error {
		fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		_, err = unix.InotifyAddWatch(fd, path, unix.IN_ALL_EVENTS)
		return err
	})
	p.Try("fanotify on "+path, func() error {
		fd, err := unix.FanotifyInit(unix.FAN_CLASS_NOTIF|unix.FAN_REPORT_FID|unix.FAN_CLOEXEC, unix.O_RDONLY)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.FanotifyMark(fd, unix.FAN_MARK_ADD, unix.FAN_OPEN, unix.AT_FDCWD, path)
	})
	p.Try("a notice of changes in "+path, func() error {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		_, err = unix.FcntlInt(uintptr(fd), unix.F_NOTIFY, 4) // DN_CREATE, linux/fcntl.h
		return err
	})
}

// ownSockets uses sockets among its own processes, as programs do.
func ownSockets(p *Probe) {
	for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_SEQPACKET} {
		p.Try(fmt.Sprintf("a pair of type %d that passes a descriptor", kind), func() error {
			pair, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(pair[0])
			defer unix.Close(pair[1])
			if err := unix.Sendmsg(pair[0], []byte("x"), unix.UnixRights(pair[0]), nil, 0); err != nil {
				return err
			}
			oob := make([]byte, unix.CmsgSpace(4))
			_, n, _, _, err := unix.Recvmsg(pair[1], make([]byte, 1), oob, unix.MSG_CMSG_CLOEXEC)
			if err == nil && n == 0 {
				err = unix.ENOENT
			}
			return err
		})
	}
	for _, addr := range []string{p.In("W", "own.sock"), "/tmp/own-" + p.nonce, "@own-" + p.nonce} {
		p.Try("listen and connect at "+addr, func() error {
			l, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(l)
			defer os.Remove(addr)
			if err := errors.Join(unix.Bind(l, &unix.SockaddrUnix{Name: addr}), unix.Listen(l, 1)); err != nil {
				return err
			}
			return dial(unix.SOCK_STREAM, addr)
		})
	}
	p.Try("an event counter", func() error { return closeOpened(unix.Eventfd(0, unix.EFD_CLOEXEC)) })
	p.Try("a file in memory", func() error { return closeOpened(unix.MemfdCreate("x", unix.MFD_CLOEXEC)) })
	p.Try("shared memory by name", func() error {
		path := "/dev/shm/own-" + p.nonce
		defer os.Remove(path)
		return os.WriteFile(path, []byte("x"), 0o600)
	})
}
