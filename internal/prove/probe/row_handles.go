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

// closeRest keeps the descriptors of this process from the launcher.
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

// generous starts a service that gives each caller a descriptor of O/canary; "@"
// stands for a fresh abstract name.
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

// redirected starts the launcher from a shell script. After a NUL the script
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

// canaryOpened opens the canary for reading and writing.
func canaryOpened(w *World) (*os.File, error) { return os.OpenFile(w.Path("O/canary"), os.O_RDWR, 0) }

// inheritManyTimes has the launcher inherit the canary as 300 descriptors.
func inheritManyTimes(w *World) error {
	f, err := os.OpenFile(w.Path("O/canary"), os.O_RDWR, 0)
	for range 300 {
		w.Files = append(w.Files, f)
	}
	w.Defer(f.Close)
	return err
}

// rootOpened opens the root directory with O_PATH.
func rootOpened(*World) (*os.File, error) { return os.OpenFile("/", unix.O_PATH, 0) }

// outsideOpened opens the directory outside.
func outsideOpened(w *World) (*os.File, error) { return os.Open(w.O) }

// appendedToLog starts the launcher with its standard error at the end of a file.
func appendedToLog(w *World) error {
	// In B and not in O, because appending to it is no escape.
	if err := w.write(w.Path("B/log"), w.Token("what the log held before")+"\n"); err != nil {
		return err
	}
	return redirected(`exec "$@" 2>>` + "\x00B/log")(w)
}

// logKept demands that the log still begins with what it held before.
func logKept(w *World, _ Observation) []string {
	b, err := os.ReadFile(w.Path("B/log"))
	if err != nil || !strings.HasPrefix(string(b), w.Token("what the log held before")) {
		return []string{"what the log held before is gone"}
	}
	return nil
}
