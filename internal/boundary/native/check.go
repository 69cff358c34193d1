//go:build linux

package native

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/boundary"
	"holdfast.dev/holdfast/internal/policy"
)

// Check tries each guarantee by doing what a launch does; see boundary.Backend.
func (b *Backend) Check(ctx context.Context) []boundary.Finding {
	tests := []struct {
		guarantee policy.Guarantee
		try       func(context.Context) (string, error)
	}{
		{policy.Namespaces, tryNamespaces},
		{policy.PrivateProc, tryPrivateProc},
		{policy.Landlock, tryLandlock},
		{policy.Scopes, tryScopes},
		{policy.Seccomp, trySeccomp},
		{policy.Recording, tryRecording},
		{policy.TaskID, tryTaskID},
		{policy.CopyLayers, tryCopyLayers},
		{policy.Interception, tryInterception},
		{policy.MemoryLimit, tryMemoryLimit},
		{policy.ProcessLimit, tryProcessLimit},
	}
	out := make([]boundary.Finding, 0, len(tests))
	for _, t := range tests {
		detail, err := t.try(ctx)
		f := boundary.Finding{Guarantee: t.guarantee, Kept: err == nil, Detail: detail}
		if err != nil {
			f.Detail, f.Mend = err.Error(), cmp.Or(boundary.Exhausted(err), mend(t.guarantee, err.Error()))
		}
		out = append(out, f)
	}
	return out
}

// trial runs a small launch program and returns the step that failed as an error.
func trial(build func(b *builder)) error {
	b := &builder{}
	b.begin()
	b.facts.uid, b.facts.gid = os.Getuid(), os.Getgid()
	build(b)
	b.exit(0)
	control, theirs, err := seqpacket()
	if err != nil {
		return err
	}
	defer control.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		theirs.Close()
		return err
	}
	defer null.Close()
	proc, err := b.start([]*os.File{null, null, null, theirs}, nil)
	theirs.Close()
	if err != nil {
		return err
	}
	m, rerr := receive(control)
	for ; rerr == nil && (m.kind == msgDoor || m.kind == msgWatch); m, rerr = receive(control) {
		if m.file != nil {
			m.file.Close()
		}
	}
	if _, err := proc.Wait(); err != nil {
		return err
	}
	if rerr == nil && m.kind == msgFailed {
		return b.failure(m)
	}
	if rerr != nil && !errors.Is(rerr, io.EOF) {
		return rerr
	}
	return nil
}

// inNamespaces appends the steps that every launch begins with, then more, in a
// child whose end is waited for.
func (b *builder) inNamespaces(more func()) {
	pid, inside, out := b.slot(), &label{}, &label{}
	b.clone("clone into new namespaces", cloneNamespaces, pid, inside)
	b.call("wait", unix.SYS_WAIT4, []any{pid, 0, unix.WALL, 0}, ignored())
	b.goTo(out)
	b.placeLabel(inside)
	b.mapIDs()
	b.call("make mounts private", unix.SYS_MOUNT, []any{0, b.str("/"), 0, unix.MS_REC | unix.MS_PRIVATE, 0})
	more()
	b.exit(0)
	b.placeLabel(out)
}

func tryNamespaces(context.Context) (string, error) {
	err := trial(func(b *builder) {
		b.inNamespaces(func() {
			b.loopback()
			root := b.slot()
			b.filesystem("root", "tmpfs", nil, 0, root)
			b.attach("attach root", root, "/tmp")
		})
	})
	return "made user, mount, pid, net, ipc, uts and cgroup namespaces, mounted a file system, brought up loopback", err
}

// privateProc says why a new /proc cannot be mounted, or nil.
func privateProc() error {
	return trial(func(b *builder) {
		b.inNamespaces(func() {
			b.filesystem("proc", "proc", [][2]string{{"hidepid", "invisible"}}, unix.MOUNT_ATTR_NOSUID, b.slot())
		})
	})
}

func tryPrivateProc(context.Context) (string, error) {
	return "mounted a /proc that shows only its own processes", privateProc()
}

