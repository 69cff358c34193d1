//go:build linux

package probe

import "sync"

var procTraces = sync.OnceValue(func() map[string]Trace {
	return map[string]Trace{
		"PRC-001":  nothing(procRead),
		"PRC-001b": nothing(procRead),
		"PRC-003":  nothing(noSuchProcess),
		"PRC-004":  trail(did("file.write", "/proc/self/mem")),
		"PRC-005":  trail(did("file.write", "/proc/1/mem"), refused("filter", "sys.call", "process_vm_readv"), raised("process-memory", "memory-access")),
		"PRC-005b": nothing(procRead),
		"PRC-007": trail(
			refused("readonly", "file.write", "/proc/sys/kernel/core_pattern", "/proc/sys/vm/overcommit_memory", "/proc/sys/kernel/hostname", "/proc/sys/kernel/randomize_va_space", "/proc/sys/fs/pipe-max-size"),
			raised("kernel-callback"),
		),
		"PRC-008": trail(did("file.write", "/proc/sysrq-trigger"), raised("kernel-callback")),
		"PRC-009": trail(refused("readonly", "file.write", "/proc/sys/kernel/core_pattern"), raised("kernel-callback")),
		"PRC-010": trail(did("file.write", "/proc/sys/fs/binfmt_misc/register"), raised("kernel-callback")),
		"PRC-012": trail(
			refused("view", "file.write", "/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/cgroup.subtree_control", "/sys/fs/cgroup/release_agent", "/sys/fs/cgroup/notify_on_release", "/sys/fs/cgroup/devices/devices.allow"),
			raised("kernel-callback"),
		),
		"PRC-012b": trail(
			refused("view", "file.write", "/sys/kernel/uevent_helper", "/sys/kernel/mm/transparent_hugepage/enabled", "/sys/power/state", "/sys/kernel/debug"),
			raised("kernel-callback"),
		),
		"PRC-013":  trail(refused("view", "file.lookup", "/dev/kmsg", "/dev/mem", "/dev/port", "/dev/kmem")),
		"PRC-015":  trail(refused("filter", "file.mknod", "W/device-disk", "W/device-null", "W/device-mem", "W/device-kmsg"), raised("device-node")),
		"PRC-017":  trail(did("file.write", "/dev/shm/probe-*")),
		"PRC-017b": trail(did("file.write", "/tmp/probe-*", "/var/tmp/probe-*", "/dev/shm/probe-*", "/run/probe-*")),
		"PRC-017c": trail(did("file.write", "/tmp/probe-*", "/var/tmp/probe-*")),
		"PRC-019":  nothing(procRead),
		"PRC-020":  trail(did("file.write", "/proc/1/exe")),
		"PRC-022":  trail(refused("filter", "sys.call", "clone", "mount"), raised("namespace", "mount")),
	}
})

var mountTraces = sync.OnceValue(func() map[string]Trace {
	return map[string]Trace{
		"NSM-001": trail(
			refused("filter", "sys.call", "umount2", "mount", "mount_setattr", "open_tree"),
			refused("protected", "file.rename", "W/.git", "W/.git/hooks"),
			refused("protected", "file.write", "W/.git/config", "W/.git/hooks/pre-commit"),
			raised("mount", "repository-removed", "hook-denied"),
		),
		"NSM-002": trail(
			refused("filter", "sys.call", "unshare", "clone"),
			refused("protected", "file.write", "W/.git/hooks/pre-commit"),
			raised("namespace", "hook-denied"),
		),
		"NSM-003": trail(
			refused("protected", "file.write", "hooks/planted"),
			refused("filter", "sys.call", "unshare"),
			refused("protected", "file.rename", "W/to-plant"),
			raised("hook-denied", "namespace"),
		),
		"NSM-005":  trail(refused("filter", "sys.call", "setns"), raised("namespace")),
		"NSM-006":  trail(refused("filter", "sys.call", "mount", "umount2", "pivot_root", "chroot", "open_tree"), raised("mount", "kernel-load")),
		"NSM-008":  trail(refused("filter", "sys.call", "mount", "fsopen"), raised("mount")),
		"NSM-008b": trail(mutated("readonly", "W/ro/canary")),
		"NSM-011":  trail(refused("filter", "sys.call", "unshare", "clone"), raised("namespace")),
		"NSM-013":  trail(refused("filter", "sys.call", "clone"), raised("namespace")),
		"NSM-014":  nothing(declined),
		"NSM-015":  trail(refused("filter", "sys.call", "open_by_handle_at", "name_to_handle_at"), raised("handle")),
		"NSM-017":  trail(refused("view", "file.write", "../o/canary"), raised("alias")),
		"NSM-018":  trail(refused("view", "file.mkdir", "O"), refused("view", "file.write", "B/probe")),
		"NSM-020":  trail(refused("filter", "sys.call", "adjtimex", "clock_settime", "settimeofday"), raised("host-admin")),
		"NSM-021":  trail(refused("filter", "sys.call", "sethostname", "setdomainname"), raised("host-admin")),
	}
})

