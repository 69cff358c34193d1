//go:build linux

package probe

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

const classMounts = "ns.mounts-namespaces"

func mountsRows() []Row {
	return append(append(mountsProtective(), mountsPrivilege()...), mountsHost()...)
}

// needsNamespaces are errors of a kernel that has not got, or does not give,
// what is asked for.
var needsNamespaces = append([]string{"EINVAL", "ENOSPC", "EUSERS"}, Denials...)

// mountsProtective try to get rid of the mounts that protect.
func mountsProtective() []Row {
	hooked := repo("W/.git", map[string]string{"W/.git/hooks/pre-commit": hook})
	keep := []string{"W/.git/hooks/pre-commit", "W/.git/config"}
	return []Row{
		{ID: "NSM-001", Class: classMounts, Core: true, Kind: Sandbox, Promise: "P3",
			Title: "a protective mount is detached, made writable, moved or covered",
			Refs:  []string{"npm @anthropic-ai/sandbox-runtime", "umount(2)", "mount_setattr(2)"},
			Files: hooked, Keep: keep, Accept: needsNamespaces,
			Action: "detach", Args: []string{"path=W/.git\nW/.git/hooks\nW/.git/config\nW/.git/hooks/pre-commit"}},
		{ID: "NSM-002", Class: classMounts, Core: true, Kind: Sandbox, Promise: "P3",
			Title: "the same in a user namespace of one's own, and pivot_root",
			Refs:  []string{"npm @anthropic-ai/sandbox-runtime", "user_namespaces(7)"},
			Files: hooked, Keep: keep, Accept: needsNamespaces,
			Action: "detach-nested", Args: []string{"path=W/.git\nW/.git/hooks"}},
		{ID: "NSM-003", Class: classMounts, Kind: Sandbox, Promise: "P3",
			Title: "a directory that was opened before reaches the names under a protective mount",
			Refs:  []string{"npm @anthropic-ai/sandbox-runtime", "openat(2)"},
			Files: hooked, Keep: keep, Absent: []string{"W/.git/hooks/planted"}, Accept: needsNamespaces,
			Action: "through-directory", Args: []string{"path=W/.git"}},
		{ID: "NSM-006", Class: classMounts, Kind: Sandbox, Promise: "P7",
			Title:  "a system call that mounts is answered by the kernel and not by the filter",
			Refs:   []string{"fsopen(2)", "move_mount(2)", "open_tree(2)", "mount_setattr(2)"},
			Action: "mount-calls"},
		{ID: "NSM-008", Class: classMounts, Kind: Sandbox, Promise: "P7",
			Title: "a mount made inside appears on the host",
			Refs:  []string{"mount_namespaces(7)"}, BareUser: asRoot,
			Setup:  func(w *World) error { return os.Mkdir(w.Path("W/m"), 0o755) },
			Oracle: func(w *World, _ Observation) []string { return mountsBelow(w.B) },
			Action: "mount-in-workspace"},
		{ID: "NSM-008b", Class: classMounts, Kind: Sandbox, Promise: "P2",
			Title: "a file system that is mounted read-only in the workspace becomes writable",
			Refs:  []string{"mount_setattr(2)"}, Needs: []string{"root"},
			Setup:  readOnlyMount,
			Accept: mutateDenials, RefusalHolds: true,
			Bare:   "root writes nothing to a read-only mount either",
			Action: "mutate", Args: []string{"path=W/ro/canary"}},
		{ID: "NSM-015", Class: classMounts, Core: true, Kind: Sandbox, Promise: "P1",
			Title: "a secret outside is opened by its file handle",
			Refs:  []string{"open_by_handle_at(2)", "LTP open_by_handle_at01"}, BareUser: asRoot,
			Setup: handleOfCanary, Accept: append([]string{"EOPNOTSUPP", "ESTALE"}, Denials...),
			Action: "open-handle"},
	}
}

// readOnlyMount puts R into the workspace, read-only. The world unmounts it.
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

// handleOfCanary tells the action the handle of a file that it cannot see.
func handleOfCanary(w *World) error {
	h, _, err := unix.NameToHandleAt(unix.AT_FDCWD, w.Path("O/canary"), 0)
	if err != nil {
		return fmt.Errorf("%w: file handles: %v", ErrMissing, err)
	}
	w.Arg(fmt.Sprintf("type=%d", h.Type()))
	w.Arg(fmt.Sprintf("handle=%x", h.Bytes()))
	return nil
}