func tryLandlock(context.Context) (string, error) {
	abi := landlockABI()
	if abi == 0 {
		return "", errors.New("landlock_create_ruleset fails: not built in, or not in the lsm= list at boot")
	}
	err := trial(func(b *builder) {
		b.facts.landlock = abi
		b.call("no new privileges", unix.SYS_PRCTL, []any{unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0})
		b.landlock()
		b.call("attempt: list / against the rules", unix.SYS_OPENAT,
			[]any{unix.AT_FDCWD, b.str("/"), unix.O_RDONLY | unix.O_DIRECTORY, 0})
		b.call("attempt: write against the rules", unix.SYS_OPENAT,
			[]any{unix.AT_FDCWD, b.str("/tmp"), unix.O_WRONLY | unix.O_TMPFILE, 0o600}, refused())
	})
	return fmt.Sprintf("ABI %d: restricted a process, and a write outside the rules was refused", abi), err
}

func tryScopes(context.Context) (string, error) {
	if abi := landlockABI(); abi < 6 {
		return "", fmt.Errorf("the kernel has Landlock ABI %d; scopes came with ABI 6 (kernel 6.12)", abi)
	}
	return "abstract sockets and signals can be scoped", nil
}

func trySeccomp(context.Context) (string, error) {
	program, err := (&launch{}).buildFilter(levelNone)
	if err != nil {
		return "", err
	}
	err = trial(func(b *builder) {
		b.facts.filter = program
		b.call("no new privileges", unix.SYS_PRCTL, []any{unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0})
		b.restrict()
		b.call("attempt: new user namespace", unix.SYS_UNSHARE, []any{unix.CLONE_NEWUSER}, refused())
	})
	return fmt.Sprintf("installed the filter of %d instructions, and a call that it refuses was refused", len(program)/unix.SizeofSockFilter), err
}

func tryRecording(context.Context) (string, error) {
	trips := canTrip()
	level := levelOf(&boundary.Observation{Level: policy.RecordStandard}, trips)
	program, err := (&launch{}).buildFilter(level)
	if err != nil {
		return "", err
	}
	err = trial(func(b *builder) {
		b.facts.filter, b.facts.level = program, level
		b.call("no new privileges", unix.SYS_PRCTL, []any{unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0})
		b.listener(b.filterProgram())
	})
	if trips {
		return "installed a filter that reports system calls to this process, and opened " + fuseDevice + " to see look-ups outside the view", err
	}
	return "installed a filter that reports system calls to this process, opens for reading too, because " + fuseDevice + " cannot be opened: " +
		"stat(2) and its like are not seen, and what opens files and little else (grep -r) takes about three times the processor time, other work up to two thirds more", err
}

