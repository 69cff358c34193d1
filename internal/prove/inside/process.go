//go:build linux

package inside

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func processActions() map[string]Action {
	return map[string]Action{
		"signals":       signals,
		"trace":         trace,
		"vm-access":     vmAccess,
		"meddle":        meddle,
		"wait-sibling":  waitSibling,
		"find-sibling":  findSibling,
		"perf":          perfEvents,
		"dump-core":     each(dumpCore),
		"own-processes": ownProcesses,
	}
}

// signals sends SIGWINCH, which processes ignore by default, by every mechanism.
func signals(p *Probe) {
	pid, err := strconv.Atoi(p.Arg("pid"))
	if err != nil {
		return
	}
	winch := uintptr(unix.SIGWINCH)
	info := [128]byte{}
	info[0], info[8] = byte(unix.SIGWINCH), 0xff // si_signo; si_code is SI_QUEUE, below zero
	info[9], info[10], info[11] = 0xff, 0xff, 0xff
	at := Pointer(&info)
	id := uintptr(pid)
	p.Try("kill with signal 0", func() error { return unix.Kill(pid, 0) })
	p.Try("kill", func() error { return unix.Kill(pid, unix.SIGWINCH) })
	p.Try("kill of the group", func() error { return unix.Kill(-pid, unix.SIGWINCH) })
	p.Try("tkill", func() error { _, err := Raw(unix.SYS_TKILL, id, winch); return err })
	p.Try("tgkill", func() error { _, err := Raw(unix.SYS_TGKILL, id, id, winch); return err })
	p.Try("rt_sigqueueinfo", func() error { _, err := Raw(unix.SYS_RT_SIGQUEUEINFO, id, winch, at); return err })
	p.Try("rt_tgsigqueueinfo", func() error { _, err := Raw(unix.SYS_RT_TGSIGQUEUEINFO, id, id, winch, at); return err })
	p.Try("pidfd_send_signal", func() error {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.PidfdSendSignal(fd, unix.SIGWINCH, nil, 0)
	})
	p.Try("pidfd_send_signal by its directory in /proc", func() error {
		fd, err := unix.Open(ofProc(pid, ""), unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return unix.PidfdSendSignal(fd, unix.SIGWINCH, nil, 0)
	})
	for _, owner := range []int{pid, -pid} {
		p.Try("F_SETOWN and a pipe, to "+itoa(owner), func() error { return ownPipe(owner) })
	}
}

// ownPipe has the kernel signal a process when a pipe has data.
func ownPipe(owner int) error {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	fd := uintptr(pair[0])
	// The signal is set before the owner: the default one would end it.
	if _, err := unix.FcntlInt(fd, unix.F_SETSIG, int(unix.SIGWINCH)); err != nil {
		return err
	}
	if _, err := unix.FcntlInt(fd, unix.F_SETOWN, owner); err != nil {
		return err
	}
	flags, err := unix.FcntlInt(fd, unix.F_GETFL, 0)
	if err != nil {
		return err
	}
	if _, err := unix.FcntlInt(fd, unix.F_SETFL, flags|unix.O_ASYNC); err != nil {
		return err
	}
	_, err = unix.Write(pair[1], []byte("x"))
	return err
}

// trace attaches to the process that the row targets. The tracer ends at once,
// and its target continues.
func trace(p *Probe) {
	pid, err := strconv.Atoi(p.Arg("pid"))
	if err != nil {
		return
	}
	aims := []int{pid}
	if unix.Kill(pid, 0) == unix.ESRCH {
		// A PID namespace of our own: its first process belongs to this run.
		aims = append(aims, 1, os.Getppid())
	}
	for _, aim := range aims {
		p.Try("PTRACE_SEIZE of "+itoa(aim), func() error {
			_, err := Forked([]Call{C(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(aim), 0, 0)})
			return err
		})
	}
}

// vmAccess reads and writes the memory of another process, in the ranges of the
// argument "maps": START-END in hexadecimal, one per line.
func vmAccess(p *Probe) {
	pid, err := strconv.Atoi(p.Arg("pid"))
	if err != nil {
		return
	}
	for place := range strings.FieldsSeq(p.Arg("maps")) {
		var from, to uintptr
		if _, err := fmt.Sscanf(place, "%x-%x", &from, &to); err != nil {
			p.Control("the argument", func() error { return err })
			return
		}
		buf := make([]byte, min(to-from, 4<<20))
		p.Read("process_vm_readv of "+place, func() ([]byte, error) {
			local := []unix.Iovec{{Base: &buf[0], Len: uint64(len(buf))}}
			n, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: from, Len: len(buf)}}, 0)
			return tokensIn(buf[:max(n, 0)]), err
		})
		p.Read("/proc/N/mem at "+place, func() ([]byte, error) {
			f, err := os.Open(ofProc(pid, "mem"))
			if err != nil {
				return nil, err
			}
			defer f.Close()
			n, err := f.ReadAt(buf, int64(from))
			return tokensIn(buf[:n]), err
		})
	}
	p.Try("process_vm_writev of nothing", func() error {
		local := []unix.Iovec{{Base: new(byte), Len: 1}}
		_, err := unix.ProcessVMWritev(pid, local, []unix.RemoteIovec{{Base: badPointer, Len: 1}}, 0)
		if err == unix.EFAULT {
			return nil // it reached the memory
		}
		return err
	})
}

