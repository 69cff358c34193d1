//go:build linux

package boundarytest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// marker as the first argument makes a test binary the program that the suite
// runs inside.
const marker = "sandboxtest-inside"

// Inside runs the suite's program when args ask for it; asked is false when
// they do not. TestMain of a backend's tests calls it first.
//
// What is in view inside is what is being tested, so the program needs nothing
// there but itself. Its arguments are lines: a verb and its operands, with tabs
// between. It answers with a line each: the verb, and "ok", the name of an
// errno, or what was read, quoted.
func Inside(args []string, in io.Reader, out io.Writer) (status int, asked bool) {
	if len(args) < 2 || args[1] != marker {
		return 0, false
	}
	for _, line := range args[2:] {
		f := strings.Split(line, "\t")
		do, known := verbs[f[0]]
		if !known {
			fmt.Fprintf(out, "%s\tunknown\n", f[0])
			return 2, true
		}
		answer, err := do(&console{in, out}, f[1:])
		switch {
		case err != nil:
			fmt.Fprintf(out, "%s\t%s\n", f[0], word(err))
		case answer == "":
			fmt.Fprintf(out, "%s\tok\n", f[0])
		default:
			fmt.Fprintf(out, "%s\t%q\n", f[0], answer)
		}
	}
	return 0, true
}

// console is what a verb may speak to while it lasts.
type console struct {
	in  io.Reader
	out io.Writer
}

// printLine prints a line that reports an event to the outside.
func (c *console) printLine(line string) { fmt.Fprintln(c.out, line) }

// word is the name of an errno where there is one.
func word(err error) string {
	var errno unix.Errno
	if errors.As(err, &errno) {
		return unix.ErrnoName(errno)
	}
	return strings.ReplaceAll(err.Error(), "\n", " ")
}

type verb func(c *console, args []string) (string, error)

// withoutAnswer makes a verb of what has no answer.
func withoutAnswer(f func(args []string) error) verb {
	return func(_ *console, args []string) (string, error) { return "", f(args) }
}

var verbs = map[string]verb{
	"rename": withoutAnswer(func(a []string) error { return unix.Rename(a[0], a[1]) }),
	"exchange": withoutAnswer(func(a []string) error {
		return unix.Renameat2(unix.AT_FDCWD, a[0], unix.AT_FDCWD, a[1], unix.RENAME_EXCHANGE)
	}),
	"rmdir":    withoutAnswer(func(a []string) error { return unix.Rmdir(a[0]) }),
	"unlink":   withoutAnswer(func(a []string) error { return unix.Unlink(a[0]) }),
	"mkdir":    withoutAnswer(func(a []string) error { return unix.Mkdir(a[0], 0o755) }),
	"link":     withoutAnswer(func(a []string) error { return unix.Link(a[0], a[1]) }),
	"symlink":  withoutAnswer(func(a []string) error { return unix.Symlink(a[0], a[1]) }),
	"chmod":    withoutAnswer(func(a []string) error { return unix.Chmod(a[0], 0o777) }),
	"truncate": withoutAnswer(func(a []string) error { return unix.Truncate(a[0], 0) }),
	"touch":    withoutAnswer(func(a []string) error { return unix.UtimesNanoAt(unix.AT_FDCWD, a[0], nil, unix.AT_SYMLINK_NOFOLLOW) }),
	"create":   withoutAnswer(func(a []string) error { return put(a[0], unix.O_CREAT|unix.O_EXCL, "made inside\n") }),
	"write":    withoutAnswer(func(a []string) error { return put(a[0], unix.O_TRUNC, "written inside\n") }),
	"kill": withoutAnswer(func(a []string) error {
		n, err := strconv.Atoi(a[0])
		if err != nil {
			return err
		}
		return unix.Kill(os.Getpid(), unix.Signal(n))
	}),
	"exit":    withoutAnswer(func(a []string) error { n, _ := strconv.Atoi(a[0]); unix.Exit(n); return nil }),
	"unshare": withoutAnswer(func([]string) error { return unix.Unshare(unix.CLONE_NEWUSER) }),
	"vsock": withoutAnswer(func([]string) error {
		fd, err := unix.Socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0)
		if err == nil {
			unix.Close(fd)
		}
		return err
	}),

	"read": func(_ *console, a []string) (string, error) { b, err := os.ReadFile(a[0]); return string(b), err },
	"list": func(_ *console, a []string) (string, error) {
		entries, err := os.ReadDir(a[0])
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return strings.Join(names, " "), err
	},
	"readlink": func(_ *console, a []string) (string, error) { return os.Readlink(a[0]) },
	"owner":    owner,
	"id":       func(*console, []string) (string, error) { return fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid()), nil },
	"env":      func(*console, []string) (string, error) { return strings.Join(os.Environ(), "\n"), nil },
	"dir":      func(*console, []string) (string, error) { return os.Getwd() },
	"fds":      func(*console, []string) (string, error) { return openDescriptors(), nil },
	"limit":    limit,
	"terminal": terminal,
	"echo":     echo,
	"pause":    pause,
	"fork":     daemon,
	"serve":    serve,
	"threads":  threads,
}

