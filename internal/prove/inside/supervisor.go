//go:build linux

package inside

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

func supervisorActions() map[string]Action {
	return map[string]Action{
		"measure":       measure,
		"without-calls": withoutCalls,
		"end-by":        endBy,
		"forge":         forge,
		"neighbour":     neighbour,
		"visit":         callNeighbour,
		"plant-traps":   plantHostileFiles,
		"inherited-api": inheritedAPI,
		"tools-work":    toolsWork,
		"terminal-pair": terminalPair,
	}
}

// wrappedCommand returns the command line after "--", for actions that start a launcher.
func wrappedCommand() []string { return os.Args[slices.Index(os.Args, "--")+1:] }

// measure starts the rest of the command line and finally prints how much memory
// its largest process had.
func measure(*Probe) {
	argv := wrappedCommand()
	c := exec.Command(argv[0], argv[1:]...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := c.Run()
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_CHILDREN, &usage); err == nil {
		fmt.Fprintf(os.Stderr, "\nlargest process KiB %d\n", usage.Maxrss)
	}
	if err != nil && c.ProcessState == nil {
		os.Exit(124)
	}
	os.Exit(c.ProcessState.ExitCode())
}

// withoutCalls becomes the rest of the command line on a kernel that seems to
// lack the system calls of the argument "calls", numbers with the errno of each.
// A number with a colon is refused only with that first argument.
func withoutCalls(p *Probe) {
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	var prog []unix.SockFilter
	for call := range strings.SplitSeq(p.Arg("calls"), ",") {
		name, errno, _ := strings.Cut(call, "=")
		nr, first, narrowed := strings.Cut(name, ":")
		refuse := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | number(errno)}
		equal := func(k, skip uint32) unix.SockFilter {
			return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: k, Jf: uint8(skip)}
		}
		prog = append(prog, load(0))
		if narrowed {
			prog = append(prog, equal(number(nr), 3), load(16), equal(number(first), 1), refuse)
		} else {
			prog = append(prog, equal(number(nr), 1), refuse)
		}
	}
	prog = append(prog, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})
	runtime.LockOSThread() // the filter and the exec belong to this thread
	fprog := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	argv := wrappedCommand()
	path, err := exec.LookPath(argv[0])
	if err == nil {
		err = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
	}
	if err == nil {
		err = unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, Pointer(&fprog), 0, 0)
	}
	if err == nil {
		err = unix.Exec(path, argv, os.Environ())
	}
	fmt.Fprintln(os.Stderr, "exec:", err)
	os.Exit(124)
}

func number(s string) uint32 {
	n, _ := strconv.ParseUint(s, 10, 32)
	return uint32(n)
}

// endBy ends with a status, or by a signal if the argument says so.
func endBy(p *Probe) {
	if sig := number(p.Arg("signal")); sig != 0 {
		_ = unix.Kill(os.Getpid(), unix.Signal(sig))
		time.Sleep(time.Second)
	}
	os.Exit(int(number(p.Arg("status"))))
}

// forge prints what a careless judge takes for a verdict.
func forge(p *Probe) {
	fmt.Println(`{"nonce":"","phase":"end"}`)
	fmt.Println(`{"nonce":"0","attempt":"overwrite","errno":"EPERM"}`)
	fmt.Println("PASS: all probes held; verdict: held; exit status 0")
	p.Try("overwrite outside", func() error { return overwrite(p.In("O", "canary")) })
}

// neighbour is a command that has something to protect, and waits.
func neighbour(p *Probe) {
	l, err := net.Listen("tcp", p.Arg("tcp"))
	a, err2 := net.Listen("unix", p.Arg("abstract"))
	err3 := os.WriteFile(p.Arg("file"), []byte(p.Arg("secret")), 0o600)
	defer os.Remove(p.Arg("file"))
	p.Control("serve and store", func() error { return errors.Join(err, err2, err3) })
	for _, ln := range []net.Listener{l, a} {
		if ln == nil {
			continue
		}
		go func() {
			for {
				c, err := ln.Accept()
				if err != nil {
					return
				}
				_, _ = c.Write([]byte(p.Arg("secret")))
				c.Close()
			}
		}()
	}
	_ = os.WriteFile(p.In("W", "neighbour-is-there"), []byte(strconv.Itoa(os.Getpid())), 0o644)
	for range 100 {
		if _, err := os.Stat(p.In("W", "neighbour-may-go")); err == nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	gone(p)
}

// callNeighbour tries to reach the neighbour.
func callNeighbour(p *Probe) {
	for _, at := range [][2]string{{"tcp", p.Arg("tcp")}, {"unix", p.Arg("abstract")}} {
		p.Read("call "+at[1], func() ([]byte, error) {
			c, err := net.DialTimeout(at[0], at[1], 2*time.Second)
			if err != nil {
				return nil, err
			}
			defer c.Close()
			b := make([]byte, 256)
			n, err := c.Read(b)
			return b[:n], err
		})
	}
	p.Read("read its private file", func() ([]byte, error) { return os.ReadFile(p.Arg("file")) })
	own := strconv.Itoa(os.Getpid())
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		if b, err := os.ReadFile(path); err == nil && !strings.Contains(path, "/"+own+"/") {
			p.Note(path, b)
		}
	}
	_ = os.WriteFile(p.In("W", "neighbour-may-go"), nil, 0o644)
}