// tokensIn keeps what rows plant and drops the rest of foreign memory.
func tokensIn(b []byte) []byte {
	var out []byte
	for {
		i := bytes.Index(b, []byte("tok-"))
		if i < 0 || len(b) < i+36 {
			return out
		}
		out = append(append(out, b[i:i+36]...), '\n')
		b = b[i+36:]
	}
}

// meddle queries another process and sets values that are already set.
func meddle(p *Probe) {
	pid, err := strconv.Atoi(p.Arg("pid"))
	if err != nil {
		return
	}
	id := uintptr(pid)
	var word [16]uint64
	at := Pointer(&word)
	for _, a := range []struct {
		name string
		call Call
	}{
		{"get_robust_list", C(unix.SYS_GET_ROBUST_LIST, id, at, at+8)},
		{"kcmp", C(unix.SYS_KCMP, uintptr(os.Getpid()), id, 0, 0, 0)},
		{"prlimit", C(unix.SYS_PRLIMIT64, id, unix.RLIMIT_NOFILE, 0, at)},
		{"move_pages, to ask where they are", C(unix.SYS_MOVE_PAGES, id, 0, 0, 0, 0, 0)},
		{"sched_getaffinity", C(unix.SYS_SCHED_GETAFFINITY, id, 128, at)},
		{"sched_getscheduler", C(unix.SYS_SCHED_GETSCHEDULER, id)},
		{"setpriority to what it is", C(unix.SYS_SETPRIORITY, unix.PRIO_PROCESS, id, 0)},
		{"ioprio_get", C(unix.SYS_IOPRIO_GET, 1, id)},
		{"getpgid", C(unix.SYS_GETPGID, id)},
		{"getsid", C(unix.SYS_GETSID, id)},
		{"ptrace in the other direction", C(unix.SYS_PRCTL, unix.PR_SET_PTRACER, id)},
	} {
		p.Try(a.name, func() error { _, err := Forked([]Call{a.call}); return err })
	}
	fd, err := unix.PidfdOpen(pid, 0)
	p.Try("pidfd_open", func() error { return err })
	if err != nil {
		return
	}
	defer unix.Close(fd)
	for target := range 3 {
		p.Try("pidfd_getfd of "+itoa(target), func() error { return closeOpened(unix.PidfdGetfd(fd, target, 0)) })
	}
	p.Try("process_madvise", func() error {
		iov := [2]uint64{4096, 4096}
		_, err := Raw(unix.SYS_PROCESS_MADVISE, uintptr(fd), Pointer(&iov), 1, unix.MADV_COLD, 0)
		return kernelAnswered(err)
	})
	p.Try("setns by pidfd", func() error { return unix.Setns(fd, unix.CLONE_NEWUTS) })
}

// waitSibling is a process for another sandbox to find.
func waitSibling(p *Probe) {
	l, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		err = errors.Join(unix.Bind(l, &unix.SockaddrUnix{Name: "@" + p.Arg("name")}), unix.Listen(l, 1))
	}
	p.Control("listen to an abstract name", func() error { return err })
	for _, dir := range []string{"/tmp", "/dev/shm"} {
		path := dir + "/" + p.Arg("name")
		p.Control("write "+path, func() error { return os.WriteFile(path, []byte(p.Arg("name")), 0o600) })
		defer os.Remove(path)
	}
	p.Control("say that it is there", func() error { return create(p.In("W", "ready")) })
	p.Control("be there until it was looked for", func() error { return p.await("found") })
	gone(p)
}

