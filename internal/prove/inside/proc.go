//go:build linux

package inside

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

func procActions() map[string]Action {
	return map[string]Action{
		"environs":          environs,
		"foreign-commands":  foreignCommands,
		"aim":               aim,
		"patch-own-mapping": patchOwnMapping,
		"foreign-memory":    foreignMemory,
		"foreign-roots":     foreignRoots,
		"foreign-programs":  foreignPrograms,
		"fresh-proc":        freshProc,
		"mount-fresh-proc":  mountFreshProc,
		"write-back":        each(writeBack),
		"open-for-writing":  each(openForWriting),
		"crash":             crash,
		"abort":             func(*Probe) { _ = unix.Kill(os.Getpid(), unix.SIGABRT); select {} },
		"control-groups":    controlGroups,
		"kernel-memory":     kernelMemory,
		"listed-sockets":    listedSockets,
		"device-nodes":      deviceNodes,
	}
}

// otherPIDs returns the other processes that /proc shows.
func otherPIDs() []int {
	entries, _ := os.ReadDir("/proc")
	var out []int
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil && n != os.Getpid() {
			out = append(out, n)
		}
	}
	return out
}

func ofProc(pid int, name string) string { return fmt.Sprintf("/proc/%d/%s", pid, name) }

// targets returns the process that the row targets and, if visible, the first
// process and our ancestors: a launcher and its helpers.
func targets(p *Probe) []int {
	var out []int
	if os.Getpid() != 1 { // in a container the prober may be process 1
		out = append(out, 1)
	}
	if pid, err := strconv.Atoi(p.Arg("pid")); err == nil {
		out = append(out, pid)
	}
	for pid := os.Getppid(); pid > 1; {
		out = append(out, pid)
		stat, err := os.ReadFile(ofProc(pid, "stat"))
		_, tail, ok := strings.Cut(string(stat), ") ")
		if err != nil || !ok {
			break
		}
		var state string
		if _, err := fmt.Sscan(tail, &state, &pid); err != nil {
			break
		}
	}
	return out
}

// environs prints the variables that rows plant, and no others: the rest of an
// environment is private.
func environs(p *Probe) {
	for _, pid := range append(otherPIDs(), os.Getpid()) {
		p.Read("environment of "+itoa(pid), func() ([]byte, error) {
			b, err := os.ReadFile(ofProc(pid, "environ"))
			var found [][]byte
			for v := range bytes.SplitSeq(b, []byte{0}) {
				if bytes.HasPrefix(v, []byte("CANARY")) {
					found = append(found, v)
				}
			}
			return bytes.Join(found, []byte("\n")), err
		})
	}
}

// foreignCommands reads what /proc shows about the process outside that the row
// targets.
func foreignCommands(p *Probe) {
	for _, name := range []string{"cmdline", "status", "stat", "comm", "maps", "limits", "mountinfo"} {
		path := fmt.Sprintf("/proc/%s/%s", p.Arg("pid"), name)
		p.Try("read "+path, func() error { _, err := os.ReadFile(path); return err })
	}
}

func aim(p *Probe) {
	pid, err := strconv.Atoi(p.Arg("pid"))
	if err != nil {
		return // without an attempt nothing passes
	}
	p.Try("stat its directory", func() error { _, err := os.Stat(ofProc(pid, "")); return err })
	p.Read("read its environment", func() ([]byte, error) { return os.ReadFile(ofProc(pid, "environ")) })
	p.Try("signal 0", func() error { return unix.Kill(pid, 0) })
	p.Try("SIGWINCH", func() error { return unix.Kill(pid, unix.SIGWINCH) })
	p.Try("SIGWINCH to its group", func() error { return unix.Kill(-pid, unix.SIGWINCH) })
	p.Try("SIGWINCH to its thread", func() error { return unix.Tgkill(pid, pid, unix.SIGWINCH) })
	p.Try("pidfd", func() error {
		fd, err := unix.PidfdOpen(pid, 0)
		if err == nil {
			err = unix.PidfdSendSignal(fd, unix.SIGWINCH, nil, 0)
			unix.Close(fd)
		}
		return err
	})
	p.Try("its scheduling", func() error { _, err := unix.SchedGetAttr(pid, 0); return err })
	p.Try("its limits", func() error { return unix.Prlimit(pid, unix.RLIMIT_CORE, nil, &unix.Rlimit{}) })
	p.Try("its group", func() error { _, err := unix.Getpgid(pid); return err })
}