var handleTraces = sync.OnceValue(func() map[string]Trace {
	return map[string]Trace{
		"FDS-001":  nothing(noDescriptor),
		"FDS-001b": nothing(noDescriptor),
		"FDS-001c": nothing(noDescriptor),
		"FDS-001d": nothing(noDescriptor),
		"FDS-002":  nothing(noDescriptor),
		"FDS-002b": nothing(noDescriptor),
		"FDS-002c": nothing("what stands at standard input is a pipe or /dev/null: programs read theirs all the time"),
		"FDS-003":  trail(refused("view", "file.lookup", "O", "../o/canary"), raised("credential-denied", "alias")),
		"FDS-003b": trail(refused("view", "file.lookup", "../o/canary", "canary"), raised("alias")),
		"FDS-004":  trail(refused("view", "file.truncate", "O/canary"), refused("view", "file.lookup", "../o/canary")),
		"FDS-006":  trail(refused("view", "sock.connect", "unix:O/give.sock")),
		"FDS-006b": trail(did("sock.connect", "unix:@probe-*")),
		"FDS-009":  nothing(noDescriptor),
		"FDS-010":  trail(refused("view", "proc.exec", "O/tool"), raised("loader-exec")),
		"FDS-010b": trail(
			refused("view", "file.write", "O/canary"),
			refused("view", "file.lookup", "H/.ssh/id_probe"),
			raised("memory-exec", "credential-denied"),
		),
		"FDS-011":  trail(did("file.write", "/proc/self/fd/0")),
		"FDS-011b": trail(did("file.write", "/proc/self/fd/2")),
	}
})

var raceTraces = sync.OnceValue(func() map[string]Trace {
	return map[string]Trace{
		"RAC-001":  trail(refused("view", "file.write", "W/x/canary")),
		"RAC-001b": trail(refused("view", "file.write", "W/x/canary")),
		"RAC-002":  trail(refused("view", "file.write", "W/x/canary")),
		"RAC-002b": trail(refused("protected", "file.rename", "W/sub/.git")),
		"RAC-005": trail(
			quarantined("W/.claude", "W/.codex", "W/holdfast.yaml"),
			refused("view", "file.write", "O/canary", "O/sub/canary"),
			byStat(refused("view", "file.lookup", "H/.holdfast", "H/.config/holdfast", "H/.claude")),
		),
		"RAC-006":  trail(did("sock.connect", "127.0.0.1:*")),
		"RAC-007":  trail(did("file.write", "W/alive")),
		"RAC-007b": trail(did("file.write", "W/alive")),
		"RAC-007c": trail(did("file.write", "W/alive")),
		"RAC-007d": trail(did("file.write", "W/alive")),
		"RAC-008":  trail(refused("view", "file.write", "O/canary")),
		"RAC-008b": trail(did("file.write", "W/alive")),
		"RAC-009": trail(
			refused("view", "file.write", "W/.git/canary", "O/canary", "O/sub/canary"),
			refused("protected", "file.rename", "W/.git"),
			raised("repository-removed"),
		),
	}
})

var terminalTraces = sync.OnceValue(func() map[string]Trace {
	return map[string]Trace{
		"TTY-001":  trail(refused("filter", "sys.call", "ioctl"), raised("terminal-input")),
		"TTY-001b": nothing("whose terminal it is the kernel knows alone (ioctl_tty(2), TIOCSCTTY): a shell asks for its own in the same words"),
		"TTY-002":  trail(refused("filter", "sys.call", "ioctl"), raised("terminal-input")),
		"TTY-002b": trail(refused("filter", "sys.call", "*foreign", "*x32"), raised("foreign-call")),
		"TTY-003":  trail(refused("filter", "sys.call", "ioctl"), raised("terminal-input")),
		"TTY-003b": trail(refused("filter", "sys.call", "ioctl"), raised("terminal-input")),
		"TTY-004":  nothing("the terminal is one of the view's own, and programs change its modes all the time"),
		"TTY-005":  nothing(honest),
		"TTY-006":  nothing(output),
		"TTY-007":  nothing(output),
	}
})

var processTraces = sync.OnceValue(func() map[string]Trace {
	return map[string]Trace{
		"PRO-001":  nothing(noSuchProcess),
		"PRO-001b": nothing(honest),
		"PRO-003":  trail(refused("filter", "sys.call", "kcmp", "move_pages"), raised("memory-access")),
		"PRO-004":  trail(refused("filter", "sys.call", "ptrace"), raised("trace")),
		"PRO-006":  trail(refused("filter", "sys.call", "process_vm_readv", "process_vm_writev"), raised("memory-access")),
		"PRO-007":  trail(did("sock.connect", "unix:@probe-sibling-*")),
		"PRO-009":  trail(refused("filter", "sys.call", "perf_event_open"), raised("kernel-surface")),
		"PRO-011":  byStat(refused("view", "file.lookup", "O")),
		"PRO-013":  trail(refused("view", "file.lookup", "O/canary-that-is-not-there")),
		"PRO-014":  trail(did("file.write", "W/bin/launcher")),
	}
})

