//go:build linux

package probe

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Machine is a change of this machine that a process makes for itself and its
// children, in a mount namespace of its own; "" for none.
type Machine string

// The machines.
const (
	WithoutFuse   Machine = "no-fuse"   // /dev/fuse is not usable as a device
	WithoutGroups Machine = "no-cgroup" // /sys/fs/cgroup is empty
	OnTmpfs       Machine = "tmpfs"     // the directory of that name is a tmpfs
	BelowSrv      Machine = "srv"       // /srv is the directory of that name
)

// Command returns a command that runs argv in a mount namespace, and for an ordinary
// user in a user namespace with the same ids, in which it may mount. argv should
// call [Machine.Enter]. It gets SIGTERM when the thread that started it ends.
func (m Machine) Command(argv ...string) *exec.Cmd {
	cmd := exec.Command(argv[0], argv[1:]...)
	attr := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGTERM, Setpgid: true}
	if uid, gid := os.Geteuid(), os.Getegid(); uid != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN}
	}
	cmd.SysProcAttr = attr
	return cmd
}

// Enter makes the mounts of the machine and executes argv with the same program,
// as an ordinary user without the right to mount. dir is the directory of the
// worlds.
func (m Machine) Enter(dir string, argv []string) error {
	runtime.LockOSThread()
	if err := m.change(dir); err != nil {
		return fmt.Errorf("making the world %s: %w", m, err)
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("dropping the right to mount: %w", err)
	}
	return syscall.Exec("/proc/self/exe", argv, os.Environ())
}

// change makes the mounts of a machine. Only this process and its children see
// them. dir is the place, in which a directory with the machine's name is made.
func (m Machine) change(dir string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	own := filepath.Join(dir, string(m))
	if m == OnTmpfs || m == BelowSrv {
		if err := os.MkdirAll(own, 0o755); err != nil {
			return err
		}
	}
	switch m {
	case WithoutFuse:
		return nodev("/dev/fuse")
	case WithoutGroups:
		return unix.Mount("none", "/sys/fs/cgroup", "tmpfs", unix.MS_RDONLY, "size=4k")
	case OnTmpfs: // bytes and inodes in the ratio of a disk: limits of a run are shares
		return unix.Mount("none", own, "tmpfs", 0, "size=2g,nr_inodes=512k,mode=755")
	case BelowSrv:
		return unix.Mount(own, "/srv", "", unix.MS_BIND, "")
	}
	return fmt.Errorf("unknown machine %q", m)
}

// nodev makes path unusable as a device: opening it returns EACCES (mount(2),
// MS_NODEV).
func nodev(path string) error {
	if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err := unix.Mount(path, path, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	return unix.MountSetattr(unix.AT_FDCWD, path, 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NODEV})
}
