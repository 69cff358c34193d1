//go:build linux

package probe

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// listen starts a service at each address and passes them to the action; "@"
// stands for a fresh abstract name. Paths of the host that are taken or not
// writable are skipped, as long as one address remains.
func listen(network string, addrs ...string) func(*World) error {
	return func(w *World) error {
		var open []string
		for _, addr := range addrs {
			if addr == "@" {
				addr = "@probe-" + hexes(8)
			}
			path := w.Path(addr)
			if strings.HasPrefix(path, "/") && !prepare(w, path) {
				continue
			}
			l, err := w.Listen(network, path)
			if err != nil {
				return fmt.Errorf("listening at %s: %w", path, err)
			}
			open = append(open, l.Addr)
		}
		if len(open) == 0 {
			return fmt.Errorf("%w: a place for %s", ErrMissing, addrs[0])
		}
		w.Arg("addr=" + strings.Join(open, "\n"))
		return nil
	}
}

// prepare makes the directories of path, has those that it made removed later,
// and reports whether a socket can be put there.
func prepare(w *World, path string) bool {
	if exists(path) {
		return false
	}
	dir := filepath.Dir(path)
	var missing []string
	for d := dir; !exists(d); d = filepath.Dir(d) {
		missing = append(missing, d)
	}
	if os.MkdirAll(dir, 0o755) != nil || unix.Access(dir, unix.W_OK) != nil {
		return false
	}
	for i := len(missing) - 1; i >= 0; i-- {
		w.Defer(func() error {
			// What others put there in the meantime stays.
			_ = os.Remove(missing[i])
			return nil
		})
	}
	return true
}

// messages is a service of SOCK_SEQPACKET that sends a token as greeting.
type messages struct {
	Listener
	ln *net.UnixListener
}

// listenSeqpacket starts one.
func listenSeqpacket(addr string) func(*World) error {
	return func(w *World) error {
		name := w.Path(addr)
		if addr == "@" {
			name = "@probe-" + hexes(8)
		}
		m := &messages{}
		m.token = w.Token("message listener " + addr)
		ln, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: name, Net: "unixpacket"})
		if err != nil {
			return err
		}
		m.ln, m.Addr = ln, name
		w.seen = append(w.seen, m)
		w.Defer(ln.Close)
		w.Arg("addr=" + name)
		go m.serve()
		return nil
	}
}

func (m *messages) serve() {
	for {
		c, err := m.ln.Accept()
		if err != nil {
			return
		}
		m.hear(nil)
		_, _ = c.Write([]byte(m.token))
		c.Close()
	}
}

// hostKey gives the user a key and removes it later.
func hostKey(w *World) error {
	name := "holdfast-probe-" + hexes(8)
	id, err := unix.AddKey("user", name, []byte(w.Token("a key of the user")), unix.KEY_SPEC_USER_KEYRING)
	if err != nil {
		return fmt.Errorf("%w: keyrings: %v", ErrMissing, err)
	}
	w.Defer(func() error {
		_, err := unix.KeyctlInt(unix.KEYCTL_UNLINK, id, unix.KEY_SPEC_USER_KEYRING, 0, 0)
		return err
	})
	w.Arg("key=" + name)
	return nil
}

func hostSegment(w *World) error {
	id, err := lowSegment(w)
	if err != nil {
		return err
	}
	b, err := unix.SysvShmAttach(id, 0, 0)
	if err != nil {
		return err
	}
	copy(b, w.Token("a shared memory segment"))
	w.Arg(fmt.Sprintf("segment=%d", id))
	return unix.SysvShmDetach(b)
}

// lowSegment makes a segment in one of the first 64 slots of the kernel's table. A
// higher slot could be refused for its number alone, which would show nothing about
// its owner; the kernel assigns slots above these 64 only while many objects exist.
func lowSegment(w *World) (int, error) {
	const places, tries = 64, 128
	for range tries {
		id, err := unix.SysvShmGet(unix.IPC_PRIVATE, 4096, 0o600|unix.IPC_CREAT)
		if err != nil {
			return 0, fmt.Errorf("%w: System V shared memory: %v", ErrMissing, err)
		}
		w.Defer(func() error { _, err := unix.SysvShmCtl(id, unix.IPC_RMID, nil); return err })
		if id&0x7fff < places {
			return id, nil
		}
	}
	return 0, fmt.Errorf("%w: so few System V segments on the host that one of the first %d places is free", ErrMissing, places)
}

// listenLate listens in the workspace half a second after the command has started.
func listenLate(s *Session) {
	wait := s.Start(Command{})
	time.Sleep(500 * time.Millisecond)
	if _, err := s.World.Listen("unix", "W/late.sock"); err != nil {
		s.Fail(err)
	}
	wait()
}

// agent is a service that a variable names. Its name must not be one that others
// look for on the whole machine: 'holdfast prove exposure' greets every
// /tmp/ssh-*/agent.*, and a greeting from outside counts as one from inside.
func agent(variable, addr string) func(*World) error {
	return func(w *World) error {
		w.Env = append(w.Env, variable+"="+w.Path(addr))
		return listen("unix", addr)(w)
	}
}

func bus(w *World) error {
	w.Env = append(w.Env, "DBUS_SESSION_BUS_ADDRESS=unix:path="+w.Path("H/run/bus"), "XDG_RUNTIME_DIR="+w.Path("H/run"))
	return listen("unix", "H/run/bus", "@")(w)
}

func desktop(w *World) error {
	display := "9" + fmt.Sprint(os.Getpid()%1000)
	w.Env = append(w.Env, "XDG_RUNTIME_DIR="+w.Path("H/run"), "WAYLAND_DISPLAY="+w.Path("H/run/wayland-0"), "DISPLAY=:"+display,
		"PULSE_SERVER="+w.Path("H/run/pulse/native"), "XAUTHORITY="+w.Path("H/.Xauthority"))
	return listen("unix", "H/run/wayland-0", "H/run/pipewire-0", "H/run/pulse/native", "/tmp/.X11-unix/X"+display, "@/tmp/.X11-unix/X"+display)(w)
}

func editor(w *World) error {
	w.Env = append(w.Env, "VSCODE_IPC_HOOK_CLI="+w.Path("H/run/vscode-ipc-1.sock"), "VSCODE_GIT_IPC_HANDLE="+w.Path("H/run/vscode-git-1.sock"),
		"VSCODE_GIT_ASKPASS_NODE=/usr/bin/node", "TMUX="+w.Path("H/run/tmux")+",1,0")
	return listen("unix", "H/run/vscode-ipc-1.sock", "H/run/vscode-git-1.sock", "H/run/tmux", "/tmp/vscode-typescript-"+hexes(4)+"/tsserver.sock")(w)
}
