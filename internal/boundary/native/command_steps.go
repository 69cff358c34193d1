//go:build linux

package native

import (
	"encoding/binary"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary"
)

// terminal makes the command's own terminal in the boundary's own devpts, puts its
// slave side on those standard descriptors that must be a terminal, and hands the
// master side out. Nothing of the user's terminal is ever inside.
func (b *builder) terminal() {
	b.call("new session", unix.SYS_SETSID, nil)
	if !b.facts.tty {
		return
	}
	msg, master := b.rights(b.words(msgMaster, 0, 0), 24)
	slave := b.slot()

	b.call("open ptmx", unix.SYS_OPENAT,
		[]any{unix.AT_FDCWD, b.str("/dev/pts/ptmx"), unix.O_RDWR | unix.O_NOCTTY | unix.O_CLOEXEC, 0}, into(master))
	b.call("unlock terminal", unix.SYS_IOCTL, []any{master, unix.TIOCSPTLCK, b.words(0)})
	size := make([]byte, 8)
	binary.LittleEndian.PutUint16(size, b.spec.Size.Rows)
	binary.LittleEndian.PutUint16(size[2:], b.spec.Size.Cols)
	b.call("set terminal size", unix.SYS_IOCTL, []any{master, unix.TIOCSWINSZ, b.bytes(size)})
	b.call("open terminal", unix.SYS_IOCTL, []any{master, unix.TIOCGPTPEER, unix.O_RDWR | unix.O_NOCTTY | unix.O_CLOEXEC}, into(slave))
	for fd, s := range []boundary.Stream{b.spec.In, b.spec.Out, b.spec.Err} {
		if s == boundary.Terminal {
			b.call("connect terminal", unix.SYS_DUP3, []any{slave, fd, 0})
		}
	}
	b.call("take terminal", unix.SYS_IOCTL, []any{slave, unix.TIOCSCTTY, 0})
	b.slave = slave
	b.call("hand out terminal", unix.SYS_SENDMSG, []any{fdControl, msg, 0})
	b.closeFD(master)
}

// dropPrivileges gives up every capability for good (capabilities(7)).
func (b *builder) dropPrivileges() {
	if !b.omit["capabilities"] {
		const noRoot = 1<<0 | 1<<1 | 1<<2 | 1<<3 | 1<<6 | 1<<7 // NOROOT, NO_SETUID_FIXUP, NO_CAP_AMBIENT_RAISE, each locked
		b.call("lock securebits", unix.SYS_PRCTL, []any{unix.PR_SET_SECUREBITS, noRoot, 0, 0, 0})
		for c := 0; c <= lastCapability(); c++ {
			b.call("drop capability from bounding set", unix.SYS_PRCTL, []any{unix.PR_CAPBSET_DROP, c, 0, 0, 0})
		}
		b.call("clear ambient capabilities", unix.SYS_PRCTL, []any{unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0})
		header := make([]byte, 8)
		binary.LittleEndian.PutUint32(header, unix.LINUX_CAPABILITY_VERSION_3)
		b.call("drop capabilities", unix.SYS_CAPSET, []any{b.bytes(header), b.words(0, 0, 0)})
	}
	if !b.omit["no-new-privs"] {
		b.call("no new privileges", unix.SYS_PRCTL, []any{unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0})
	}
	b.dieWithParent()
}

// restrict puts on the walls that can never be taken off: Landlock, then the
// system-call filter.
func (b *builder) restrict() {
	if b.facts.landlock > 0 {
		b.landlock()
	}
	if len(b.facts.filter) == 0 {
		return
	}
	program := b.filterProgram()
	if b.facts.level != levelNone {
		b.watched(program)
		return
	}
	// A positive answer with TSYNC is the id of a thread that has no
	// filter (seccomp(2)); only 0 is success.
	b.call("install filter", unix.SYS_SECCOMP,
		[]any{unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, program}, want(0))
}

// filterProgram stores the filter as a struct sock_fprog and returns its address.
func (b *builder) filterProgram() uint64 {
	return b.words(uint64(len(b.facts.filter)/unix.SizeofSockFilter), b.bytes(b.facts.filter))
}