// mountsPrivilege ask for namespaces and for what is the host's alone.
func mountsPrivilege() []Row {
	return []Row{
		{ID: "NSM-005", Class: classMounts, Core: true, Kind: Sandbox, Promise: "P7",
			Title: "the namespaces of another process are joined",
			Refs:  []string{"setns(2)", "LTP setns01"}, BareUser: asRoot,
			Setup: aimAtVictim, Accept: append([]string{"EINVAL", "ESRCH"}, Denials...),
			Action: "join"},
		{ID: "NSM-011", Class: classMounts, Kind: Sandbox, Promise: "P7",
			Title:  "a new namespace of each kind is made by unshare, clone or clone3",
			Refs:   []string{"github.com/luckyPipewrench/pipelock", "namespaces(7)"},
			Action: "new-namespaces"},
		{ID: "NSM-013", Class: classMounts, Kind: Sandbox, Promise: "P2",
			Title: "a sandbox started inside has a wider view",
			Refs:  []string{"github.com/openai/codex", "firejail-in-firejail.exp"},
			Needs: []string{"bwrap"}, Absent: []string{"O/x"},
			Action: "nested-sandbox"},
		{ID: "NSM-020", Class: classMounts, Kind: Sandbox, Promise: "P7",
			Title: "the clock of the host is set, to what it is",
			Refs:  []string{"firejail seccomp-clock.exp", "adjtimex(2)"}, BareUser: asRoot,
			Action: "set-clock"},
		{ID: "NSM-021", Class: classMounts, Kind: Sandbox, Promise: "P7",
			Title: "the name of the host is set, to what it is",
			Refs:  []string{"sethostname(2)"}, BareUser: asRoot,
			Oracle: hostnameChanged, Proof: true, Setup: rememberHostname,
			Action: "set-hostname"},
	}
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

// mountsHost try where, and under what, the launcher is started.
func mountsHost() []Row {
	return []Row{
		{ID: "NSM-014", Class: classMounts, Kind: Host, Promise: "P10",
			Title: "the launcher is started where it may make no namespaces, and runs on with less",
			Refs:  []string{"github.com/anthropics/claude-code/issues/17727"},
			Needs: []string{"bwrap"},
			Setup: func(w *World) error {
				w.Under = []string{"bwrap", "--dev-bind", "/", "/", "--unshare-user", "--disable-userns", "--"}
				return nil
			},
			RefusalHolds: true,
			Action:       "both", Args: []string{"path=O/canary\nH/.netrc"}},
		{ID: "NSM-017", Class: classMounts, Core: true, Kind: Host, Promise: "P1",
			Title:        "the launcher is started outside the workspace, with a directory left open",
			Refs:         []string{"CVE-2024-21626", "CVE-2025-59532"},
			Setup:        leakDirectory,
			RefusalHolds: true,
			Accept:       append([]string{"ENOTDIR"}, Denials...),
			Action:       "both", Args: []string{"path=canary\n./sub/canary\n../../canary\n../o/canary\n/proc/self/cwd/canary\n" +
				"/proc/self/fd/3/canary\n/proc/self/fd/4/canary\n/proc/self/fd/9/canary\n/proc/1/cwd/canary"},
			Drive: func(s *Session) {
				s.Run(Command{Dir: s.World.O})
				s.Run(Command{Dir: s.World.Path("O/sub")})
				s.Run(Command{Dir: "/proc/self/fd/" + fmt.Sprint(s.World.Files[0].Fd())})
			}},
		{ID: "NSM-018", Class: classMounts, Core: true, Kind: Host, Promise: "P2",
			Title:        "the directory that the command is started from becomes writable",
			Refs:         []string{"CVE-2025-59532"},
			Absent:       []string{"H/probe", "O/probe", "B/probe"},
			RefusalHolds: true,
			Harmless:     "the home inside may be a private one",
			Action:       "create", Args: []string{"path=probe\nH/probe\nO/probe\nB/probe"},
			Drive: func(s *Session) {
				for _, dir := range []string{s.World.H, s.World.O, s.World.B} {
					s.Run(Command{Dir: dir})
				}
				// The root of the host is not ours to write; the rest is.
				s.Run(Command{Dir: "/", Args: []string{"path=H/probe\nO/probe\nB/probe"}, Action: "create"})
			}},
	}
}

// leakDirectory hands a directory outside to the launcher.
func leakDirectory(w *World) error {
	d, err := os.Open(w.O)
	if err != nil {
		return err
	}
	w.Files = append(w.Files, d)
	w.Defer(d.Close)
	return nil
}