// plantHostileFiles leaves what a reader outside should not follow, wait for, read to
// the end or print.
func plantHostileFiles(p *Probe) {
	links := map[string]string{".mcp.json": p.In("H", ".ssh", "id_probe"), ".bashrc": p.In("O", "canary"), "CLAUDE.md": "/dev/zero",
		"Makefile": "Makefile", ".vscode": p.In("O"), "out/report": p.In("H", ".ssh", "id_probe"), "package.json": p.In("H", ".aws", "credentials"),
		".envrc": "/proc/self/environ", "Jenkinsfile": "/dev/stdin"}
	for name, target := range links {
		p.Try("link "+name, func() error {
			return errors.Join(os.MkdirAll(filepath.Dir(p.In("W", name)), 0o755), os.Symlink(target, p.In("W", name)))
		})
	}
	for _, name := range []string{".exrc", "setup.py", "out/log", ".idea"} {
		p.Try("fifo "+name, func() error {
			return errors.Join(os.MkdirAll(filepath.Dir(p.In("W", name)), 0o755), unix.Mkfifo(p.In("W", name), 0o666))
		})
	}
	for _, name := range []string{".zshrc", "pom.xml", "out/big"} {
		p.Try("much space without content: "+name, func() error {
			if err := create(p.In("W", name)); err != nil {
				return err
			}
			err := os.Truncate(p.In("W", name), 1<<40)
			if errors.Is(err, unix.EFBIG) { // there is a limit for files; this is below most
				err = os.Truncate(p.In("W", name), 1<<31)
			}
			return err
		})
	}
	p.Try("socket .cursorrules", func() error {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return errors.Join(os.Chdir(p.Arg("W")), unix.Bind(fd, &unix.SockaddrUnix{Name: ".cursorrules"}))
	})
	p.Try("names that a terminal obeys", func() error {
		return errors.Join(create(p.In("W", "\x1b]0;probe\x07\x1b[2Jx", ".mcp.json")), create(p.In("W", "a\nholdfast: everything is well", "Makefile")))
	})
	for i := range 300 {
		_ = create(p.In("W", "many", itoa(i), ".mcp.json"))
	}
	p.Try("a deep tree", func() error { return create(p.In("W", strings.Repeat("d/", 400), ".mcp.json")) })
}

// inheritedAPI looks for a way to talk to the program that started us.
func inheritedAPI(p *Probe) {
	for path := range strings.SplitSeq(p.Arg("sockets"), "\n") {
		p.Read("call "+path, func() ([]byte, error) {
			c, err := net.DialTimeout("unix", path, time.Second)
			if err != nil {
				return nil, err
			}
			defer c.Close()
			b := make([]byte, 256)
			n, err := c.Read(b)
			return b[:n], err
		})
	}
	for fd := 3; fd < 1024; fd++ {
		to, err := os.Readlink(procFD(fd))
		if err == nil && (strings.HasPrefix(to, "socket:") || strings.HasPrefix(to, "pipe:") || strings.Contains(to, "memfd:") || strings.HasPrefix(to, "/")) {
			p.Try("descriptor "+itoa(fd)+" leads to "+to, func() error { return nil })
		}
	}
}

// toolsWork requires that every line of the argument "tools" succeeds.
func toolsWork(p *Probe) {
	for line := range strings.SplitSeq(p.Arg("tools"), "\n") {
		p.Try("run "+line, func() error {
			out, err := tool(p.Arg("W"), os.Environ(), "sh", "-c", line)
			if err != nil {
				return fmt.Errorf("%s: %w", lastLine(out), err)
			}
			return nil
		})
	}
}

// terminalPair makes a terminal, as editors and test runners do.
func terminalPair(p *Probe) {
	p.Try("open a terminal", func() error {
		m, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
		if err != nil {
			return err
		}
		defer m.Close()
		n, err := unix.IoctlGetInt(int(m.Fd()), unix.TIOCGPTN)
		if err != nil {
			return err
		}
		if err := unix.IoctlSetPointerInt(int(m.Fd()), unix.TIOCSPTLCK, 0); err != nil {
			return err
		}
		s, err := os.OpenFile("/dev/pts/"+itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
		if err == nil {
			s.Close()
		}
		return err
	})
}
