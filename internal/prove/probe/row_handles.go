//go:build linux

package probe

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const classHandles = "fd.handles"

// noHandle are Denials and what a descriptor answers that is not there, or is
// of another kind than the attempt needs.
var noHandle = append([]string{"EBADF", "ENOTDIR", "ENOTSOCK", "ESPIPE", "EINVAL", "ELOOP", "EAGAIN", "ENXIO"}, Denials...)

func handlesRows() []Row {
	return append(append(handlesInherited(), handlesOpened()...), handlesStandard()...)
}

func handlesInherited() []Row {
	return []Row{
		{ID: "FDS-001", Class: classHandles, Core: true, Kind: Sandbox, Promise: "P2",
			Title: "a descriptor of a file outside, left open by what started the launcher, is read and written",
			Refs:  []string{"CVE-2024-21626"},
			Setup: inherit(func(w *World) (*os.File, error) { return os.OpenFile(w.Path("O/canary"), os.O_RDWR, 0) }), Accept: noHandle,
			Action: "inherited", Args: []string{"fds=3"}},
		{ID: "FDS-001b", Class: classHandles, Kind: Sandbox, Promise: "P2",
			Title: "descriptors with high numbers are left open",
			Refs:  []string{"close_range(2)"},
			Setup: func(w *World) error {
				f, err := os.OpenFile(w.Path("O/canary"), os.O_RDWR, 0)
				for range 300 {
					w.Files = append(w.Files, f)
				}
				w.Defer(f.Close)
				return err
			},
			Accept: noHandle,
			Action: "inherited", Args: []string{"fds=3 37 100 255 256 302"}},
		{ID: "FDS-001c", Class: classHandles, Kind: Sandbox, Promise: "P4",
			Title:  "a socket whose other end is outside, and hands out descriptors, is left open",
			Refs:   []string{"unix(7), SCM_RIGHTS"},
			Setup:  inheritGenerousSocket,
			Accept: noHandle,
			Action: "inherited", Args: []string{"fds=3"}},
		{ID: "FDS-001d", Class: classHandles, Kind: Sandbox, Promise: "P4",
			Title: "a pipe and a file in memory that hold a secret are left open",
			Refs:  []string{"pipe(2)", "memfd_create(2)"},
			Setup: inheritSecrets, Accept: noHandle,
			Action: "inherited", Args: []string{"fds=3 4"}},
		{ID: "FDS-002", Class: classHandles, Core: true, Kind: Sandbox, Promise: "P1",
			Title: "the root directory of the host, opened without reading, is left open",
			Refs:  []string{"CVE-2024-21626", "openat(2)"},
			Setup: inherit(func(*World) (*os.File, error) { return os.OpenFile("/", unix.O_PATH, 0) }), Accept: noHandle,
			Action: "inherited", Args: []string{"fds=3"}},
		{ID: "FDS-002b", Class: classHandles, Kind: Sandbox, Promise: "P1",
			Title: "a directory beside the workspace is left open",
			Refs:  []string{"CVE-2024-21626", "openat(2)"},
			Setup: inherit(func(w *World) (*os.File, error) { return os.Open(w.O) }), Accept: noHandle,
			Action: "inherited", Args: []string{"fds=3"}},
		{ID: "FDS-009", Class: classHandles, Kind: Sandbox, Promise: "P10",
			Title: "a descriptor of the launcher itself is reached",
			Refs:  []string{"CVE-2024-21626"}, Accept: noHandle,
			Setup:  closeRest,
			Bare:   "there is no launcher, and nothing that it could leave open",
			Action: "inherited"},
	}
}

// closeRest keeps from the launcher what this process was itself given.
func closeRest(*World) error {
	return unix.CloseRange(3, 1<<31-1, unix.CLOSE_RANGE_CLOEXEC)
}

