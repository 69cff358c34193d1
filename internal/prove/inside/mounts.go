//go:build linux

package inside

import (
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func mountsActions() map[string]Action {
	return map[string]Action{
		"detach":             each(detach),
		"detach-nested":      each(detachNested),
		"through-directory":  throughDirectory,
		"mount-calls":        mountCalls,
		"mount-in-workspace": mountInWorkspace,
		"open-handle":        openHandle,
		"join":               join,
		"new-namespaces":     newNamespaces,
		"nested-sandbox":     nestedSandbox,
		"set-clock":          setClock,
		"set-hostname":       setHostname,
		"write-nested":       writeNested,
	}
}

// detach tries everything that removes a mount or covers it, and then to write
// what it protects.
func detach(p *Probe, path string) {
	evil := p.In("W", "evil")
	if err := create(filepath.Join(evil, "pre-commit")); err != nil {
		p.Control("make something to put there", func() error { return err })
	}
	p.Try("umount "+path, func() error { return unix.Unmount(path, unix.MNT_DETACH) })
	p.Try("umount with UMOUNT_NOFOLLOW "+path, func() error { return unix.Unmount(path, unix.UMOUNT_NOFOLLOW) })
	p.Try("remount writable "+path, func() error { return unix.Mount("", path, "", unix.MS_REMOUNT|unix.MS_BIND, "") })
	p.Try("mount_setattr "+path, func() error {
		return unix.MountSetattr(unix.AT_FDCWD, path, unix.AT_RECURSIVE, &unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY})
	})
	p.Try("bind over "+path, func() error { return bindAndUndo(evil, path) })
	p.Try("bind through /proc/self/fd over "+path, func() error {
		return onPath(func(name string) error { return bindAndUndo(evil, name) })(path)
	})
	p.Try("move another mount over "+path, func() error { return unix.Mount(evil, path, "", unix.MS_MOVE, "") })
	p.Try("clone the tree of "+path, func() error {
		fd, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
		if err == nil {
			unix.Close(fd)
		}
		return err
	})
	p.Try("write "+path, func() error {
		if info, err := os.Lstat(path); err == nil && info.IsDir() {
			return unix.Rename(path, path+"-away")
		}
		return overwrite(path)
	})
}

// bindAndUndo binds from over to and removes it again.
func bindAndUndo(from, to string) error {
	if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	return unix.Unmount(to, unix.MNT_DETACH)
}

// detachNested does the same with one thread and namespaces of its own, in which
// it would have every capability.
func detachNested(p *Probe, path string) {
	at, keep := CString(path)
	w, keepW := CString(p.Arg("W"))
	root, keepRoot := CString("/")
	none, keepNone := CString("none")
	defer runtime.KeepAlive([]*byte{keep, keepW, keepRoot, keepNone})
	private := C(unix.SYS_MOUNT, none, root, 0, unix.MS_REC|unix.MS_PRIVATE, 0)
	unshare := C(unix.SYS_UNSHARE, unix.CLONE_NEWUSER|unix.CLONE_NEWNS)
	for _, a := range []struct {
		name  string
		calls []Call
	}{
		{"unshare", []Call{unshare}},
		{"unshare and umount", []Call{unshare, private, C(unix.SYS_UMOUNT2, at, unix.MNT_DETACH)}},
		{"unshare and move", []Call{unshare, private, C(unix.SYS_MOUNT, at, w, 0, unix.MS_MOVE, 0)}},
		{"unshare and bind", []Call{unshare, private, C(unix.SYS_MOUNT, w, at, 0, unix.MS_BIND|unix.MS_REC, 0)}},
		{"unshare and pivot", []Call{unshare, private, C(unix.SYS_MOUNT, w, w, 0, unix.MS_BIND, 0),
			C(unix.SYS_CHDIR, w), C(unix.SYS_PIVOT_ROOT, w, w)}},
		{"unshare mounts only", []Call{C(unix.SYS_UNSHARE, unix.CLONE_NEWNS)}},
	} {
		p.Try(a.name+" "+path, func() error { _, err := Forked(a.calls); return err })
	}
	p.Child("clone namespaces", "write-nested", ownIDs(unix.CLONE_NEWUSER|unix.CLONE_NEWNS))
	p.Try("write a hook", func() error { return overwrite(filepath.Join(p.In("W", ".git", "hooks"), "pre-commit")) })
}

// writeNested runs in namespaces of its own.
func writeNested(p *Probe) {
	p.Try("own namespaces", func() error { return nil })
	p.Try("umount there", func() error { return unix.Unmount(p.In("W", ".git", "hooks"), unix.MNT_DETACH) })
	p.Try("write there", func() error { return overwrite(p.In("W", ".git", "hooks", "pre-commit")) })
}