var syscallTraces = sync.OnceValue(func() map[string]Trace {
	return map[string]Trace{
		"SYS-001":  trail(refused("filter", "sys.call", "io_uring_setup", "io_uring_enter", "io_uring_register")),
		"SYS-001b": trail(refused("filter", "sys.call", "io_uring_setup")),
		"SYS-002":  trail(refused("filter", "sys.call", "bpf"), raised("kernel-surface")),
		"SYS-004":  trail(refused("filter", "sys.call", "keyctl", "add_key", "request_key"), raised("kernel-surface")),
		"SYS-005":  trail(refused("filter", "sys.call", "init_module", "finit_module", "delete_module"), raised("kernel-load")),
		"SYS-005b": trail(refused("filter", "sys.call", "kexec_load", "reboot", "swapon", "swapoff", "acct"), raised("kernel-load")),
		"SYS-007":  trail(refused("filter", "sys.call", "iopl", "ioperm", "modify_ldt"), raised("kernel-load", "kernel-surface")),
		"SYS-008":  trail(refused("filter", "sys.call", "personality")),
		"SYS-010": trail(
			refused("filter", "sys.call", "ptrace", "process_vm_readv", "process_vm_writev", "pidfd_getfd", "process_madvise"),
			raised("trace", "memory-access"),
		),
		"SYS-010b": trail(
			refused("filter", "sys.call", "userfaultfd", "perf_event_open", "memfd_secret", "lookup_dcookie", "vmsplice"),
			raised("kernel-surface"),
		),
		"SYS-012":  trail(refused("filter", "sys.call", "name_to_handle_at", "open_by_handle_at"), raised("handle")),
		"SYS-012b": trail(refused("filter", "sys.call", "unshare", "setns", "mount", "umount2", "pivot_root"), raised("namespace", "mount")),
		"SYS-014":  trail(refused("filter", "sys.call", "*foreign"), raised("foreign-call")),
		"SYS-014b": trail(refused("filter", "sys.call", "*foreign"), raised("foreign-call")),
		"SYS-016":  trail(refused("filter", "sys.call", "*x32"), raised("foreign-call")),
		"SYS-017": trail(
			refused("filter", "sys.call", "socket", "personality", "clone", "bpf", "keyctl"),
			raised("namespace", "kernel-surface", "terminal-input"),
		),
		"SYS-017b": trail(
			refused("filter", "sys.call", "io_uring_setup", "io_uring_enter", "io_uring_register", "bpf", "keyctl"),
			raised("kernel-surface", "kernel-load", "trace", "memory-access", "handle", "namespace", "mount"),
		),
		"SYS-018":  nothing(honest),
		"SYS-020":  trail(refused("filter", "sys.call", "socket"), raised("socket-past-network")),
		"SYS-020b": trail(refused("filter", "sys.call", "socket"), raised("socket-past-network")),
		"SYS-022":  trail(refused("filter", "sys.call", "socket"), raised("socket-kind")),
		"SYS-023":  trail(refused("filter", "sys.call", "socket"), raised("socket-past-network")),
		"SYS-023b": trail(refused("filter", "sys.call", "socket"), raised("socket-past-network")),
		"SYS-023c": trail(refused("filter", "sys.call", "socket"), raised("socket-kind")),
		"SYS-023d": trail(refused("filter", "sys.call", "socketpair")),
		"SYS-024":  trail(refused("filter", "sys.call", "socket"), raised("socket-past-network")),
		"SYS-026":  nothing(ownState),
		"SYS-027":  nothing(ownState),
	}
})

var privilegeTraces = sync.OnceValue(func() map[string]Trace {
	return map[string]Trace{
		"PRV-001":  trail(did("proc.exec", "W/helper", "R/helper")),
		"PRV-001b": trail(did("proc.exec", "R/helper")),
		"PRV-002":  trail(refused("view", "file.lookup", "/etc/pam.d*")),
		"PRV-003": trail(
			refused("filter", "file.chmod", "W/set-id-1", "W/set-id-2", "W/set-id-3", "W/set-id-4", "W/set-id-5"),
			refused("filter", "file.write", "W/set-id-9-new", "W"),
			refused("filter", "file.mknod", "W/set-id-12-node"),
			refused("filter", "sys.call", "*foreign"),
			raised("set-id", "file-capability", "foreign-call"),
		),
		"PRV-004": trail(refused("filter", "sys.call", "setgroups")),
		"PRV-005": trail(
			refused("readonly", "file.write", "R/of-root"),
			refused("view", "file.write", "O/of-root"),
			refused("view", "file.lookup", "/etc/shadow", "/root/.ssh"),
			raised("system-secret", "credential-denied"),
		),
		"PRV-005b": nothing(honest),
		"PRV-006":  nothing(readOnly),
		"PRV-008": trail(
			refused("readonly", "file.write", "/etc/profile", "/etc/passwd"),
			refused("view", "file.write", "/etc/ld.so.preload", "/etc"),
			raised("startup-denied"),
		),
	}
})
