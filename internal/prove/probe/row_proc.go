//go:build linux

package probe

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

const classProc = "fs.procfs-sysfs-dev"

func procRows() []Row {
	return append(append(procProcesses(), procKernel()...), procDevices()...)
}

const asRoot = "the kernel lets only root do this"

func procProcesses() []Row {
	return []Row{
		{ID: "PRC-001", Class: classProc, Core: true, Kind: Sandbox, Promise: "P4",
			Title: "the environment of the launcher stands in /proc/1/environ, or in that of any helper",
			Refs:  []string{"github.com/containers/bubblewrap/issues/725"},
			Setup: func(w *World) error {
				w.Env = append(w.Env, "CANARY_ENV="+w.Token("CANARY_ENV of the launcher"))
				return nil
			},
			Harmless: "an environment without a token in it may be read",
			Action:   "environs"},
		{ID: "PRC-001b", Class: classProc, Kind: Sandbox, Promise: "P4",
			Title:  "the command line, mappings and mounts of a process outside are read",
			Refs:   []string{"proc_pid_cmdline(5)"},
			Setup:  aimAtVictim,
			Accept: append([]string{"ESRCH"}, Denials...),
			Action: "foreign-commands"},
		{ID: "PRC-003", Class: classProc, Core: true, Kind: Sandbox, Promise: "P6",
			Title:  "a process outside is seen in /proc, read and signalled",
			Refs:   []string{"github.com/AxeForging/aigate"},
			Setup:  aimAtVictim,
			Accept: append([]string{"ESRCH"}, Denials...),
			Action: "aim"},
		{ID: "PRC-004", Class: classProc, Kind: Sandbox, Promise: "P2",
			Title:    "a private mapping of a file outside is written through /proc/self/mem",
			Refs:     []string{"CVE-2016-5195"},
			Options:  Options{Read: []string{"R"}},
			Harmless: "the process changes a copy of its own",
			Bare:     "the kernel copies the page whether or not there is a sandbox",
			Action:   "patch-own-mapping", Args: []string{"path=R/canary"}},
		{ID: "PRC-005", Class: classProc, Core: true, Kind: Sandbox, Promise: "P6",
			Title:  "the memory of the first process inside, or of any helper, is opened for writing",
			Refs:   []string{"github.com/openai/codex/pull/20001"},
			Accept: append([]string{"ESRCH"}, Denials...),
			Setup:  aimAtVictim,
			Action: "foreign-memory"},
		{ID: "PRC-005b", Class: classProc, Kind: Sandbox, Promise: "P1",
			Title:  "the root, working directory and descriptors of another process lead out",
			Refs:   []string{"proc_pid_root(5)", "CVE-2024-21626"},
			Setup:  aimAtVictim,
			Accept: append([]string{"ESRCH", "ENOTDIR"}, Denials...),
			Action: "foreign-roots"},
		{ID: "PRC-020", Class: classProc, Kind: Sandbox, Promise: "P2",
			Title:  "the program of the launcher is opened for writing through /proc/N/exe",
			Refs:   []string{"CVE-2019-5736"},
			Accept: append([]string{"ETXTBSY", "ESRCH"}, Denials...),
			Bare:   "the kernel refuses to open a running program for writing",
			Action: "foreign-programs"},
		{ID: "PRC-022", Class: classProc, Kind: Sandbox, Promise: "P6",
			Title:  "a fresh /proc is mounted in namespaces of one's own",
			Refs:   []string{"mount_too_revealing() in fs/namespace.c"},
			Setup:  aimAtVictim,
			Accept: append([]string{"EINVAL", "ENOSPC"}, Denials...),
			Action: "fresh-proc"},
	}
}

// aimAtVictim tells the action which process outside it is to go for.
func aimAtVictim(w *World) error {
	v, err := w.Victim()
	if err == nil {
		w.Arg(fmt.Sprintf("pid=%d", v.PID))
	}
	return err
}