// supervise is the rest of the first process inside: it starts the command,
// reaps everything, and reports how the command stops and ends.
func (b *builder) supervise(command *label) {
	b.cmdPID = b.slot()
	portal := &label{}

	// Not dumpable: its memory and descriptors are closed to what runs beside it.
	b.call("hide first process", unix.SYS_PRCTL, []any{unix.PR_SET_DUMPABLE, 0, 0, 0, 0})
	if slices.ContainsFunc(b.facts.cgroups, func(g group) bool { return g.v2 }) {
		b.message("ask for the control groups", msgLimited)
		b.await("wait for the control groups")
	}
	b.clone("clone command", 0, b.cmdPID, command)
	if b.facts.tty {
		// In a process group of its own below a session leader, the command
		// can be stopped: an orphaned group ignores SIGTSTP.
		b.call("set process group of command", unix.SYS_SETPGID, []any{b.cmdPID, b.cmdPID}, ignored())
		// The terminal may be closed as soon as the command runs (hung_up_tty_ioctl in
		// drivers/tty/tty_io.c).
		b.call("bring command to foreground", unix.SYS_IOCTL, []any{b.slave, unix.TIOCSPGRP, uint64(b.cmdPID)}, or(-int64(unix.ENOTTY)))
	}
	if len(b.spec.Plan.Publish) > 0 {
		b.clone("clone portal", 0, b.slot(), portal)
	}
	b.call("close standard descriptors", unix.SYS_CLOSE_RANGE, []any{0, 2, 0})
	b.call("close the rest", unix.SYS_CLOSE_RANGE, []any{fdControl + 1, 1<<32 - 1, 0})
	b.leave(b.reap)
	b.placeLabel(portal)
	if len(b.spec.Plan.Publish) > 0 {
		b.call("close standard descriptors", unix.SYS_CLOSE_RANGE, []any{0, fdControl, 0})
		b.call("close the rest", unix.SYS_CLOSE_RANGE, []any{fdPortal + 1, 1<<32 - 1, 0})
		b.leave(b.portal)
	}
}

// reap waits for everything that ends inside, and reports what becomes of the
// command, which is the second process of the pid namespace.
func (b *builder) reap() {
	status, who := b.slot(), b.slot()
	loop, report, end := &label{}, &label{}, &label{}
	b.placeLabel(loop)
	b.call("wait", unix.SYS_WAIT4, []any{-1, uint64(status), unix.WUNTRACED | unix.WALL, 0}, into(who), goOn(-int64(unix.ECHILD), end))
	b.test("the command?", who, 2, report)
	b.goTo(loop)
	b.placeLabel(report)
	b.message("report status", msgStatus, b.copyField(status, 1))
	b.goTo(loop)
	b.placeLabel(end)
	b.exit(0)
}

// portal hands out sockets of the inner network, one a request, so that the
// supervisor can reach published services without entering the namespaces.
func (b *builder) portal() {
	loop, end := &label{}, &label{}
	buf := b.words(0)
	msg, sock := b.rights(buf, 8)

	b.placeLabel(loop)
	b.call("wait for a request", unix.SYS_READ, []any{fdPortal, buf, 8}, goIfZero(end))
	b.call("inner socket", unix.SYS_SOCKET, []any{b.facts.portal, unix.SOCK_STREAM | unix.SOCK_CLOEXEC, 0}, into(sock))
	b.call("hand out socket", unix.SYS_SENDMSG, []any{fdPortal, msg, 0})
	b.closeFD(sock)
	b.goTo(loop)
	b.placeLabel(end)
	b.exit(0)
}

