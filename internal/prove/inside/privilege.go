//go:build linux

package inside

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/programs"
)

func privilegeActions() map[string]Action {
	return map[string]Action{
		"run-set-id":     each(runSetID),
		"say-ids":        sayIDs,
		"become":         become,
		"make-set-id":    makeSetID,
		"groups":         groups,
		"preload":        preload,
		"change-ids":     changeIDs,
		"write-as-owner": writeAsOwner,
	}
}

// runSetID executes a program that belongs to another user, and must not run as
// that user.
func runSetID(p *Probe, path string) {
	c, done := p.Command(path, "say-ids")
	defer done()
	if err := c.Run(); err != nil {
		p.Try("run "+path, func() error { return err })
	}
}

func sayIDs(p *Probe) {
	r, e, s := unix.Getresuid()
	gr, ge, gs := unix.Getresgid()
	p.Note("users and groups", fmt.Append(nil, r, e, s, gr, ge, gs))
	owner, _ := strconv.Atoi(p.Arg("owner"))
	p.Try("be the owner of the program", func() error {
		if e != owner && s != owner && ge != owner && gs != owner {
			return unix.EPERM
		}
		return nil
	})
	p.Try("have capabilities from the program", func() error {
		b, err := os.ReadFile("/proc/self/status")
		if err == nil && strings.Contains(string(b), "\nCapEff:\t0000000000000000\n") {
			err = unix.EPERM
		}
		return err
	})
}

// become tries the programs that make one root, without a password.
func become(p *Probe) {
	for _, command := range []string{"sudo -n true", "su -c true", "su root -c true", "doas -n true", "pkexec --disable-internal-agent true", "runuser -u root true", "sg root true", "newgrp root", "setpriv --reuid 0 true"} {
		f := strings.Fields(command)
		for _, dir := range []string{"/usr/bin/", "/usr/sbin/", "/bin/"} {
			if _, err := os.Stat(dir + f[0]); err != nil {
				continue
			}
			p.Try(command, func() error {
				err := exec.Command(dir+f[0], f[1:]...).Run()
				var ended *exec.ExitError
				if errors.As(err, &ended) {
					return fmt.Errorf("%s: %w (%s)", command, unix.EPERM, ended)
				}
				return err
			})
			break
		}
	}
	p.Try("a program by the name of sudo", func() error { _, err := os.Stat("/usr/bin/sudo-of-a-probe"); return err })
}