// inherit leaves a descriptor open in the launcher.
func inherit(open func(*World) (*os.File, error)) func(*World) error {
	return func(w *World) error {
		f, err := open(w)
		if err != nil {
			return err
		}
		w.Files = append(w.Files, f)
		w.Defer(f.Close)
		return closeRest(w)
	}
}

func inheritSecrets(w *World) error {
	r, wr, err := os.Pipe()
	if err != nil {
		return err
	}
	w.Defer(r.Close)
	if _, err := wr.WriteString(w.Token("a pipe")); err != nil {
		return err
	}
	if err := wr.Close(); err != nil {
		return err
	}
	fd, err := unix.MemfdCreate("secret", unix.MFD_CLOEXEC)
	if err != nil {
		return err
	}
	mem := os.NewFile(uintptr(fd), "secret")
	w.Defer(mem.Close)
	if _, err := mem.WriteString(w.Token("a file in memory")); err != nil {
		return err
	}
	w.Files = append(w.Files, r, mem)
	return closeRest(w)
}

func inheritGenerousSocket(w *World) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "ours"), os.NewFile(uintptr(pair[1]), "theirs")
	w.Files = append(w.Files, theirs)
	w.Defer(theirs.Close)
	c, err := net.FileConn(ours)
	if err != nil {
		return err
	}
	w.Defer(c.Close)
	path := w.Path("O/canary")
	go func() {
		if n, err := c.Read(make([]byte, 64)); err == nil && n > 0 {
			_ = giveAway(c, path)
		}
	}()
	if err := ours.Close(); err != nil {
		return err
	}
	return closeRest(w)
}

// giveAway sends a descriptor of path over c.
func giveAway(c net.Conn, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	u, ok := c.(*net.UnixConn)
	if !ok {
		return fmt.Errorf("not a unix socket: %s", c.RemoteAddr())
	}
	_, _, err = u.WriteMsgUnix([]byte("take"), unix.UnixRights(int(f.Fd())), nil)
	return err
}

func handlesOpened() []Row {
	return []Row{
		{ID: "FDS-003", Class: classHandles, Kind: Sandbox, Promise: "P1",
			Title:  "a directory that may not be read is opened by O_PATH and entered",
			Refs:   []string{"open(2), O_PATH"},
			Accept: append([]string{"EBADF"}, Denials...),
			Action: "path-descriptors", Args: []string{"path=O\nH/.ssh\nB"}},
		{ID: "FDS-003b", Class: classHandles, Kind: Sandbox, Promise: "P1",
			Title:   "a directory that may be read leads to its neighbours",
			Refs:    []string{"openat(2)"},
			Options: Options{Read: []string{"R"}},
			// R/canary holds no token and may be read; O/canary may not.
			Harmless: "the file of the directory that may be read holds no token",
			Action:   "path-descriptors", Args: []string{"path=R\nW\n/"}},
		{ID: "FDS-004", Class: classHandles, Core: true, Kind: Sandbox, Promise: "P2",
			Title:  "a file outside is opened by each system call that opens, with each way of resolving",
			Refs:   []string{"openat2(2)"},
			Accept: append([]string{"EAGAIN", "EINVAL"}, Denials...),
			Action: "open-spellings", Args: []string{"path=O/canary"}},
		{ID: "FDS-006", Class: classHandles, Kind: Sandbox, Promise: "P4",
			Title:  "a program outside is asked over a socket for a descriptor",
			Refs:   []string{"unix(7), SCM_RIGHTS"},
			Setup:  generous("O/give.sock"),
			Action: "take-descriptor"},
		{ID: "FDS-006b", Class: classHandles, Kind: Sandbox, Promise: "P4",
			Title:  "the same over a socket with an abstract name",
			Refs:   []string{"unix(7)"},
			Setup:  generous("@"),
			Action: "take-descriptor"},
		{ID: "FDS-010", Class: classHandles, Kind: Sandbox, Promise: "P1",
			Title:  "a program outside is executed by descriptor and through the loader",
			Refs:   []string{"execveat(2)", "fexecve(3)"},
			Setup:  programOutside,
			Action: "run-descriptor", Args: []string{"path=O/tool"}},
		{ID: "FDS-010b", Class: classHandles, Kind: Sandbox, Promise: "P1",
			Title:  "a program that exists in memory only sees and writes more",
			Refs:   []string{"memfd_create(2)", "fexecve(3)"},
			Action: "run-memory", Args: []string{"path=O/canary\nH/.ssh/id_probe"}},
	}
}

