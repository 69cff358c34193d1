//go:build linux

package probe

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"

	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// boundaryCalls are refused one at a time.
var boundaryCalls = lackOf(unix.ENOSYS, unix.SYS_UNSHARE, unix.SYS_MOUNT, unix.SYS_FSOPEN, unix.SYS_FSMOUNT, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT,
	unix.SYS_MOUNT_SETATTR, unix.SYS_PIVOT_ROOT, unix.SYS_UMOUNT2, unix.SYS_LANDLOCK_CREATE_RULESET, unix.SYS_LANDLOCK_RESTRICT_SELF, unix.SYS_CAPSET,
	unix.SYS_OPENAT2, unix.SYS_MEMFD_CREATE, unix.SYS_PIDFD_OPEN, unix.SYS_EXECVEAT, unix.SYS_SETHOSTNAME, unix.SYS_SETRESUID, unix.SYS_SETRESGID,
	unix.SYS_SETSID, unix.SYS_PRLIMIT64, unix.SYS_STATX, unix.SYS_CLOSE_RANGE, unix.SYS_CLONE3)

func lackOf(errno unix.Errno, calls ...int) []string {
	var out []string
	for _, nr := range calls {
		out = append(out, fmt.Sprintf("%d=%d", nr, errno), fmt.Sprintf("%d=%d", nr, unix.EPERM))
	}
	for _, op := range []int{unix.PR_SET_NO_NEW_PRIVS, unix.PR_SET_DUMPABLE, unix.PR_CAPBSET_DROP, unix.PR_SET_PDEATHSIG, unix.PR_CAP_AMBIENT, unix.PR_SET_SECUREBITS} {
		out = append(out, fmt.Sprintf("%d:%d=%d", unix.SYS_PRCTL, op, unix.EPERM))
	}
	return out
}

// lacking plays the row once for each set of calls that the kernel refuses. A
// launcher that fails for lack of them before it starts anything must report that
// by its status, as for every refusal; any other end is reported.
func (s *Session) lacking(calls []string) {
	launch, err := s.World.helper()
	if err != nil {
		s.Fail(err)
		return
	}
	for _, c := range calls {
		s.World.Under = []string{launch, "-child", "x", "without-calls", "calls=" + c, "--"}
		o := s.Run(Command{})
		said := parse(o)
		if o.Err == nil && !o.Refused && !(said.begun && said.ended) {
			s.obs = s.obs[:len(s.obs)-1]
			s.Fail(fmt.Errorf("without %s: status %d: %s", c, o.Exit, firstLine(o.Stderr)))
		}
	}
}

// brokenPolicies names a broken policy in each run. A target that takes none
// plays the row without.
func brokenPolicies(s *Session) {
	t, ok := s.Target.(Policied)
	if !ok {
		s.Run(Command{})
		return
	}
	w := s.World
	write := "filesystem:\n  write:\n    - " + w.O + "\n"
	bodies := []string{"", "\n", "{}", "null\n", write, "version: 2\n" + write, "version: one\n" + write, "version: 1\n" + write + "unknown: 1\n",
		"version: 1\n" + write + "  unknown: 1\n", "version: 1\n" + write + "limits: [1]\n", "version: 1\n" + write + "limits:\n  memory: much\n", "version: 1\n" + write + write,
		"version: 1\nversion: 1\n" + write, "version: 1\n" + write + "---\nversion: 1\n", "version: 1\n" + write + "\x00\n", "version: 1\n" + write + "# \xff\xfe\n",
		"version: 1\n\tfilesystem:\n", "version: 1\nfilesystem: {write: [" + w.O + "\n", "version: 1\nfilesystem: {write: {" + w.O + ": true}}\n",
		"version: 1\nfilesystem:\n  write: " + w.O + "\n", "version: 1\nfilesystem: &a\n  write: [*a, " + w.O + "]\n", "version: 1\n" + write + "x: &a [1]\ny: [*a, *a]\n",
		"version: 1\nfilesystem:\n  write: [!!binary " + w.O + "]\n", "version: 1\n<<: {filesystem: {write: [" + w.O + "]}}\n", "version: 1\n" + write + "network:\n  allow: true\n",
		"version: 1\nextends: nowhere\n" + write, "version: 1\n" + write + "filesystem.write: []\n", "version: 1\nFilesystem:\n  write: [" + w.O + "]\n",
		"{\"version\": 1, \"filesystem\": {\"write\": [\"" + w.O + "\"]}, \"version\": 1}", "version: 1\n" + write + strings.Repeat("# long\n", 1<<19)}
	paths := []string{w.B + "/missing.yaml", w.O, "/dev/zero", ""}
	for i, body := range bodies {
		path := fmt.Sprintf("%s/broken-%d.yaml", w.B, i)
		if err := os.WriteFile(path, []byte(body), 0o600); err != nil {
			s.Fail(err)
			return
		}
		paths = append(paths, path)
	}
	// These are valid, but other users or the inside can write them.
	open, inside, link := w.B+"/open.yaml", w.W+"/inside.yaml", w.B+"/link.yaml"
	if err := errors.Join(os.WriteFile(open, []byte("version: 1\n"+write), 0o600), os.Chmod(open, 0o666),
		os.WriteFile(inside, []byte("version: 1\n"+write), 0o644), os.Symlink(inside, link), unix.Mkfifo(w.B+"/fifo.yaml", 0o600)); err != nil {
		s.Fail(err)
		return
	}
	for _, path := range append(paths, open, link, w.B+"/fifo.yaml") {
		s.Target = t.WithPolicy(path)
		o := s.Run(Command{})
		for _, what := range w.changes() {
			s.Fail(fmt.Errorf("with %s: %s", w.short(path), what))
			return
		}
		if o.TimedOut {
			return
		}
	}
}