// command turns the last process into the command: limits, descriptors, a few
// attempts that must be refused, a report to the supervisor, execve.
func (b *builder) command() {
	b.call("be dumpable", unix.SYS_PRCTL, []any{unix.PR_SET_DUMPABLE, 1, 0, 0, 0})
	b.call("own process group", unix.SYS_SETPGID, []any{0, 0}, ignored())
	b.call("reset name", unix.SYS_PRCTL, []any{unix.PR_SET_NAME, b.str("holdfast-cmd"), 0, 0, 0}, ignored())
	for _, l := range b.facts.rlimits {
		b.call("limit", unix.SYS_PRLIMIT64, []any{0, l.resource, b.words(l.value, l.value), 0})
	}
	b.call("chdir to "+b.spec.Plan.Dir, unix.SYS_CHDIR, []any{b.str(b.spec.Plan.Dir)})
	if !b.omit["descriptors"] {
		b.call("close descriptors", unix.SYS_CLOSE_RANGE, []any{fdControl + 1, 1<<32 - 1, 0})
	}
	b.call("close control on exec", unix.SYS_FCNTL, []any{fdControl, unix.F_SETFD, unix.FD_CLOEXEC})
	b.attempts()
	b.message("report ready", msgReady)
	b.await("wait for the supervisor")
	b.execute()
}

// attempts are real probes from the inside, in the very process that becomes
// the command: each must be refused or the command is never executed.
func (b *builder) attempts() {
	if b.omit["attempts"] {
		return
	}
	fd := []any{unix.AT_FDCWD}
	if len(b.facts.filter) > 0 {
		b.call("attempt: new user namespace", unix.SYS_UNSHARE, []any{unix.CLONE_NEWUSER}, refused())
		b.call("attempt: AF_VSOCK socket", unix.SYS_SOCKET, []any{unix.AF_VSOCK, unix.SOCK_STREAM, 0}, refused())
		b.call("attempt: io_uring", unix.SYS_IO_URING_SETUP, []any{1, 0}, refused())
		b.call("attempt: keyring", unix.SYS_KEYCTL, []any{0, -3, 0}, refused())
	}
	b.call("attempt: mount", unix.SYS_MOUNT, []any{b.str("none"), b.str("/tmp"), b.str("tmpfs"), 0, 0}, refused())
	b.call("attempt: create in /", unix.SYS_MKDIRAT, append(fd, b.str("/attempt"), 0o755), refused())
	b.call("attempt: write to /usr", unix.SYS_MKDIRAT, append(fd, b.str("/usr/attempt"), 0o755), refused())
	b.call("attempt: memory of first process", unix.SYS_OPENAT, append(fd, b.str("/proc/1/mem"), unix.O_RDWR, 0), refused())
	b.call("attempt: kernel settings", unix.SYS_OPENAT, append(fd, b.str("/proc/sys/kernel/core_pattern"), unix.O_WRONLY, 0), refused())
}

// execute looks the command up as execvp(3) does, but in the view and with one
// execve a candidate: nothing is looked up outside and nothing is checked
// before it is used. The outcomes are reported when none worked.
func (b *builder) execute() {
	argv, envp := b.strings(b.spec.Argv), b.strings(b.facts.environ)
	results := []ref{}
	for _, path := range candidates(b.spec.Argv[0], b.facts.environ) {
		r := b.slot()
		b.call("execute "+path, unix.SYS_EXECVE, []any{b.str(path), argv, envp}, into(r), ignored())
		results = append(results, r)
	}
	denied, send := &label{}, &label{}
	for _, r := range results {
		for _, errno := range []unix.Errno{unix.EACCES, unix.ENOEXEC, unix.EPERM, unix.E2BIG, unix.ELIBBAD} {
			b.test("outcome", r, -int64(errno), denied)
		}
	}
	b.goTo(send)
	b.placeLabel(denied)
	b.message("report not executable", msgNoExec, func(addr uint64) {
		b.call("mark not executable", noCall, []any{1}, into(ref(addr+8)), ignored())
	})
	b.exit(126)
	b.placeLabel(send)
	b.message("report not found", msgNoExec)
	b.exit(127)
}

// candidates are the paths that a name may mean, in order.
func candidates(name string, environ []string) []string {
	if name == "" {
		return nil
	}
	if strings.Contains(name, "/") {
		return []string{name}
	}
	var out []string
	for _, kv := range environ {
		if list, ok := strings.CutPrefix(kv, "PATH="); ok {
			for _, dir := range filepath.SplitList(list) {
				if filepath.IsAbs(dir) {
					out = append(out, filepath.Join(dir, name))
				}
			}
		}
	}
	return out
}