func patchOwnMapping(p *Probe) {
	p.Try("write to a private mapping through /proc/self/mem", func() error {
		fd, err := unix.Open(p.Arg("path"), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		b, err := unix.Mmap(fd, 0, 4096, unix.PROT_READ, unix.MAP_PRIVATE)
		if err != nil {
			return err
		}
		defer func() { _ = unix.Munmap(b) }()
		mem, err := os.OpenFile("/proc/self/mem", os.O_RDWR, 0)
		if err != nil {
			return err
		}
		defer mem.Close()
		_, err = mem.WriteAt([]byte("patched"), int64(Pointer(&b[0])))
		runtime.KeepAlive(b)
		return err
	})
}

func foreignMemory(p *Probe) {
	for _, pid := range targets(p) {
		p.Try("open the memory of "+itoa(pid), func() error {
			fd, err := unix.Open(ofProc(pid, "mem"), unix.O_RDWR|unix.O_CLOEXEC, 0)
			if err == nil {
				unix.Close(fd)
			}
			return err
		})
		p.Try("process_vm_readv of "+itoa(pid), func() error {
			// Length 0 only asks for permission.
			var buf [8]byte
			local := []unix.Iovec{{Base: &buf[0], Len: 8}}
			_, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: 0x1000, Len: 8}}, 0)
			if err == unix.EFAULT {
				return nil // it reached the memory
			}
			return err
		})
	}
}

func foreignRoots(p *Probe) {
	for _, pid := range targets(p) {
		for _, link := range []string{"root", "cwd", "root/proc/1/root"} {
			path := filepath.Join(ofProc(pid, link), p.In("O", "canary"))
			p.Read("read "+path, func() ([]byte, error) { return os.ReadFile(path) })
		}
		p.Try("list the descriptors of "+itoa(pid), func() error { _, err := os.ReadDir(ofProc(pid, "fd")); return err })
		p.Try("list the mappings of "+itoa(pid), func() error { _, err := os.ReadDir(ofProc(pid, "map_files")); return err })
	}
}

func foreignPrograms(p *Probe) {
	for _, pid := range targets(p) {
		p.Try("open the program of "+itoa(pid)+" for writing", func() error {
			fd, err := unix.Open(ofProc(pid, "exe"), unix.O_WRONLY|unix.O_CLOEXEC, 0)
			if err == nil {
				unix.Close(fd)
			}
			return err
		})
	}
}

// ownIDs maps the caller to root in a user namespace.
func ownIDs(flags uintptr) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Cloneflags:  flags,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
}

func freshProc(p *Probe) {
	p.Child("clone namespaces", "mount-fresh-proc", ownIDs(unix.CLONE_NEWUSER|unix.CLONE_NEWNS|unix.CLONE_NEWPID))
	p.Child("clone mount and process namespaces", "mount-fresh-proc", &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID})
	p.Try("mount /proc again", func() error {
		at := p.In("W", "proc-2")
		if err := os.MkdirAll(at, 0o755); err != nil {
			return err
		}
		if err := unix.Mount("proc", at, "proc", 0, ""); err != nil {
			return err
		}
		defer func() { _ = unix.Unmount(at, unix.MNT_DETACH) }()
		_, err := os.Stat(filepath.Join(at, p.Arg("pid")))
		return err
	})
}

func mountFreshProc(p *Probe) {
	p.Try("own namespaces", func() error { return nil })
	at := p.In("W", "proc")
	p.Try("mount a fresh /proc", func() error {
		if err := os.MkdirAll(at, 0o755); err != nil {
			return err
		}
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return err
		}
		return unix.Mount("proc", at, "proc", 0, "")
	})
}

// writeBack writes what it has just read, so that nothing changes.
func writeBack(p *Probe, path string) {
	p.Try("write back "+path, func() error {
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = f.Write(b)
		return err
	})
}