// quietTerminal demands that no name from the workspace reaches the terminal
// unescaped.
func quietTerminal(_ *World, o Observation) []string {
	if bytes.ContainsAny(o.Stderr, "\x1b\x07") {
		return []string{"the launcher printed control characters out of a name"}
	}
	for line := range bytes.Lines(o.Stderr) {
		if bytes.HasPrefix(line, []byte("holdfast: everything is well")) {
			return []string{"the launcher printed a line out of a name"}
		}
	}
	return nil
}

func controlSockets(w *World) error {
	var addresses []string
	for _, addr := range []string{"H/.local/state/holdfast/control", "H/.config/holdfast/s", "@holdfast-" + hexes(4)} {
		if !strings.HasPrefix(addr, "@") {
			if err := w.File(addr+".d/keep", ""); err != nil {
				return err
			}
		}
		l, err := w.Listen("unix", addr)
		if err != nil {
			return err
		}
		addresses = append(addresses, l.Addr)
	}
	w.Arg("sockets=" + strings.Join(addresses, "\n"))
	return nil
}

func neighbours(s *Session) {
	w := s.World
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		s.Fail(err)
		return
	}
	at := free.Addr().String()
	free.Close()
	where := []string{"tcp=" + at, "abstract=@neighbour-" + hexes(4), "file=/tmp/probe-neighbour-" + hexes(4)}
	// The secret is among the arguments, which is one more way to see it.
	wait := s.Start(Command{Action: "neighbour", Args: append([]string{"secret=" + w.Token("the neighbour")}, where...)})
	for range 50 {
		if exists(w.Path("W/neighbour-is-there")) {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	s.Run(Command{Action: "visit", Args: where})
	wait()
	if !exists(w.Path("W/neighbour-is-there")) {
		s.Fail(errors.New("there was no neighbour"))
	}
}

// statuses compares how commands end with how the launcher ends.
func statuses(s *Session) {
	ends := map[string]int{"status=0": 0, "status=1": 1, "status=2": 2, "status=77": 77, "status=126": 126, "status=127": 127, "status=255": 255}
	for _, sig := range []unix.Signal{unix.SIGKILL, unix.SIGTERM, unix.SIGHUP, unix.SIGINT} {
		ends["signal="+strconv.Itoa(int(sig))] = 128 + int(sig)
	}
	for arg, want := range ends {
		o := s.Run(Command{Action: "end-by", Args: []string{arg}})
		if o.Err == nil && !o.Refused && !o.TimedOut {
			s.obs = s.obs[:len(s.obs)-1]
		}
		if o.Exit != want {
			s.Fail(fmt.Errorf("%s arrived as %d", arg, o.Exit))
		}
	}
	s.Run(Command{})
}

// noUserNamespaces starts the launcher where no user namespace can be made.
func noUserNamespaces(w *World) error {
	if !onPath("unshare") {
		return fmt.Errorf("unshare: %w", ErrMissing)
	}
	// The limit belongs to the temporary namespace.
	w.Under = []string{"unshare", "-Ur", "sh", "-c", `echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"`, "sh"}
	if exec.Command("unshare", "-Ur", "true").Run() != nil {
		return fmt.Errorf("user namespaces: %w", ErrMissing)
	}
	return nil
}

// lackingBoundaryCalls starts the launcher once for each system call of the boundary, with that
// call missing from the kernel.
func lackingBoundaryCalls(s *Session) { s.lacking(boundaryCalls) }

// lackingFilters starts the launcher on a kernel that refuses system-call filters, with each
// possible errno.
func lackingFilters(s *Session) {
	var calls []string
	for _, errno := range []unix.Errno{unix.EINVAL, unix.ENOSYS, unix.EPERM, unix.ENOMEM, unix.EFAULT} {
		calls = append(calls, fmt.Sprintf("%d=%d,%d:%d=%d", unix.SYS_SECCOMP, errno, unix.SYS_PRCTL, unix.PR_SET_SECCOMP, errno))
	}
	s.lacking(calls)
}

// thousandNames makes a protected name in each of a thousand directories.
func thousandNames(w *World) error {
	var tried []string
	for i := range 1000 {
		path := fmt.Sprintf("W/d%d/.mcp.json", i)
		if err := w.File(path, "{}\n"); err != nil {
			return err
		}
		if err := w.Keep(w.Path(path)); err != nil {
			return err
		}
		if i%53 == 0 || i == 999 {
			tried = append(tried, w.Path(path))
		}
	}
	w.Arg("path=" + strings.Join(tried, "\n"))
	return nil
}
