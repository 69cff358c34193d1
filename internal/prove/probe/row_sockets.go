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

const classSockets = "ipc.unix-sockets"

// noSocket are Denials and what a name answers that is no socket, or one of
// another type.
var noSocket = append([]string{"ENOTSOCK", "EPROTOTYPE", "ENOTDIR"}, Denials...)

func socketsRows() []Row {
	return append(append(socketsPlain(), socketsOfServices()...), socketsShared()...)
}

func socketsPlain() []Row {
	return []Row{
		{ID: "IPC-001", Class: classSockets, Core: true, Kind: Sandbox, Promise: "P4",
			Title: "a service outside is reached by the path of its socket",
			Refs:  []string{"unix(7)"}, Setup: listen("unix", "O/s.sock", "H/.s.sock"), Accept: noSocket,
			Action: "connect"},
		{ID: "IPC-001b", Class: classSockets, Kind: Sandbox, Promise: "P4",
			Title: "a service is reached in a directory that may only be read",
			Refs:  []string{"unix(7)", "github.com/containers/bubblewrap"}, Setup: listen("unix", "R/s.sock"), Accept: noSocket,
			Options: Options{Read: []string{"R"}},
			Action:  "connect"},
		{ID: "IPC-001c", Class: classSockets, Kind: Sandbox, Promise: "P4",
			Title: "a service is reached by a socket of messages",
			Refs:  []string{"unix(7), SOCK_SEQPACKET"}, Setup: listenSeqpacket("O/q.sock"), Accept: noSocket,
			Action: "connect", Args: []string{"kind=seqpacket"}},
		{ID: "IPC-002", Class: classSockets, Core: true, Kind: Sandbox, Promise: "P4",
			Title: "datagrams are sent to a service outside, with no connection before them",
			Refs:  []string{"sendmmsg(2)"}, Setup: listen("unixgram", "O/d.sock"), Accept: noSocket,
			Action: "send"},
		{ID: "IPC-002b", Class: classSockets, Kind: Sandbox, Promise: "P4",
			Title: "datagrams are sent to a service in a directory that may only be read",
			Refs:  []string{"sendmmsg(2)"}, Setup: listen("unixgram", "R/d.sock"), Accept: noSocket,
			Options: Options{Read: []string{"R"}},
			Action:  "send"},
		{ID: "IPC-003", Class: classSockets, Core: true, Kind: Sandbox, Promise: "P4",
			Title: "a service with an abstract name is listed and reached",
			Refs:  []string{"unix(7)"}, Setup: listen("unix", "@"), Accept: noSocket,
			Action: "listed-names"},
		{ID: "IPC-003b", Class: classSockets, Kind: Sandbox, Promise: "P4",
			Title: "datagrams are sent to an abstract name",
			Refs:  []string{"unix(7)"}, Setup: listen("unixgram", "@"), Accept: noSocket,
			Action: "send"},
		{ID: "IPC-003c", Class: classSockets, Kind: Sandbox, Promise: "P4",
			Title: "messages are sent to an abstract name",
			Refs:  []string{"unix(7)"}, Setup: listenSeqpacket("@"), Accept: noSocket,
			Action: "connect", Args: []string{"kind=seqpacket"}},
		{ID: "IPC-018", Class: classSockets, Kind: Sandbox, Promise: "P4",
			Title: "a socket that a program of the host listens at inside the workspace is reached",
			Refs:  []string{"unix(7)", "Landlock ABI 9, LANDLOCK_ACCESS_FS_RESOLVE_UNIX"}, Setup: listen("unix", "W/x.sock"), Accept: noSocket,
			Action: "connect"},
		{ID: "IPC-018b", Class: classSockets, Kind: Sandbox, Promise: "P4",
			Title: "the same with datagrams",
			Refs:  []string{"unix(7)"}, Setup: listen("unixgram", "W/y.sock"), Accept: noSocket,
			Action: "send"},
		{ID: "IPC-018d", Class: classSockets, Kind: Sandbox, Promise: "P4",
			Title: "the directory of such a socket is moved, and the socket reached by its new name",
			Refs:  []string{"rename(2)"}, Setup: listen("unix", "W/d/e/z.sock"), Accept: noSocket,
			Harmless: "a directory of the workspace may be moved",
			Action:   "move-and-connect", Args: []string{"from=W/d", "to=W/moved", "below=e/z.sock"}},
		{ID: "IPC-018c", Class: classSockets, Kind: Host, Promise: "P4",
			Title: "a program of the host begins to listen inside the workspace while the command runs",
			Refs:  []string{"unix(7)", "Landlock ABI 9, LANDLOCK_ACCESS_FS_RESOLVE_UNIX"}, Accept: noSocket,
			Residual: "what a host program puts into the workspace during a run is in view; no kernel before 7.1 can refuse the connection by path",
			Action:   "connect-late", Args: []string{"path=W/late.sock"},
			Drive: func(s *Session) {
				wait := s.Start(Command{})
				time.Sleep(500 * time.Millisecond)
				if _, err := s.World.Listen("unix", "W/late.sock"); err != nil {
					s.Fail(err)
				}
				wait()
			}},
		{ID: "IPC-023", Class: classSockets, Kind: Control, Promise: "P4",
			Title: "programs inside talk to each other by sockets, pairs, shared memory and events",
			Refs:  []string{"unix(7)"}, Action: "own-sockets"},
	}
}

// listen starts a service at each address and tells the action; "@" stands
// for a fresh abstract name. A place of the host that is taken or closed to us
// is passed over, as long as one address remains.
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

// prepare makes the directories of path, takes away again those that it made,
// and says whether a socket can be put there.
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

// messages is a service of SOCK_SEQPACKET that greets with a token.
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

// socketsShared are other ways between processes of one user.
func socketsShared() []Row {
	return []Row{
		{ID: "IPC-021", Class: classSockets, Core: true, Kind: Sandbox, Promise: "P4",
			Title: "a key of the user is found in the keyrings of the kernel",
			Refs:  []string{"keyrings(7)"}, Setup: hostKey,
			Accept: append([]string{"ENOKEY"}, Denials...),
			Action: "keyring"},
		{ID: "IPC-021b", Class: classSockets, Kind: Sandbox, Promise: "P4",
			Title: "a System V shared memory segment of the user is read by its number",
			Refs:  []string{"shmat(2)"}, Setup: hostSegment,
			Accept: append([]string{"EINVAL", "EIDRM"}, Denials...),
			Action: "shared-segments"},
		{ID: "IPC-022", Class: classSockets, Kind: Sandbox, Promise: "P1",
			Title: "files outside are watched",
			Refs:  []string{"inotify(7)", "fanotify(7)"}, Accept: append([]string{"ENOTDIR"}, Denials...),
			Action: "watch-files", Args: []string{"path=O\nO/canary\nH/.ssh/id_probe\nH/.netrc"}},
		{ID: "IPC-016", Class: classSockets, Kind: Sandbox, Promise: "P4",
			Title: "sockets of the host are found below /run, /tmp and the homes",
			Refs:  []string{"hier(7)"},
			Setup: listen("unix", "/tmp/probe-"+hexes(4)+"/avahi.sock", "H/.snap.sock"), Accept: noSocket,
			Action: "find-sockets"},
	}
}

// hostKey gives the user a key, and takes it away again.
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

// lowSegment makes a segment in one of the first 64 places of the kernel's table. A
// place above could be refused for its number alone, which would say nothing of whose
// it is; the kernel leaves these 64 only while many objects exist.
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
