//go:build linux

package supervise

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/programs"
)

// insideVar makes this test binary the first process of a view: it builds one
// with a tripwire root, step by step as a launch does, and then does what its
// arguments say, one a line: a verb, and a path or two.
const insideVar = "HOLDFAST_TRIPWIRE_INSIDE"

const insideSocket = 3

func init() {
	if ids := os.Getenv(insideVar); ids != "" {
		runtime.LockOSThread()
		err := insideMain(ids)
		if err != nil {
			fmt.Println("failed:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

func insideMain(ids string) error {
	uid, _ := strconv.Atoi(ids)
	if ids == "tmpfs" {
		uid = 0
	}
	device, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open /dev/fuse: %w", err)
	}
	if uid != os.Getuid() {
		if err := insideBecome(uid); err != nil {
			return err
		}
	}
	unix.Umask(0)
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private: %w", err)
	}
	sources := map[string]int{}
	for _, at := range []string{"/usr", "/tmp", "/dev/null"} {
		if sources[at], err = unix.OpenTree(unix.AT_FDCWD, at, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE); err != nil {
			return fmt.Errorf("open_tree %s: %w", at, err)
		}
	}
	proc, err := makeMount("proc", nil)
	if err != nil {
		return err
	}
	var root int
	if ids == "tmpfs" {
		root, err = makeMount("tmpfs", [][2]string{{"mode", "0755"}})
	} else {
		root, err = makeMount("fuse", [][2]string{{"fd", strconv.Itoa(device)}, {"rootmode", "40755"},
			{"user_id", strconv.Itoa(uid)}, {"group_id", strconv.Itoa(uid)}, {"default_permissions", ""}, {"source", "holdfast"}})
		if err == nil {
			err = unix.Sendmsg(insideSocket, []byte("device"), unix.UnixRights(device), nil, 0)
		}
	}
	if err != nil {
		return err
	}
	unix.Close(device)
	if err := insideRoot(root, proc, sources); err != nil {
		return err
	}
	if err := insideSeal(); err != nil {
		return err
	}
	insideUID = ids
	for _, line := range os.Args[1:] {
		fmt.Println(line, "=", insideDo(strings.Fields(line)))
	}
	return nil
}

// insideUID distinguishes views that share /tmp.
var insideUID string

func insideBecome(uid int) error {
	if err := syscall.Setgroups(nil); err != nil {
		return fmt.Errorf("setgroups: %w", err)
	}
	if err := syscall.Setresgid(uid, uid, uid); err != nil {
		return fmt.Errorf("setresgid: %w", err)
	}
	if err := syscall.Setresuid(uid, uid, uid); err != nil {
		return fmt.Errorf("setresuid: %w", err)
	}
	return nil
}

func makeMount(fstype string, options [][2]string) (int, error) {
	fs, err := unix.Fsopen(fstype, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return 0, fmt.Errorf("fsopen %s: %w", fstype, err)
	}
	defer unix.Close(fs)
	for _, o := range options {
		if o[1] == "" {
			err = unix.FsconfigSetFlag(fs, o[0])
		} else {
			err = unix.FsconfigSetString(fs, o[0], o[1])
		}
		if err != nil {
			return 0, fmt.Errorf("fsconfig %s %v: %w", fstype, o, err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return 0, fmt.Errorf("create %s: %w", fstype, err)
	}
	mnt, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
	if err != nil {
		return 0, fmt.Errorf("fsmount %s: %w", fstype, err)
	}
	return mnt, nil
}

func moveTo(fd int, at string) error {
	defer unix.Close(fd)
	if err := unix.MoveMount(fd, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("move_mount %s: %w", at, err)
	}
	return nil
}

// insideRoot makes root the root, and fills it.
func insideRoot(root, proc int, sources map[string]int) error {
	steps := []func() error{
		func() error { return moveTo(root, "/tmp") },
		func() error { return unix.Chdir("/tmp") },
		func() error { return unix.PivotRoot(".", ".") },
		func() error { return unix.Unmount(".", unix.MNT_DETACH) },
		func() error { return unix.Chdir("/") },
		func() error { return unix.Mkdir("/.holdfast", 0o700) },
		func() error {
			fd, err := makeMount("tmpfs", [][2]string{{"mode", "0700"}})
			if err != nil {
				return err
			}
			return moveTo(fd, "/.holdfast")
		},
		func() error { return os.MkdirAll("/.holdfast/home", 0o700) },
		func() error { return os.MkdirAll("/home/agent", 0o755) },
		func() error {
			fd, err := unix.OpenTree(unix.AT_FDCWD, "/.holdfast/home", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
			if err != nil {
				return err
			}
			return moveTo(fd, "/home/agent")
		},
		func() error { return os.MkdirAll("/etc", 0o755) },
		func() error { return os.MkdirAll("/usr", 0o755) },
		func() error { return os.MkdirAll("/tmp", 0o777) },
		func() error { return os.MkdirAll("/proc", 0o555) },
		func() error { return moveTo(sources["/usr"], "/usr") },
		func() error { return moveTo(sources["/tmp"], "/tmp") },
		func() error { return moveTo(proc, "/proc") },
		func() error {
			return os.WriteFile("/etc/passwd", []byte(strings.Repeat("root:x:0:0:root:/root:/bin/sh\n", 10000)), 0o444)
		},
		func() error { return os.WriteFile("/etc/path", []byte("/home/selfish/path\x00"), 0o444) },
		func() error { return os.Symlink("usr/bin", "/bin") },
		func() error { return os.Mkdir("/dev", 0o755) },
		func() error { return unix.Mknod("/dev/null", unix.S_IFREG|0o444, 0) },
		func() error { return moveTo(sources["/dev/null"], "/dev/null") },
		func() error { return programs.Write("/home/agent/script", []byte("#!/sbin/nothing\n"), 0o755) },
		func() error { return unix.Unmount("/.holdfast", unix.MNT_DETACH) },
		func() error { return unix.Rmdir("/.holdfast") },
	}
	for i, step := range steps {
		if err := step(); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	return nil
}

// insideSeal makes the root read-only and waits until the server does.
func insideSeal() error {
	fd, err := unix.Open("/", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}); err != nil {
		return fmt.Errorf("mount_setattr: %w", err)
	}
	if _, err := unix.Write(insideSocket, []byte("ready")); err != nil {
		return err
	}
	if _, err := unix.Read(insideSocket, make([]byte, 8)); err != nil {
		return err
	}
	unix.Close(insideSocket)
	return nil
}