// openForWriting opens and closes, and writes nothing.
func openForWriting(p *Probe, path string) {
	p.Try("open for writing "+path, func() error {
		fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		if err == nil {
			unix.Close(fd)
		}
		if err == unix.EISDIR {
			return unix.Access(path, unix.W_OK)
		}
		return err
	})
}

func crash(p *Probe) {
	each(writeBack)(p)
	none := &unix.Rlimit{}
	p.Control("leave no core file", func() error { return unix.Setrlimit(unix.RLIMIT_CORE, none) })
	c := exec.Command(os.Args[0], "-child", p.nonce, "abort")
	p.Note("a child crashed", fmt.Append(nil, c.Run()))
}

func controlGroups(p *Probe) {
	roots := []string{"/sys/fs/cgroup"}
	info, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(info)) {
		f := strings.Fields(line)
		if len(f) > 4 && strings.Contains(line, " - cgroup") {
			roots = append(roots, f[4])
		}
	}
	for _, root := range roots {
		for _, name := range []string{"cgroup.procs", "cgroup.subtree_control", "release_agent", "notify_on_release", "devices/devices.allow", "memory/release_agent"} {
			openForWriting(p, filepath.Join(root, name))
		}
		dir := filepath.Join(root, "probe-"+p.nonce)
		p.Try("make "+dir, func() error {
			err := os.Mkdir(dir, 0o755)
			if err == nil {
				err = os.Remove(dir)
			}
			return err
		})
	}
}

// kernelMemory opens files with the kernel's memory and log. It reads nothing:
// reading a port acts on a device, and reading /proc/kmsg removes messages.
func kernelMemory(p *Probe) {
	for _, path := range []string{"/proc/kcore", "/proc/kmsg", "/dev/kmsg", "/dev/mem", "/dev/port", "/dev/kmem", "/proc/kpagecount", "/sys/kernel/vmcoreinfo", "/boot/System.map"} {
		p.Try("open "+path, func() error {
			fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
			if err == nil {
				unix.Close(fd)
			}
			return err
		})
	}
	p.Try("read addresses from /proc/kallsyms", func() error {
		b := make([]byte, 4096)
		f, err := os.Open("/proc/kallsyms")
		if err != nil {
			return err
		}
		defer f.Close()
		n, err := f.Read(b)
		if err != nil {
			return err
		}
		for line := range bytes.Lines(b[:n]) {
			if f := bytes.Fields(line); len(f) > 2 && len(bytes.Trim(f[0], "0")) > 0 {
				return nil
			}
		}
		return unix.EPERM // all addresses are zero: the kernel's way to refuse
	})
}

func listedSockets(p *Probe) {
	look := func(path, needle string) {
		p.Try("find the host's socket in "+path, func() error {
			b, err := os.ReadFile(path)
			if err == nil && !bytes.Contains(b, []byte(needle)) {
				err = unix.ENOENT
			}
			return err
		})
	}
	look("/proc/net/tcp", p.Arg("tcp"))
	look("/proc/1/net/tcp", p.Arg("tcp"))
	look("/proc/net/unix", p.Arg("unix"))
	look("/proc/1/net/unix", p.Arg("unix"))
}

func deviceNodes(p *Probe) {
	disk, err := strconv.Atoi(p.Arg("disk"))
	if err != nil {
		return
	}
	for _, d := range []struct {
		name string
		mode uint32
		dev  int
	}{
		{"disk", unix.S_IFBLK, disk},
		{"null", unix.S_IFCHR, int(unix.Mkdev(1, 3))},
		{"mem", unix.S_IFCHR, int(unix.Mkdev(1, 1))},
		{"kmsg", unix.S_IFCHR, int(unix.Mkdev(1, 11))},
	} {
		p.Try("make and open "+d.name, func() error {
			path := p.In("W", "device-"+d.name)
			if err := unix.Mknod(path, d.mode|0o666, d.dev); err != nil {
				return err
			}
			fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
			if err == nil {
				unix.Close(fd)
			}
			return err
		})
	}
}
