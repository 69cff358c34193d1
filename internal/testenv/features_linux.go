package testenv

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
)

// userNS creates a user namespace, maps this user to root in it and mounts there.
// Ubuntu allows the first step and refuses the last.
func userNS() error {
	cmd := exec.Command("mount", "-t", "tmpfs", "tmpfs", "/tmp")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("mounting in a user namespace: %w: %s", err, out)
	}
	return nil
}

// landlock asks for the ABI version; that needs no pointer.
func landlock() error {
	const createRuleset, version = 444, 1 // <linux/landlock.h>: LANDLOCK_CREATE_RULESET_VERSION
	if _, _, errno := syscall.Syscall(createRuleset, 0, 0, version); errno != 0 {
		return os.NewSyscallError("landlock_create_ruleset", errno)
	}
	return nil
}

func seccomp() error {
	const file = "/proc/sys/kernel/seccomp/actions_avail" // Linux 4.14
	b, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	have := strings.Fields(string(b))
	for _, want := range []string{"kill_process", "user_notif"} {
		if !slices.Contains(have, want) {
			return fmt.Errorf("%s does not name %s", file, want)
		}
	}
	return nil
}

func sameDevice(a, b string) (bool, error) {
	var sa, sb syscall.Stat_t
	if err := syscall.Stat(a, &sa); err != nil {
		return false, &os.PathError{Op: "stat", Path: a, Err: err}
	}
	if err := syscall.Stat(b, &sb); err != nil {
		return false, &os.PathError{Op: "stat", Path: b, Err: err}
	}
	return sa.Dev == sb.Dev, nil
}

func setCredential(cmd *exec.Cmd, uid, gid uint32) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: gid}}
}