// throughDirectory keeps a directory open while it tries to detach the mounts
// below.
func throughDirectory(p *Probe) {
	fd, err := unix.Open(p.Arg("path"), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		p.Control("open the directory", func() error { return err })
		return
	}
	defer unix.Close(fd)
	name, keep := CString("hooks/planted")
	hooks, keepHooks := CString(p.In("path", "hooks"))
	defer runtime.KeepAlive([]*byte{keep, keepHooks})
	plant := C(unix.SYS_OPENAT, uintptr(fd), name, unix.O_CREAT|unix.O_WRONLY, 0o755)
	p.Try("openat", func() error { _, err := Forked([]Call{plant}); return err })
	p.Try("unshare, umount and openat", func() error {
		_, err := Forked([]Call{C(unix.SYS_UNSHARE, unix.CLONE_NEWUSER|unix.CLONE_NEWNS),
			C(unix.SYS_UMOUNT2, hooks, unix.MNT_DETACH), plant})
		return err
	})
	p.Try("openat2 beneath it", func() error {
		f, err := unix.Openat2(fd, "hooks/planted", &unix.OpenHow{Flags: unix.O_CREAT | unix.O_WRONLY, Mode: 0o755, Resolve: unix.RESOLVE_BENEATH})
		if err == nil {
			unix.Close(f)
		}
		return err
	})
	p.Try("linkat and renameat through it", func() error {
		other := p.In("W", "to-plant")
		return errors.Join(create(other), unix.Renameat(unix.AT_FDCWD, other, fd, "hooks/planted"))
	})
	p.Try("fchdir and open", func() error {
		if err := unix.Fchdir(fd); err != nil {
			return err
		}
		defer func() { _ = os.Chdir(p.Arg("W")) }()
		return create("hooks/planted")
	})
}

// bad is a pointer that is never valid.
const bad = ^uintptr(4095)

// reachedKernel reports success if the kernel looked at the arguments: then no filter
// refused the call.
func reachedKernel(err error) error {
	switch err {
	case unix.EFAULT, unix.EINVAL, unix.EBADF, unix.E2BIG, unix.ENAMETOOLONG:
		return nil
	}
	return err
}

// mountCalls makes each system call of the mount family with arguments that
// cannot work.
func mountCalls(p *Probe) {
	for _, c := range []struct {
		name string
		call Call
	}{
		{"mount", C(unix.SYS_MOUNT, bad, bad, bad, 0, bad)},
		{"umount2", C(unix.SYS_UMOUNT2, bad, 0)},
		{"pivot_root", C(unix.SYS_PIVOT_ROOT, bad, bad)},
		{"chroot", C(unix.SYS_CHROOT, bad)},
		{"open_tree", C(unix.SYS_OPEN_TREE, bad, bad, 0)},
		{"move_mount", C(unix.SYS_MOVE_MOUNT, bad, bad, bad, bad, 0)},
		{"fsopen", C(unix.SYS_FSOPEN, bad, 0)},
		{"fsconfig", C(unix.SYS_FSCONFIG, bad, 99, 0, 0, 0)},
		{"fsmount", C(unix.SYS_FSMOUNT, bad, 0, 0)},
		{"fspick", C(unix.SYS_FSPICK, bad, bad, 0)},
		{"mount_setattr", C(unix.SYS_MOUNT_SETATTR, bad, bad, 0, bad, 32)},
		{"open_tree_attr", C(467, bad, bad, 0, bad, 32)}, // Linux 6.15
		{"quotactl_fd", C(unix.SYS_QUOTACTL_FD, bad, 0, 0, bad)},
		{"swapon", C(unix.SYS_SWAPON, bad, 0)},
		{"swapoff", C(unix.SYS_SWAPOFF, bad)},
	} {
		p.Try(c.name, func() error { _, err := Forked([]Call{c.call}); return reachedKernel(err) })
	}
}

