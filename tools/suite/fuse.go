package main

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
)

// privateFUSE gives processes started from now on, and nothing else on this
// machine, a /dev/fuse that every user may open: on many kernels only root may
// open the device, and only a desktop's udev changes that. The node is in a mount
// namespace of the calling thread, from which commands are started; the goroutine
// stays on that thread permanently.
func privateFUSE(dir string) error {
	const device = "/dev/fuse"
	var st syscall.Stat_t
	if err := syscall.Stat(device, &st); err != nil {
		return &os.PathError{Op: "stat", Path: device, Err: err}
	}
	if st.Mode&syscall.S_IFMT != syscall.S_IFCHR {
		return errors.New(device + " is not a character device")
	}
	node := filepath.Join(dir, "fuse")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	runtime.LockOSThread()
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"unshare", func() error { return syscall.Unshare(syscall.CLONE_NEWNS) }},
		// Mounts and unmounts of the host still propagate here, but not back.
		{"mount --make-rslave /", func() error { return syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_SLAVE, "") }},
		{"mount tmpfs", func() error {
			return syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_NOSUID|syscall.MS_NOEXEC, "size=4k,mode=0700")
		}},
		{"mknod", func() error { return syscall.Mknod(node, syscall.S_IFCHR|0o600, int(st.Rdev)) }},
		{"chmod", func() error { return os.Chmod(node, 0o666) }}, // independent of the umask
		{"mount --bind", func() error { return syscall.Mount(node, device, "", syscall.MS_BIND, "") }},
		{"umount", func() error { return syscall.Unmount(dir, syscall.MNT_DETACH) }},
	} {
		if err := step.do(); err != nil {
			return os.NewSyscallError(step.name, err)
		}
	}
	return nil
}
