//go:build linux

package supervise

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// mountsVar is what the launcher mounts before anything else, in lines.
const mountsVar = "HOLDFAST_SUPERVISE_MOUNTS"

// mountAll makes a view by lines of a word and its arguments: tmpfs AT, rw FROM AT, ro
// FROM AT (bound), seal AT (made read-only), become UID GID (without capabilities).
func mountAll(lines string) error {
	if lines == "" {
		return nil
	}
	at, err := os.Getwd()
	if err != nil {
		return err
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	for line := range strings.SplitSeq(lines, "\n") {
		if err := mountOne(strings.Fields(line)); err != nil {
			return fmt.Errorf("%s: %w", line, err)
		}
	}
	return os.Chdir(at) // which is something else now
}

func mountOne(f []string) error {
	switch f[0] {
	case "tmpfs":
		return unix.Mount("view", f[1], "tmpfs", 0, "mode=755")
	case "seal":
		return unix.Mount("", f[1], "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, "")
	case "become":
		uid, _ := strconv.Atoi(f[1])
		gid, _ := strconv.Atoi(f[2])
		return drop(uid, gid)
	}
	if st, err := os.Stat(f[1]); err == nil && st.IsDir() {
		if err := os.MkdirAll(f[2], 0o755); err != nil {
			return err
		}
	}
	if err := unix.Mount(f[1], f[2], "", unix.MS_BIND, ""); err != nil || f[0] == "rw" {
		return err
	}
	return unix.Mount("", f[2], "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, "")
}

func drop(uid, gid int) error {
	if os.Getuid() == uid {
		header, none := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, [2]unix.CapUserData{}
		return unix.Capset(&header, &none[0]) // and so the ambient ones
	}
	if err := syscall.Setgroups(nil); err != nil {
		return err
	}
	if err := syscall.Setgid(gid); err != nil {
		return err
	}
	return syscall.Setuid(uid)
}