// mountInWorkspace leaves the mount there: the host has to notice.
func mountInWorkspace(p *Probe) {
	at := p.In("W", "m")
	p.Try("tmpfs", func() error { return unix.Mount("tmpfs", at, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=4k") })
	p.Try("bind", func() error { return unix.Mount(p.Arg("W"), at, "", unix.MS_BIND, "") })
	p.Try("by the new calls", func() error {
		fs, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
		if err == nil {
			unix.Close(fs)
		}
		return err
	})
}

// openHandle opens the handle that the outside made for a secret, and the usual
// handle of a root directory.
func openHandle(p *Probe) {
	kind, err := strconv.Atoi(p.Arg("type"))
	raw, err2 := hex.DecodeString(p.Arg("handle"))
	if err := errors.Join(err, err2); err != nil {
		return
	}
	mount, err := unix.Open(p.Arg("W"), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		p.Control("open the workspace", func() error { return err })
		return
	}
	defer unix.Close(mount)
	p.Read("the handle of a secret", func() ([]byte, error) {
		fd, err := unix.OpenByHandleAt(mount, unix.NewFileHandle(int32(kind), raw), unix.O_RDONLY)
		if err != nil {
			return nil, err
		}
		return drain(fd)
	})
	p.Try("a handle made by hand, of inode 2", func() error {
		fd, err := unix.OpenByHandleAt(mount, unix.NewFileHandle(1, []byte{2, 0, 0, 0, 0, 0, 0, 0}), unix.O_RDONLY|unix.O_DIRECTORY)
		if err == nil {
			unix.Close(fd)
		}
		return err
	})
	p.Try("the handle of the root inside", func() error {
		h, _, err := unix.NameToHandleAt(unix.AT_FDCWD, p.Arg("W"), 0)
		if err != nil {
			return err
		}
		fd, err := unix.OpenByHandleAt(mount, h, unix.O_RDONLY|unix.O_DIRECTORY)
		if err == nil {
			unix.Close(fd)
		}
		return err
	})
}

var namespaceKinds = []struct {
	name string
	flag uintptr
}{
	{"mnt", unix.CLONE_NEWNS}, {"cgroup", unix.CLONE_NEWCGROUP}, {"uts", unix.CLONE_NEWUTS}, {"ipc", unix.CLONE_NEWIPC},
	{"user", unix.CLONE_NEWUSER}, {"pid", unix.CLONE_NEWPID}, {"net", unix.CLONE_NEWNET}, {"time", unix.CLONE_NEWTIME},
}

func join(p *Probe) {
	for _, pid := range append(targets(p), os.Getpid()) {
		for _, kind := range namespaceKinds {
			p.Try("join the "+kind.name+" namespace of "+itoa(pid), func() error {
				fd, err := unix.Open(ofProc(pid, "ns/"+kind.name), unix.O_RDONLY|unix.O_CLOEXEC, 0)
				if err != nil {
					return err
				}
				defer unix.Close(fd)
				_, err = Forked([]Call{C(unix.SYS_SETNS, uintptr(fd), 0)})
				return err
			})
		}
	}
	p.Try("join all namespaces of a process by its pidfd", func() error {
		fd, err := unix.PidfdOpen(1, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		_, err = Forked([]Call{C(unix.SYS_SETNS, uintptr(fd), unix.CLONE_NEWNS|unix.CLONE_NEWPID|unix.CLONE_NEWNET)})
		return err
	})
}

func newNamespaces(p *Probe) {
	for _, kind := range namespaceKinds {
		p.Try("unshare "+kind.name, func() error { _, err := Forked([]Call{C(unix.SYS_UNSHARE, kind.flag)}); return err })
		p.Try("unshare "+kind.name+" with a bit that is beyond the low half", func() error {
			_, err := Forked([]Call{C(unix.SYS_UNSHARE, kind.flag|1<<40)})
			return err
		})
		if kind.flag != unix.CLONE_NEWTIME { // no flag of clone(2): its bit is part of the signal
			p.Try("clone "+kind.name, func() error {
				_, err := Forked([]Call{C(unix.SYS_CLONE, kind.flag|uintptr(unix.SIGCHLD))})
				return err
			})
		}
	}
	p.Try("clone3", func() error {
		_, err := Forked([]Call{C(unix.SYS_CLONE3, bad, 88)})
		return reachedKernel(err)
	})
}

func nestedSandbox(p *Probe) {
	p.Try("bwrap --bind / /", func() error {
		err := exec.Command("/usr/bin/bwrap", "--bind", "/", "/", "--dev", "/dev", os.Args[0], "-child", p.nonce, "create", "path="+p.In("O", "x")).Run()
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.Exited() {
			return unix.EPERM // it ran and failed; the outside looks for the file
		}
		return err
	})
}

// setClock sets what it has just read.
func setClock(p *Probe) {
	p.Try("adjtimex", func() error {
		var t unix.Timex
		if _, err := unix.Adjtimex(&t); err != nil {
			return err
		}
		t.Modes = unix.ADJ_TICK
		_, err := unix.Adjtimex(&t)
		return err
	})
	p.Try("clock_settime of a clock that cannot be set", func() error {
		_, err := Raw(unix.SYS_CLOCK_SETTIME, unix.CLOCK_REALTIME, bad)
		return reachedKernel(err)
	})
	p.Try("settimeofday", func() error {
		_, err := Raw(unix.SYS_SETTIMEOFDAY, bad, 0)
		return reachedKernel(err)
	})
}

func setHostname(p *Probe) {
	name, err := os.Hostname()
	if err != nil {
		return
	}
	p.Try("sethostname", func() error { return unix.Sethostname([]byte(name)) })
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return
	}
	domain := strings.TrimRight(string(u.Domainname[:]), "\x00")
	p.Try("setdomainname", func() error { return unix.Setdomainname([]byte(domain)) })
}
