package trial

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Mount is a directory or file of this machine that an agent sees, read-only, and
// its path there.
type Mount struct{ From, To string }

// rootFS builds the file system that an agent sees: this machine's programs and
// nothing else of it. Everything writable is in memory, and is gone with the
// mount namespace.
type rootFS struct {
	root   string // an empty directory of this machine
	mounts []Mount
	uid    int // owner of the home
}

// build creates it and makes it the root of this process, which must have its own
// mount namespace.
func (p rootFS) build() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making mounts private: %w", err)
	}
	if err := unix.Mount("tmpfs", p.root, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"); err != nil {
		return fmt.Errorf("mounting the root: %w", err)
	}
	for _, step := range []func() error{p.system, p.devices, p.etc, p.memory, p.mountGiven, p.enter} {
		if err := step(); err != nil {
			return fmt.Errorf("building the file system of a trial: %w", err)
		}
	}
	return nil
}

func (p rootFS) hostPath(path string) string { return filepath.Join(p.root, path) }

// system mounts the programs of this machine.
func (p rootFS) system() error {
	for _, dir := range []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"} {
		info, err := os.Lstat(dir)
		switch {
		case errors.Is(err, os.ErrNotExist):
			continue
		case err != nil:
			return err
		case info.Mode()&os.ModeSymlink != 0:
			to, err := os.Readlink(dir)
			if err == nil {
				err = os.Symlink(to, p.hostPath(dir))
			}
			if err != nil {
				return err
			}
			continue
		}
		if err := p.show(dir, dir); err != nil {
			return err
		}
	}
	if err := p.show("/sys", "/sys"); err != nil {
		return err
	}
	if err := os.Mkdir(p.hostPath("/proc"), 0o555); err != nil {
		return err
	}
	return nameError(unix.Mount("proc", p.hostPath("/proc"), "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""), "proc")
}

// show binds from to a new directory or file, read-only.
func (p rootFS) show(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	if err := p.makeMountPoint(to, info.IsDir()); err != nil {
		return err
	}
	if err := unix.Mount(from, p.hostPath(to), "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return nameError(err, from)
	}
	// Recursive, so that mounts below it are not writable either.
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	return nameError(unix.MountSetattr(unix.AT_FDCWD, p.hostPath(to), unix.AT_RECURSIVE, &attr), from)
}

// makeMountPoint makes a mount point.
func (p rootFS) makeMountPoint(path string, dir bool) error {
	if dir {
		return os.MkdirAll(p.hostPath(path), 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(p.hostPath(path)), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(p.hostPath(path), os.O_CREATE|os.O_RDONLY, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

// devices makes a /dev with the devices that every user may open.
func (p rootFS) devices() error {
	if err := os.Mkdir(p.hostPath("/dev"), 0o755); err != nil {
		return err
	}
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty", "fuse", "net/tun"} {
		from := "/dev/" + name
		if _, err := os.Stat(from); err != nil {
			continue
		}
		if err := p.makeMountPoint(from, false); err != nil {
			return err
		}
		if err := unix.Mount(from, p.hostPath(from), "", unix.MS_BIND, ""); err != nil {
			return nameError(err, from)
		}
	}
	for _, dir := range []string{"/dev/pts", "/dev/shm"} {
		if err := os.Mkdir(p.hostPath(dir), 0o755); err != nil {
			return err
		}
	}
	if err := unix.Mount("devpts", p.hostPath("/dev/pts"), "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620"); err != nil {
		return nameError(err, "devpts")
	}
	if err := unix.Mount("tmpfs", p.hostPath("/dev/shm"), "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777"); err != nil {
		return nameError(err, "/dev/shm")
	}
	for link, to := range map[string]string{"ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"} {
		if err := os.Symlink(to, p.hostPath("/dev/"+link)); err != nil {
			return err
		}
	}
	return nil
}

// etcShown is the part of /etc that programs need; it contains nothing about this
// machine's users or networks.
var etcShown = []string{"alternatives", "ssl", "ca-certificates", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "os-release", "debian_version", "profile", "bash.bashrc", "inputrc", "mime.types",
	"protocols", "services", "terminfo", "locale.alias", "java-17-openjdk", "python3", "python3.11", "perl", "fonts", "fuse.conf", "apparmor.d", "shells", "login.defs", "pki", "crypto-policies", "skel"}

// etc makes an /etc of those, and of files about the trial's own user and
// network.
func (p rootFS) etc() error {
	if err := os.Mkdir(p.hostPath("/etc"), 0o755); err != nil {
		return err
	}
	for _, name := range etcShown {
		from := "/etc/" + name
		info, err := os.Lstat(from)
		if err != nil {
			continue
		}
		if info.Mode()&os.ModeSymlink != 0 {
			to, err := os.Readlink(from)
			if err == nil {
				err = os.Symlink(to, p.hostPath(from))
			}
			if err != nil {
				return err
			}
			continue
		}
		if err := p.show(from, from); err != nil {
			return err
		}
	}
	for name, content := range map[string]string{
		"passwd":        "root:x:0:0:root:/root:/bin/bash\n" + user + ":x:" + fmt.Sprint(innerID) + ":" + fmt.Sprint(innerID) + ":" + user + ":" + homeDir + ":/bin/bash\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
		"group":         "root:x:0:\n" + user + ":x:" + fmt.Sprint(innerID) + ":\nnogroup:x:65534:\n",
		"hosts":         "127.0.0.1 localhost " + machine + "\n::1 localhost\n",
		"hostname":      machine + "\n",
		"resolv.conf":   "nameserver " + nameServer + "\noptions timeout:2 attempts:1\n",
		"nsswitch.conf": "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n",
		"machine-id":    strings.Repeat("0123456789abcdef", 2) + "\n",
		"gitconfig":     "[init]\n\tdefaultBranch = main\n",
	} {
		if err := os.WriteFile(p.hostPath("/etc/"+name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// memory mounts the writable directories.
func (p rootFS) memory() error {
	for dir, mode := range map[string]string{"/home": "755", "/tmp": "1777", "/run": "755", "/var": "755", "/root": "700", "/mnt": "755", "/srv": "755"} {
		if err := os.Mkdir(p.hostPath(dir), 0o755); err != nil {
			return err
		}
		if err := unix.Mount("tmpfs", p.hostPath(dir), "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode="+mode); err != nil {
			return nameError(err, dir)
		}
	}
	for dir, mode := range map[string]os.FileMode{"/var/tmp": 0o1777 | os.ModeSticky, "/var/lib": 0o755, "/var/log": 0o755, "/run/user": 0o755, "/run/lock": 0o1777 | os.ModeSticky} {
		if err := errors.Join(os.Mkdir(p.hostPath(dir), 0o755), os.Chmod(p.hostPath(dir), mode)); err != nil {
			return err
		}
	}
	for _, dir := range []string{homeDir, runDir} {
		if err := errors.Join(os.Mkdir(p.hostPath(dir), 0o700), os.Chown(p.hostPath(dir), p.uid, p.uid)); err != nil {
			return err
		}
	}
	return nil
}

// mountGiven mounts what the trial needs of this machine.
func (p rootFS) mountGiven() error {
	for _, m := range p.mounts {
		if err := p.show(m.From, m.To); err != nil {
			return fmt.Errorf("showing %s: %w", m.From, err)
		}
	}
	return nil
}

// enter makes the new root the root.
func (p rootFS) enter() error {
	if err := unix.Chdir(p.root); err != nil {
		return nameError(err, p.root)
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return nameError(err, "pivot_root")
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return nameError(err, "leaving the old root")
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	return nameError(unix.Mount("", "/", "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV, ""), "the root")
}

func nameError(err error, what string) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