// makeSetID makes programs that would run as their owner for other users.
func makeSetID(p *Probe) {
	const mode = 0o6755
	n := 0
	fresh := func() string {
		n++
		path := p.In("W", "set-id-"+itoa(n))
		_ = programs.Write(path, []byte(mark), 0o755)
		return path
	}
	for _, w := range []way{
		{"chmod", func(f string) error { return unix.Chmod(f, mode) }},
		{"chmod with bits that the kernel cuts off", func(f string) error { return unix.Chmod(f, mode|1<<16) }},
		{"fchmodat", func(f string) error { return unix.Fchmodat(unix.AT_FDCWD, f, mode, 0) }},
		{"fchmodat2", func(f string) error {
			at, keep := CString(f)
			_, err := Raw(unix.SYS_FCHMODAT2, ^uintptr(99), at, mode, unix.AT_SYMLINK_NOFOLLOW)
			_ = keep
			return err
		}},
		{"fchmod", onFD(func(fd int) error { return unix.Fchmod(fd, mode) })},
		{"chmod through /proc", onPath(func(fd string) error { return unix.Chmod(fd, mode) })},
		{"set-user-id alone", func(f string) error { return unix.Chmod(f, 0o4755) }},
		{"set-group-id alone", func(f string) error { return unix.Chmod(f, 0o2755) }},
		{"open with a mode", func(f string) error {
			return closeOpened(unix.Open(f+"-new", unix.O_CREAT|unix.O_WRONLY|unix.O_CLOEXEC, mode))
		}},
		{"openat2 with a mode", func(f string) error {
			return closeOpened(unix.Openat2(unix.AT_FDCWD, f+"-new", &unix.OpenHow{Flags: unix.O_CREAT | unix.O_WRONLY | unix.O_CLOEXEC, Mode: mode}))
		}},
		{"a file without a name, linked", func(f string) error {
			fd, err := unix.Open(p.Arg("W"), unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, mode)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return unix.Linkat(unix.AT_FDCWD, procFD(fd), unix.AT_FDCWD, f+"-named", unix.AT_SYMLINK_FOLLOW)
		}},
		{"mknod with a mode", func(f string) error { return unix.Mknod(f+"-node", unix.S_IFREG|mode, 0) }},
		{"file capabilities", func(f string) error {
			// Version 2, effective, CAP_NET_RAW.
			return unix.Setxattr(f, "security.capability", []byte{1, 0, 0, 2, 0, 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, 0)
		}},
	} {
		p.Try(w.name, func() error { return w.do(fresh()) })
	}
	if page, err := newLowPage(); err == nil {
		at := page.put([]byte(fresh() + "\x00"))
		p.Try("chmod by the numbers of the 32 bit ABI", func() error { _, err := Forked80([]Call{C(15, at, mode)}); return err })
	}
}

func groups(p *Probe) {
	group, _ := strconv.Atoi(p.Arg("group"))
	p.Try("be in the group", func() error {
		list, err := unix.Getgroups()
		for _, g := range list {
			if g == group {
				return nil
			}
		}
		if err == nil {
			err = unix.EPERM
		}
		return err
	})
	each(func(p *Probe, path string) { p.Read("read "+path, func() ([]byte, error) { return os.ReadFile(path) }) })(p)
}

// preload opens the files that decide which libraries every program of the host
// loads. It writes nothing.
func preload(p *Probe) {
	for _, path := range []string{"/etc/ld.so.conf", "/etc/ld.so.preload", "/etc/ld.so.cache", "/etc/profile", "/etc/passwd", "/etc/bash.bashrc", "/etc/environment"} {
		openForWriting(p, path)
	}
	for _, dir := range []string{"/etc", "/etc/ld.so.conf.d", "/usr/lib", "/usr/bin", "/usr/local/bin", "/etc/profile.d"} {
		p.Try("make a file without a name in "+dir, func() error {
			return closeOpened(unix.Open(dir, unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600))
		})
	}
}

// changeIDs asks the kernel for other users, groups and capabilities, each in a
// process of its own.
func changeIDs(p *Probe) {
	zero, all := uint32(0), [6]uint32{0xffffffff, 0xffffffff, 0xffffffff, 0x1ff, 0x1ff, 0x1ff}
	header := [2]uint32{unix.LINUX_CAPABILITY_VERSION_3, 0}
	for _, a := range []struct {
		name string
		call Call
	}{
		{"setuid to somebody", C(unix.SYS_SETUID, 12345)},
		{"setresuid to root and somebody", C(unix.SYS_SETRESUID, 0, 12345, 0)},
		{"setgid to somebody", C(unix.SYS_SETGID, 12345)},
		{"setresgid to root and somebody", C(unix.SYS_SETRESGID, 0, 12345, 0)},
		{"setgroups to root's", C(unix.SYS_SETGROUPS, 1, Pointer(&zero))},
		{"setgroups to none and back", C(unix.SYS_SETGROUPS, 0, 0)},
		{"capset to all", C(unix.SYS_CAPSET, Pointer(&header), Pointer(&all))},
		{"an ambient capability", C(unix.SYS_PRCTL, unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, unix.CAP_NET_RAW, 0, 0)},
		{"securebits", C(unix.SYS_PRCTL, unix.PR_SET_SECUREBITS, 1)},
		{"dropping a capability from the bound", C(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, unix.CAP_WAKE_ALARM)},
	} {
		p.Try(a.name, func() error { _, err := Forked([]Call{a.call}); return err })
	}
}

// writeAsOwner makes files whose owner is checked outside.
func writeAsOwner(p *Probe) {
	p.Control("make a file", func() error { return create(p.In("W", "made", "file")) })
	for path := range strings.SplitSeq(p.Arg("write"), "\n") {
		p.Try("write "+path, func() error { return overwrite(path) })
	}
	for path := range strings.SplitSeq(p.Arg("read"), "\n") {
		p.Try("open "+path, func() error { return closeOpened(unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)) })
	}
	p.Try("give a file away", func() error { return unix.Chown(p.In("W", "made", "file"), 12345, 12345) })
	p.Try("make a file in /etc", func() error {
		return closeOpened(unix.Open("/etc", unix.O_TMPFILE|unix.O_WRONLY|unix.O_CLOEXEC, 0o600))
	})
}
