//go:build linux

package probe

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// readOnlyMount mounts R into the workspace, read-only. The world unmounts it.
func readOnlyMount(w *World) error {
	at := w.Path("W/ro")
	if err := os.Mkdir(at, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(w.R, at, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	return unix.Mount("", at, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, "")
}

// handleOfCanary passes the action the handle of a file that it cannot see.
func handleOfCanary(w *World) error {
	h, _, err := unix.NameToHandleAt(unix.AT_FDCWD, w.Path("O/canary"), 0)
	if err != nil {
		return fmt.Errorf("%w: file handles: %v", ErrMissing, err)
	}
	w.Arg(fmt.Sprintf("type=%d", h.Type()))
	w.Arg(fmt.Sprintf("handle=%x", h.Bytes()))
	return nil
}

func rememberHostname(w *World) (err error) {
	w.remembered, err = os.Hostname()
	return err
}

func hostnameChanged(w *World, _ Observation) []string {
	if now, err := os.Hostname(); err != nil || now != w.remembered {
		return []string{"the host is now called " + now}
	}
	return nil
}

// leakDirectory passes a directory outside to the launcher.
func leakDirectory(w *World) error {
	d, err := os.Open(w.O)
	if err != nil {
		return err
	}
	w.Files = append(w.Files, d)
	w.Defer(d.Close)
	return nil
}

// mountedBelow lists the mounts that appeared in the world, as seen by the host.
func mountedBelow(w *World, _ Observation) []string { return mountsBelow(w.B) }

// fromLeakedDirectories starts the command in directories outside, one of them through an
// inherited descriptor.
func fromLeakedDirectories(s *Session) {
	s.Run(Command{Dir: s.World.O})
	s.Run(Command{Dir: s.World.Path("O/sub")})
	s.Run(Command{Dir: "/proc/self/fd/" + fmt.Sprint(s.World.Files[0].Fd())})
}

// aimAtVictim passes the action the process outside that it should attack.
func aimAtVictim(w *World) error {
	v, err := w.Victim()
	if err == nil {
		w.Arg(fmt.Sprintf("pid=%d", v.PID))
	}
	return err
}

// rememberSysctl and sysctlChanged detect a change of a setting by a row.
func rememberSysctl(path string) func(*World) error {
	return func(w *World) error {
		b, err := os.ReadFile(path)
		w.remembered = string(b)
		return err
	}
}

func sysctlChanged(path string) func(*World, Observation) []string {
	return func(w *World, _ Observation) []string {
		if b, err := os.ReadFile(path); err != nil || string(b) != w.remembered {
			return []string{fmt.Sprintf("%s is now %q", path, b)}
		}
		return nil
	}
}

// devicesMade looks for device nodes in the workspace.
func devicesMade(w *World, _ Observation) []string {
	entries, err := os.ReadDir(w.W)
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		if e.Type()&os.ModeDevice != 0 {
			out = append(out, "W/"+e.Name()+" is a device")
		}
	}
	return out
}

func sharedMemory(w *World) error { return plantAt(w, "/dev/shm") }

func sharedTemp(w *World) error { return plantAt(w, "/tmp", "/var/tmp") }

// plantAt plants a file of ours in world-writable directories of the host.
func plantAt(w *World, dirs ...string) error {
	var paths []string
	for _, dir := range dirs {
		path := dir + "/probe-" + hexes(8)
		w.Defer(func() error { return os.RemoveAll(path) })
		if err := w.Plant(path); err != nil {
			return err
		}
		paths = append(paths, path)
	}
	w.Arg("path=" + strings.Join(paths, "\n"))
	return nil
}

func sharedNames(w *World) error {
	var paths []string
	for _, dir := range []string{"/tmp", "/var/tmp", "/dev/shm", "/run"} {
		path := dir + "/probe-" + hexes(8)
		w.Defer(func() error { return os.RemoveAll(path) })
		w.Absent(path)
		paths = append(paths, path)
	}
	w.Arg("path=" + strings.Join(paths, "\n"))
	return nil
}

// listedSockets listens on a port and on a path, and passes the action how the kernel lists
// them.
func listedSockets(w *World) error {
	tcp, err := w.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	unixSock, err := w.Listen("unix", "O/listed.sock")
	if err != nil {
		return err
	}
	var port int
	if _, err := fmt.Sscanf(tcp.Addr[strings.LastIndex(tcp.Addr, ":")+1:], "%d", &port); err != nil {
		return err
	}
	w.Arg(fmt.Sprintf("tcp=:%04X", port))
	w.Arg("unix=" + unixSock.Addr)
	return nil
}

// numberOfDisk passes the action the number of the device that holds the world.
func numberOfDisk(w *World) error {
	var st unix.Stat_t
	if err := unix.Stat(w.B, &st); err != nil {
		return err
	}
	w.Arg(fmt.Sprintf("disk=%d", st.Dev))
	return nil
}