// findSibling looks for what waitSibling leaves visible.
func findSibling(p *Probe) {
	p.Control("the sibling is there", func() error { return p.await("ready") })
	defer func() { _ = create(p.In("W", "found")) }()
	found := 0
	for _, pid := range otherPIDs() {
		line, err := os.ReadFile(ofProc(pid, "cmdline"))
		if err != nil || !bytes.Contains(line, []byte("wait-sibling\x00")) || !bytes.Contains(line, []byte(p.Arg("name"))) {
			continue
		}
		found = pid
		p.Try("signal the sibling", func() error { return unix.Kill(pid, 0) })
		p.Try("read its environment", func() error { _, err := os.ReadFile(ofProc(pid, "environ")); return err })
	}
	p.Try("see the sibling", func() error {
		if found == 0 {
			return unix.ESRCH
		}
		return nil
	})
	for _, dir := range []string{"/tmp", "/dev/shm"} {
		p.Try("read a file of it in "+dir, func() error { _, err := os.ReadFile(dir + "/" + p.Arg("name")); return err })
	}
	p.Try("connect to its abstract name", func() error { return dial(unix.SOCK_STREAM, "@"+p.Arg("name")) })
}

// perfEvents measures the kernel, a processor and another process.
func perfEvents(p *Probe) {
	pid, _ := strconv.Atoi(p.Arg("pid"))
	for _, a := range []struct {
		name     string
		pid, cpu int
		bits     uint64
	}{
		{"a processor, the kernel in it", -1, 0, 0},
		{"itself, the kernel in it", 0, -1, 0},
		{"itself, the kernel left out", 0, -1, unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv},
		{"another process", pid, -1, unix.PerfBitExcludeKernel | unix.PerfBitExcludeHv},
	} {
		p.Try("measure "+a.name, func() error {
			attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK, Bits: a.bits}
			attr.Size = unix.PERF_ATTR_SIZE_VER1
			return closeOpened(unix.PerfEventOpen(&attr, a.pid, a.cpu, -1, unix.PERF_FLAG_FD_CLOEXEC))
		})
	}
}

// dumpCore crashes a child in a directory.
func dumpCore(p *Probe, dir string) {
	p.Try("crash in "+dir, func() error {
		limit := unix.Rlimit{Cur: 1 << 20, Max: unix.RLIM_INFINITY}
		if err := unix.Prlimit(0, unix.RLIMIT_CORE, nil, &limit); err == nil {
			limit.Cur = min(limit.Max, 1<<20)
			_ = unix.Setrlimit(unix.RLIMIT_CORE, &limit)
		}
		c := exec.Command(os.Args[0], "-child", p.nonce, "abort")
		c.Dir, c.Env = dir, []string{"GOTRACEBACK=crash"}
		err := c.Run()
		var ended *exec.ExitError
		if errors.As(err, &ended) {
			return nil // it ran there, and crashed as intended
		}
		return err
	})
}

// ownProcesses does with its own children what programs do.
func ownProcesses(p *Probe) {
	p.Try("start, signal and wait for a child", func() error {
		c := exec.Command(os.Args[0], "-victim")
		in, err := c.StdinPipe()
		if err != nil {
			return err
		}
		if err := c.Start(); err != nil {
			return err
		}
		defer in.Close()
		if err := errors.Join(unix.Kill(c.Process.Pid, 0), unix.Setpgid(c.Process.Pid, c.Process.Pid)); err != nil && !errors.Is(err, unix.EACCES) {
			return err
		}
		if err := c.Process.Kill(); err != nil {
			return err
		}
		var ended *exec.ExitError
		if err := c.Wait(); !errors.As(err, &ended) {
			return fmt.Errorf("the child was not ended: %w", err)
		}
		return nil
	})
	p.Try("a session of its own", func() error { _, err := Forked([]Call{C(unix.SYS_SETSID)}); return err })
	p.Try("a limit on itself", func() error { return unix.Prlimit(0, unix.RLIMIT_NOFILE, nil, &unix.Rlimit{}) })
	p.Try("a lower priority", func() error {
		_, err := Forked([]Call{C(unix.SYS_SETPRIORITY, unix.PRIO_PROCESS, 0, 5)})
		return err
	})
	p.Try("a descriptor of itself", func() error { return closeOpened(unix.PidfdOpen(os.Getpid(), 0)) })
}
