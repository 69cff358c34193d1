package trial

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// innerID is the trial's user as seen inside: as root, agents refuse to run
// without prompts.
const innerID = 1000

// unprivilegedID is that user's ID on this machine if root runs the trial. It owns
// nothing: the machine's root may write what root owns, such as /proc/sys, even
// without capabilities.
const unprivilegedID = 1_000_001_000

// isolatedCommand is a command in its own namespaces. It is the first process of its
// process namespace, so that all others end with it.
func isolatedCommand(ctx context.Context, argv []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	attr := &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS | syscall.CLONE_NEWNET,
		Pdeathsig:  syscall.SIGKILL, Setsid: true,
	}
	if uid, gid := os.Geteuid(), os.Getegid(); uid == 0 {
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1}, {ContainerID: innerID, HostID: unprivilegedID, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1}, {ContainerID: innerID, HostID: unprivilegedID, Size: 1}}
		attr.GidMappingsEnableSetgroups = true
	} else {
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: innerID, HostID: uid, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: innerID, HostID: gid, Size: 1}}
		attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_NET_BIND_SERVICE}
	}
	cmd.SysProcAttr = attr
	return cmd
}

// dropPrivileges makes this process the user of the trial, without capabilities and
// closed to inspection by others.
func dropPrivileges() error {
	if os.Geteuid() == 0 {
		if err := errors.Join(syscall.Setgroups(nil), syscall.Setresgid(innerID, innerID, innerID), syscall.Setresuid(innerID, innerID, innerID)); err != nil {
			return fmt.Errorf("becoming the user of the trial: %w", err)
		}
		return preventInspection()
	}
	// An executed program gets only the ambient capabilities, because its user is
	// not root.
	if _, _, errno := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0, 0); errno != 0 {
		return fmt.Errorf("dropping capabilities (a program built with cgo cannot): %w", errno)
	}
	return preventInspection()
}

// preventInspection keeps other processes from inspecting this one.
func preventInspection() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("protecting the memory of the judge: %w", err)
	}
	return nil
}