func put(path string, flags int, content string) error {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC|flags, 0o644)
	if err != nil {
		return err
	}
	_, err = unix.Write(fd, []byte(content))
	return errors.Join(err, unix.Close(fd))
}

func owner(_ *console, a []string) (string, error) {
	var st unix.Stat_t
	err := unix.Lstat(a[0], &st)
	return fmt.Sprintf("%d:%d", st.Uid, st.Gid), err
}

// openDescriptors asks for each number: a list of /proc would hold the one that
// the list is read by. The runtime's own (epoll, its wake-up) are the same in
// every Go program and are known by what they are.
func openDescriptors() string {
	var open []string
	for fd := range 4096 {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil {
			continue
		}
		target, _ := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
		if strings.HasPrefix(target, "anon_inode:[event") {
			continue
		}
		open = append(open, strconv.Itoa(fd))
	}
	return strings.Join(open, " ")
}

func limit(_ *console, a []string) (string, error) {
	n, err := strconv.Atoi(a[0])
	if err != nil {
		return "", err
	}
	var l unix.Rlimit
	err = unix.Getrlimit(n, &l)
	return fmt.Sprintf("%d %d", l.Cur, l.Max), err
}

// terminal describes a descriptor as a terminal: its size, and whether it is
// the controlling one.
func terminal(_ *console, a []string) (string, error) {
	fd, err := strconv.Atoi(a[0])
	if err != nil {
		return "", err
	}
	size, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ)
	if err != nil {
		return "", err
	}
	tty, err := unix.Open("/dev/tty", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", fmt.Errorf("no controlling terminal: %w", err)
	}
	group, err := unix.IoctlGetInt(tty, unix.TIOCGPGRP)
	unix.Close(tty)
	return fmt.Sprintf("%dx%d foreground %v", size.Row, size.Col, group == unix.Getpgrp()), err
}

func echo(c *console, _ []string) (string, error) {
	_, err := io.Copy(c.out, c.in)
	return "", err
}

// pause reports that it is there and waits to be ended.
func pause(c *console, _ []string) (string, error) {
	c.printLine("paused")
	time.Sleep(time.Hour)
	return "", nil
}

// daemon leaves a process of a session of its own behind.
func daemon(c *console, _ []string) (string, error) {
	attr := &os.ProcAttr{Files: []*os.File{nil, nil, nil}, Sys: &unix.SysProcAttr{Setsid: true}, Env: os.Environ()}
	p, err := os.StartProcess("/proc/self/exe", []string{"daemon", marker, "pause"}, attr)
	if err != nil {
		return "", err
	}
	c.printLine("forked")
	return "", p.Release()
}

// serve answers one connection on an address with what it is sent.
func serve(c *console, a []string) (string, error) {
	l, err := net.Listen("tcp", a[0])
	if err != nil {
		return "", err
	}
	defer l.Close()
	c.printLine("serving")
	conn, err := l.Accept()
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_, err = io.Copy(conn, conn)
	return "", err
}

// threads starts threads, reports when all are running, and waits.
func threads(c *console, a []string) (string, error) {
	n, err := strconv.Atoi(a[0])
	if err != nil {
		return "", err
	}
	var ready sync.WaitGroup
	ready.Add(n)
	for range n {
		go func() {
			runtime.LockOSThread()
			ready.Done()
			time.Sleep(time.Hour)
		}()
	}
	ready.Wait()
	return pause(c, nil)
}