// generous starts a service that gives each caller a descriptor of O/canary;
// "@" stands for a fresh abstract name.
func generous(addr string) func(*World) error {
	return func(w *World) error {
		name := w.Path(addr)
		if addr == "@" {
			name = "@probe-" + hexes(8)
		}
		ln, err := net.Listen("unix", name)
		if err != nil {
			return err
		}
		w.Defer(ln.Close)
		w.Arg("addr=" + name)
		path := w.Path("O/canary")
		go func() {
			for {
				c, err := ln.Accept()
				if err != nil {
					return
				}
				_ = giveAway(c, path)
				c.Close()
			}
		}()
		return nil
	}
}

func programOutside(w *World) error {
	return copyProgram(w.origin, w.Path("O/tool"))
}

// handlesStandard redirect the standard streams of the launcher.
func handlesStandard() []Row {
	return []Row{
		{ID: "FDS-002c", Class: classHandles, Kind: Host, Promise: "P1",
			Title: "a directory outside stands at standard input",
			Refs:  []string{"CVE-2024-21626"}, Needs: []string{"bash"},
			Setup: redirected(`exec "$@" <` + "\x00O"), RefusalHolds: true, Accept: noHandle,
			Harmless: "a descriptor of a pipe or of /dev/null may stand there",
			Action:   "standard-input"},
		{ID: "FDS-011", Class: classHandles, Kind: Host, Promise: "P2",
			Title: "the file at standard input is opened again, for writing",
			Refs:  []string{"proc_pid_fd(5)"}, Needs: []string{"bash"},
			Files: map[string]string{"O/input": "what the user feeds to the command\n"},
			Setup: redirected(`exec "$@" <` + "\x00O/input"), Accept: noHandle,
			Harmless: "the input may be read, and a pipe or /dev/null may stand there; the file must stay as it is",
			Action:   "reopen-standard", Args: []string{"fds=0"}},
		{ID: "FDS-011b", Class: classHandles, Kind: Host, Promise: "P1",
			Title: "the log at standard error, to which one may only append, is read",
			Refs:  []string{"proc_pid_fd(5)"}, Needs: []string{"bash"},
			Setup: func(w *World) error {
				// Below B and not in O, because appending to it is no escape.
				if err := w.write(w.Path("B/log"), w.Token("what the log held before")+"\n"); err != nil {
					return err
				}
				return redirected(`exec "$@" 2>>` + "\x00B/log")(w)
			},
			Accept: noHandle,
			Oracle: func(w *World, _ Observation) []string {
				b, err := os.ReadFile(w.Path("B/log"))
				if err != nil || !strings.HasPrefix(string(b), w.Token("what the log held before")) {
					return []string{"what the log held before is gone"}
				}
				return nil
			},
			Harmless: "appending is what the descriptor is for",
			Action:   "reopen-standard", Args: []string{"fds=2"}},
	}
}

// redirected starts the launcher by a shell script. After a NUL the script
// names a file, as a template.
func redirected(script string) func(*World) error {
	return func(w *World) error {
		head, path, _ := strings.Cut(script, "\x00")
		shell := []string{"bash", "-c", head + `"$PROBE_FILE"`, "launcher"}
		w.Under = shell
		w.Env = append(w.Env, "PROBE_FILE="+filepath.Clean(w.Path(path)))
		return nil
	}
}