func procKernel() []Row {
	return []Row{
		{ID: "PRC-007", Class: classProc, Core: true, Kind: Sandbox, Promise: "P7",
			Title: "settings of the kernel are written, with the value that they have",
			Refs:  []string{"CVE-2025-31133", "CVE-2025-52881"}, BareUser: asRoot,
			Action: "write-back", Args: []string{"path=/proc/sys/kernel/core_pattern\n/proc/sys/vm/overcommit_memory\n/proc/sys/kernel/modprobe\n" +
				"/proc/sys/kernel/hostname\n/proc/sys/kernel/randomize_va_space\n/proc/sys/fs/pipe-max-size"}},
		{ID: "PRC-008", Class: classProc, Kind: Sandbox, Promise: "P7",
			Title: "/proc/sysrq-trigger is opened for writing",
			Refs:  []string{"proc_sysrq-trigger(5)"}, BareUser: asRoot, Needs: []string{"sysrq"},
			Action: "open-for-writing", Args: []string{"path=/proc/sysrq-trigger"}},
		{ID: "PRC-009", Class: classProc, Kind: Sandbox, Promise: "P7",
			Title: "a handler for crashes is set, and a process crashes",
			Refs:  []string{"CVE-2025-31133", "core(5)"}, BareUser: asRoot,
			Oracle: sysctlChanged("/proc/sys/kernel/core_pattern"), Proof: true, Setup: rememberSysctl("/proc/sys/kernel/core_pattern"),
			Action: "crash", Args: []string{"path=/proc/sys/kernel/core_pattern"}},
		{ID: "PRC-010", Class: classProc, Kind: Sandbox, Promise: "P7",
			Title: "an interpreter for a kind of program is registered with the host",
			Refs:  []string{"binfmt_misc in the kernel's documentation"}, BareUser: asRoot, Needs: []string{"binfmt_misc"},
			Action: "open-for-writing", Args: []string{"path=/proc/sys/fs/binfmt_misc/register"}},
		{ID: "PRC-012", Class: classProc, Kind: Sandbox, Promise: "P7",
			Title: "a control group is changed, made or removed",
			Refs:  []string{"CVE-2022-0492"}, BareUser: asRoot,
			Action: "control-groups"},
		{ID: "PRC-012b", Class: classProc, Kind: Sandbox, Promise: "P7",
			Title: "files of /sys that start programs or change devices are opened for writing",
			Refs:  []string{"CVE-2022-0492", "uevent_helper in the kernel's documentation"}, BareUser: asRoot,
			Action: "open-for-writing", Args: []string{"path=/sys/kernel/uevent_helper\n/sys/kernel/mm/transparent_hugepage/enabled\n/sys/class/net/lo/mtu\n/sys/power/state\n/sys/kernel/debug\n/sys/kernel/security/lockdown\n/sys/fs/cgroup/cgroup.subtree_control"}},
		{ID: "PRC-013", Class: classProc, Kind: Sandbox, Promise: "P1",
			Title: "memory, addresses and log of the kernel are read",
			Refs:  []string{"github.com/google/capsem", "proc_kcore(5)"}, BareUser: asRoot,
			Accept: append([]string{"ENXIO", "EAGAIN"}, Denials...),
			Action: "kernel-memory"},
		{ID: "PRC-019", Class: classProc, Kind: Sandbox, Promise: "P4",
			Title: "sockets of the host are listed in /proc/net",
			Refs:  []string{"github.com/multikernel/sandlock"},
			Setup: func(w *World) error {
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
			},
			Action: "listed-sockets"},
	}
}

// rememberSysctl and sysctlChanged frame a setting that a row might change.
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

func procDevices() []Row {
	return []Row{
		{ID: "PRC-015", Class: classProc, Kind: Sandbox, Promise: "P7",
			Title: "a device node for the disk of the host is made in the workspace and opened",
			Refs:  []string{"github.com/AxeForging/aigate", "mknod(2)"}, BareUser: asRoot,
			Setup: func(w *World) error {
				var st unix.Stat_t
				if err := unix.Stat(w.B, &st); err != nil {
					return err
				}
				w.Arg(fmt.Sprintf("disk=%d", st.Dev))
				return nil
			},
			Oracle: devicesMade,
			Action: "device-nodes"},
		{ID: "PRC-017", Class: classProc, Kind: Sandbox, Promise: "P4",
			Title:  "shared memory of the host is read and written by name",
			Refs:   []string{"github.com/luckyPipewrench/pipelock/pull/267", "shm_overview(7)"},
			Setup:  sharedMemory,
			Action: "both"},
		{ID: "PRC-017b", Class: classProc, Kind: Sandbox, Promise: "P2",
			Title:    "what is made in /tmp, /var/tmp, /dev/shm and /run appears on the host",
			Refs:     []string{"shm_overview(7)", "hier(7)"},
			Setup:    sharedNames,
			Harmless: "these directories may be private ones",
			Accept:   append([]string{"ENOTDIR"}, Denials...),
			Action:   "create"},
		{ID: "PRC-017c", Class: classProc, Kind: Sandbox, Promise: "P1",
			Title:  "a file of the host in /tmp or /var/tmp is read and written",
			Refs:   []string{"hier(7)"},
			Setup:  sharedTemp,
			Action: "both"},
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

// plantAt plants a file of ours in directories of the host that everybody
// writes to.
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
