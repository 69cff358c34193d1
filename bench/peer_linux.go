package main

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// peer plays a role in a measurement.
func peer(role string, args []string) error {
	switch role {
	case "serve":
		return peerServe()
	case "client":
		return peerClient(args)
	case "proxy":
		return peerProxy()
	case "stage":
		return peerStage(args)
	case "opens":
		return peerOpens(args)
	case "fuse":
		return peerFuse(args)
	case "model":
		return peerModel()
	case "observe":
		return peerObserve(args)
	case "review":
		return peerReview(args)
	}
	return fmt.Errorf("unknown role %q", role)
}

// peerStage becomes the user and executes a program, in a mount namespace that
// the caller made. There it mounts our hosts file, and a TUN device that the user
// may open, as in distributions. Arguments: the hosts file, a directory to mount
// on ("" for no device), user, group, the program with its arguments.
func peerStage(args []string) error {
	if len(args) < 5 {
		return fmt.Errorf("a stage needs 5 arguments, not %d", len(args))
	}
	if err := syscall.Mount(args[0], "/etc/hosts", "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("mounting a hosts file over the host's: %w", err)
	}
	if args[1] != "" {
		if err := ownTun(args[1]); err != nil {
			return err
		}
	}
	uid, err := strconv.Atoi(args[2])
	if err != nil {
		return fmt.Errorf("reading the user: %w", err)
	}
	gid, err := strconv.Atoi(args[3])
	if err != nil {
		return fmt.Errorf("reading the group: %w", err)
	}
	if err := syscall.Setgroups(nil); err != nil {
		return fmt.Errorf("dropping the groups: %w", err)
	}
	if err := syscall.Setgid(gid); err != nil {
		return fmt.Errorf("setting the group: %w", err)
	}
	if err := syscall.Setuid(uid); err != nil {
		return fmt.Errorf("setting the user: %w", err)
	}
	return fmt.Errorf("executing %s: %w", args[4], syscall.Exec(args[4], args[4:], os.Environ()))
}

// ownTun makes the TUN device accessible, only in this mount namespace.
func ownTun(dir string) error {
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_NOEXEC, "mode=755"); err != nil {
		return fmt.Errorf("mounting a directory for a device: %w", err)
	}
	device := dir + "/tun"
	if err := syscall.Mknod(device, syscall.S_IFCHR, 10<<8|200); err != nil { // Documentation/networking/tuntap
		return fmt.Errorf("making a device: %w", err)
	}
	if err := os.Chmod(device, 0o666); err != nil { // mknod obeys the umask
		return fmt.Errorf("giving the user access to a device: %w", err)
	}
	if err := syscall.Mount(device, "/dev/net/tun", "", syscall.MS_BIND, ""); err != nil {
		return fmt.Errorf("mounting a device over the host's: %w", err)
	}
	return nil
}