func tryTaskID(context.Context) (string, error) {
	if !realRoot() {
		return "not root: the command keeps the user's own id, which owns nothing else in view", nil
	}
	dir, err := os.MkdirTemp("", "holdfast-check-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	id := taskID()
	ns, err := idmapNamespace(dir, policy.FileID{}, id)
	if err != nil {
		return "", err
	}
	defer ns.Close()
	tree, err := idmappedTree(dir, policy.FileID{}, ns, 0)
	if err != nil {
		return "", err
	}
	return "mounted a directory with its owner mapped to a fresh id", tree.Close()
}

// tryInterception makes the doors of each rung and says which work.
func tryInterception(context.Context) (string, error) {
	var works, fails []string
	for _, rung := range boundary.Rungs {
		if err := tryRung(rung); err != nil {
			fails = append(fails, fmt.Sprintf("%s: %v", rung, err))
		} else {
			works = append(works, string(rung))
		}
	}
	if len(works) == 0 {
		return "", errors.New(strings.Join(fails, "; "))
	}
	text := "the inner network hands out every connection by " + works[0]
	if len(works) > 1 {
		text += "; these would work too: " + strings.Join(works[1:], ", ")
	}
	if len(fails) > 0 {
		text += "; these do not work: " + strings.Join(fails, ", ")
	}
	return text, nil
}

func tryRung(rung boundary.Rung) error {
	return trial(func(b *builder) {
		b.facts.rung, b.facts.ipv6 = rung, hasIPv6()
		b.spec.Network = &boundary.Network{Intercept: true}
		b.inNamespaces(func() {
			if rung == boundary.Tun {
				b.tun()
			}
			b.loopback()
			b.network()
		})
	})
}

func tryCopyLayers(context.Context) (string, error) {
	err := trial(func(b *builder) {
		b.inNamespaces(func() {
			root := b.slot()
			b.filesystem("root", "tmpfs", nil, 0, root)
			b.attach("attach root", root, "/tmp")
			for _, d := range []string{"/tmp/lower", "/tmp/upper", "/tmp/work"} {
				b.mkdirOne(d, 0o700)
			}
			b.overlay("layers", "/tmp/lower", "/tmp/upper", "/tmp/work", 0)
		})
	})
	detail := "laid a writable layer over a directory"
	if verr := tryView(); verr == nil {
		detail += ", in memory and on disk, as mode review does with the workspace"
	} else {
		detail += fmt.Sprintf(" in memory, but not on disk (%v): in mode review the workspace is copied", verr)
	}
	return detail, err
}

// tryGroup makes a control group for one limit and removes it.
func tryGroup(l policy.Limits, g policy.Guarantee, otherwise string) (string, error) {
	name := fmt.Sprintf("holdfast-check-%d-%d", os.Getpid(), sequence())
	for _, group := range possibleGroups(l, name) {
		for _, covered := range group.covers {
			if covered == g && group.create() == nil {
				return "limited a control group in " + filepath.Dir(group.dir), group.remove()
			}
		}
	}
	return otherwise, nil
}

func tryMemoryLimit(context.Context) (string, error) {
	return tryGroup(policy.Limits{Memory: 64 << 20}, policy.MemoryLimit,
		"no control group may be made: each process is limited by RLIMIT_DATA and all together by a watch that ends the run")
}

func tryProcessLimit(context.Context) (string, error) {
	return tryGroup(policy.Limits{Processes: 64}, policy.ProcessLimit,
		"no control group may be made: RLIMIT_NPROC counts the processes of the boundary's user namespace")
}

// mend says how to make a host keep a guarantee; detail is why it does not.
func mend(g policy.Guarantee, detail string) string {
	if g == policy.Namespaces || strings.Contains(detail, "into new namespaces") {
		return mendNamespaces()
	}
	return map[policy.Guarantee]string{
		policy.PrivateProc: "in a container, /proc is masked: start it with 'docker run --security-opt systempaths=unconfined' (or podman's --security-opt unmask=ALL), or accept an empty /proc with --without private-proc",
		policy.Landlock:    "boot with 'lsm=landlock,…' added to the kernel command line (kernel 5.13 or newer with CONFIG_SECURITY_LANDLOCK=y), or accept the loss of the second wall with --without landlock",
		policy.Scopes:      "use kernel 6.12 or newer, or accept it with --without landlock-scopes: the namespaces still separate abstract sockets and signals",
		policy.Seccomp:     "use a kernel with CONFIG_SECCOMP_FILTER=y; in a container, 'docker run --security-opt seccomp=unconfined'",
		policy.TaskID:      "keep the workspace on a file system with idmapped mounts (ext4, xfs, btrfs, tmpfs; not overlay), run as an ordinary user, or accept it with --without task-id",
		policy.CopyLayers:  "use kernel 5.11 or newer with overlayfs ('modprobe overlay'), or accept read-only tool caches with --without copy-on-write",
	}[g]
}

const apparmorProfile = `abi <abi/4.0>,
include <tunables/global>
profile holdfast %s flags=(unconfined) {
  userns,
}`

// mendNamespaces looks for the usual reasons why there are no user namespaces.
func mendNamespaces() string {
	read := func(path string) string {
		raw, _ := os.ReadFile(path)
		return string(raw)
	}
	exe, err := os.Executable()
	if err != nil {
		exe = "/usr/local/bin/holdfast"
	}
	switch {
	case read("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1\n":
		return "Ubuntu restricts user namespaces to programs with a profile. Write to /etc/apparmor.d/holdfast:\n" +
			fmt.Sprintf(apparmorProfile, exe) + "\nthen run 'sudo apparmor_parser -r /etc/apparmor.d/holdfast'"
	case read("/proc/sys/kernel/unprivileged_userns_clone") == "0\n":
		return "run 'sudo sysctl -w kernel.unprivileged_userns_clone=1' (and write it to /etc/sysctl.d/90-holdfast.conf)"
	case read("/proc/sys/user/max_user_namespaces") == "0\n":
		return "run 'sudo sysctl -w user.max_user_namespaces=15000' (and write it to /etc/sysctl.d/90-holdfast.conf)"
	default:
		return "in a container, start it with 'docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined', or with --privileged; elsewhere use a kernel with CONFIG_USER_NS=y"
	}
}
