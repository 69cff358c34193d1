//go:build linux

package inside

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

func syscallsActions() map[string]Action {
	return map[string]Action{
		"calls":            calls,
		"io-uring-ring":    ioUringRing,
		"open-by-int80":    openByInt80,
		"high-bits":        highBits,
		"families":         families,
		"netlinks":         netlinks,
		"raw-sockets":      rawSockets,
		"family-pairs":     familyPairs,
		"own-privileges":   ownPrivileges,
		"own-filters":      ownFilters,
		"filters-of-child": filtersOfChild,
		"time-calls":       timeCalls,
		"vsyscall":         func(*Probe) { callVsyscall() },
	}
}

// spelled is a system call by its number in each ABI; 0 if the ABI does not have
// it.
type spelled struct {
	name  string
	nr    uintptr
	nr386 uintptr
	args  []uintptr
}

// badPointer is an address at which nothing is ever mapped: a call that reaches
// the kernel fails with EFAULT and has done nothing.
const badPointer = 1

const minusOne = ^uintptr(0)

// callLists are calls with invalid arguments, so that one that is let through
// does nothing.
func callLists() map[string][]spelled {
	a := func(v ...uintptr) []uintptr { return v }
	return map[string][]spelled{
		"io_uring": {
			{"io_uring_setup", unix.SYS_IO_URING_SETUP, 425, a(1, badPointer)},
			{"io_uring_enter", unix.SYS_IO_URING_ENTER, 426, a(minusOne, 0, 0, 0)},
			{"io_uring_register", unix.SYS_IO_URING_REGISTER, 427, a(minusOne, 0, 0, 0)},
		},
		"bpf": {
			{"bpf, load a program", unix.SYS_BPF, 357, a(unix.BPF_PROG_LOAD, badPointer, 48)},
			{"bpf, make a map", unix.SYS_BPF, 357, a(unix.BPF_MAP_CREATE, badPointer, 48)},
			{"bpf, get a pinned object", unix.SYS_BPF, 357, a(unix.BPF_OBJ_GET, badPointer, 16)},
		},
		"keys": {
			{"keyctl, get an id", unix.SYS_KEYCTL, 288, a(unix.KEYCTL_GET_KEYRING_ID, ^uintptr(4), 0)},
			{"keyctl, read", unix.SYS_KEYCTL, 288, a(unix.KEYCTL_READ, 0, badPointer, 0)},
			{"keyctl, give the session to the parent", unix.SYS_KEYCTL, 288, a(unix.KEYCTL_SESSION_TO_PARENT)},
			{"add_key", unix.SYS_ADD_KEY, 286, a(badPointer, badPointer, 0, 0, 0)},
			{"request_key", unix.SYS_REQUEST_KEY, 287, a(badPointer, badPointer, 0, 0)},
		},
		"modules": {
			{"init_module", unix.SYS_INIT_MODULE, 128, a(badPointer, 64, badPointer)},
			{"finit_module", unix.SYS_FINIT_MODULE, 350, a(minusOne, badPointer, 0)},
			{"delete_module", unix.SYS_DELETE_MODULE, 129, a(badPointer, 0)},
		},
		"host": {
			{"kexec_load", unix.SYS_KEXEC_LOAD, 283, a(0, 1, badPointer, 0xffff)},
			{"reboot", unix.SYS_REBOOT, 88, a(0, 0, 0, 0)},
			{"swapon", unix.SYS_SWAPON, 87, a(badPointer, 0)},
			{"swapoff", unix.SYS_SWAPOFF, 115, a(badPointer)},
			{"acct", unix.SYS_ACCT, 51, a(badPointer)},
			{"quotactl", unix.SYS_QUOTACTL, 131, a(0x7fffff00, badPointer, 0, 0)},
			{"syslog", unix.SYS_SYSLOG, 103, a(3, badPointer, 16)},
			{"settimeofday", unix.SYS_SETTIMEOFDAY, 79, a(badPointer, 0)},
			{"clock_settime", unix.SYS_CLOCK_SETTIME, 264, a(0, badPointer)},
			{"sethostname", unix.SYS_SETHOSTNAME, 74, a(badPointer, 1)},
			{"fanotify_init", unix.SYS_FANOTIFY_INIT, 338, a(0, 0)},
		},
		"ports":       portCalls(),
		"personality": {{"personality without random addresses", unix.SYS_PERSONALITY, 136, a(noRandomAddresses)}, {"personality of 32 bits", unix.SYS_PERSONALITY, 136, a(8)}},
		"processes": {
			{"ptrace, attach to the first process", unix.SYS_PTRACE, 26, a(unix.PTRACE_ATTACH, 0x3fffffff, 0, 0)},
			{"ptrace, be traced", unix.SYS_PTRACE, 26, a(unix.PTRACE_TRACEME, 0, 0, 0)},
			{"process_vm_readv", unix.SYS_PROCESS_VM_READV, 347, a(0x3fffffff, badPointer, 1, badPointer, 1)},
			{"process_vm_writev", unix.SYS_PROCESS_VM_WRITEV, 348, a(0x3fffffff, badPointer, 1, badPointer, 1)},
			{"pidfd_getfd", unix.SYS_PIDFD_GETFD, 438, a(minusOne, 0, 0)},
			{"process_madvise", unix.SYS_PROCESS_MADVISE, 440, a(minusOne, badPointer, 1, 4, 0)},
			{"kcmp", unix.SYS_KCMP, 349, a(0x3fffffff, 0x3fffffff, 0, 0, 0)},
		},
		"surface": {
			{"userfaultfd", unix.SYS_USERFAULTFD, 374, a(0xffff0000)},
			{"userfaultfd for user mode only", unix.SYS_USERFAULTFD, 374, a(1)},
			{"perf_event_open", unix.SYS_PERF_EVENT_OPEN, 336, a(badPointer, 0, minusOne, minusOne, 0)},
			{"memfd_secret", unix.SYS_MEMFD_SECRET, 447, a(0x7fffffff)},
			{"lookup_dcookie", unix.SYS_LOOKUP_DCOOKIE, 253, a(0, badPointer, 1)},
			{"vmsplice of a gift", unix.SYS_VMSPLICE, 316, a(minusOne, badPointer, 1, 8)},
		},
		"handles": {
			{"name_to_handle_at", unix.SYS_NAME_TO_HANDLE_AT, 341, a(minusOne, badPointer, badPointer, badPointer, 0)},
			{"open_by_handle_at", unix.SYS_OPEN_BY_HANDLE_AT, 342, a(minusOne, badPointer, 0)},
		},
		"namespaces": {
			{"unshare", unix.SYS_UNSHARE, 310, a(unix.CLONE_NEWUSER)},
			{"unshare of mounts", unix.SYS_UNSHARE, 310, a(unix.CLONE_NEWUSER | unix.CLONE_NEWNS)},
			{"setns", unix.SYS_SETNS, 346, a(minusOne, 0)},
			{"clone3", unix.SYS_CLONE3, 435, a(badPointer, 64)},
			{"mount", unix.SYS_MOUNT, 21, a(badPointer, badPointer, badPointer, 0, 0)},
			{"umount2", unix.SYS_UMOUNT2, 52, a(badPointer, 0)},
			{"pivot_root", unix.SYS_PIVOT_ROOT, 217, a(badPointer, badPointer)},
			{"chroot", unix.SYS_CHROOT, 61, a(badPointer)},
			{"open_tree", unix.SYS_OPEN_TREE, 428, a(minusOne, badPointer, 1)},
			{"fsopen", unix.SYS_FSOPEN, 430, a(badPointer, 0)},
			{"mount_setattr", unix.SYS_MOUNT_SETATTR, 442, a(minusOne, badPointer, 0, badPointer, 32)},
		},
	}
}

const noRandomAddresses = 0x40000

// kernelAnswered turns an answer of the kernel itself into success: a call that reached
// it was not refused.
func kernelAnswered(err error) error {
	switch name := ErrnoName(err); {
	case err == nil, name == "EPERM", name == "EACCES", name == "ENOSYS", strings.HasPrefix(name, "SIG"):
		return err
	}
	return nil
}

// calls makes those of the lists in the argument "list", through the ABI in
// "abi".
func calls(p *Probe) {
	for list := range strings.SplitSeq(p.Arg("list"), "\n") {
		for _, c := range callLists()[list] {
			do, nr := Forked, c.nr
			switch p.Arg("abi") {
			case "int80":
				do, nr = Forked80, c.nr386
			case "x32":
				nr |= 0x40000000
			case "high":
				nr |= 1 << 32
			}
			if nr&0xfff == 0 {
				continue
			}
			p.Try(c.name, func() error {
				_, err := do([]Call{C(nr, c.args...)})
				return kernelAnswered(err)
			})
		}
	}
}

// ioUringRing sets up a ring as a program would, in a thread of its own.
func ioUringRing(p *Probe) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		p.Try("set up a ring in a second thread", func() error {
			var params [120]byte // struct io_uring_params
			fd, err := Raw(unix.SYS_IO_URING_SETUP, 4, Pointer(&params[0]))
			if err == nil {
				unix.Close(int(fd))
			}
			return err
		})
	}()
	<-done
}

// openByInt80 reads, overwrites and runs with the numbers of another ABI.
func openByInt80(p *Probe) {
	page, err := newLowPage()
	if err != nil {
		p.Control("memory below 4 GiB", func() error { return err })
		return
	}
	path := page.put([]byte(p.Arg("path") + "\x00"))
	program := page.put([]byte("/bin/true\x00"))
	sock := page.put([]byte{1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0})
	for _, a := range []struct {
		name string
		call Call
	}{
		{"open for reading", C(5, path, unix.O_RDONLY)},
		{"open, truncated", C(5, path, unix.O_WRONLY|unix.O_TRUNC)},
		{"openat, truncated", C(295, ^uintptr(99), path, unix.O_WRONLY|unix.O_TRUNC)},
		{"creat", C(8, path, 0o644)},
		{"chmod", C(15, path, 0o777)},
		{"unlink", C(10, path)},
		{"execve", C(11, program, 0, 0)},
		{"socketcall", C(102, 1, sock)},
		{"socket", C(359, 1, 1, 0)},
		{"getpid", C(20)},
	} {
		p.Try(a.name, func() error { _, err := Forked80([]Call{a.call}); return err })
	}
}

// highBits sets bits in arguments that the kernel ignores and a careless filter
// compares.
func highBits(p *Probe) {
	const high = 1 << 32
	for _, a := range []struct {
		name string
		call Call
	}{
		{"socket of packets", C(unix.SYS_SOCKET, unix.AF_PACKET|high, unix.SOCK_RAW, 0)},
		{"socket to a hypervisor", C(unix.SYS_SOCKET, unix.AF_VSOCK|high, unix.SOCK_STREAM, 0)},
		{"socket of ciphers", C(unix.SYS_SOCKET, unix.AF_ALG|high, unix.SOCK_SEQPACKET, 0)},
		{"raw socket", C(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_RAW|high, unix.IPPROTO_ICMP)},
		{"personality", C(unix.SYS_PERSONALITY, noRandomAddresses|high)},
		{"clone into a user namespace", C(unix.SYS_CLONE, unix.CLONE_NEWUSER|uintptr(unix.SIGCHLD)|high)},
		{"bpf", C(unix.SYS_BPF, unix.BPF_OBJ_GET|high, badPointer, 16)},
		{"keyctl", C(unix.SYS_KEYCTL, unix.KEYCTL_READ|high, 0, badPointer, 0)},
		{"ioctl that types, on no terminal", C(unix.SYS_IOCTL, minusOne, unix.TIOCSTI|high, badPointer)},
	} {
		p.Try(a.name, func() error {
			_, err := Forked([]Call{a.call})
			switch ErrnoName(err) {
			case "EAFNOSUPPORT", "EBADF":
				return err
			}
			return kernelAnswered(err)
		})
	}
}

// timeCalls ask for the time in every way.
func timeCalls(p *Probe) {
	p.Try("the page that the kernel lends", func() error {
		if time.Now().Before(time.Unix(1, 0)) {
			return unix.EINVAL
		}
		return nil
	})
	p.Try("clock_gettime", func() error { return unix.ClockGettime(unix.CLOCK_REALTIME, &unix.Timespec{}) })
	p.Try("gettimeofday", func() error { return unix.Gettimeofday(&unix.Timeval{}) })
	if maps, err := os.ReadFile("/proc/self/maps"); err == nil && bytes.Contains(maps, []byte("[vsyscall]")) && runtime.GOARCH == "amd64" {
		p.Child("the page of old programs", "vsyscall", nil)
	}
}

// ownPrivileges checks what this process was left with.
func ownPrivileges(p *Probe) {
	p.Try("gain privileges by execve", func() error {
		on, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
		if err == nil && on == 1 {
			err = unix.EPERM
		}
		return err
	})
	status, err := os.ReadFile("/proc/self/status")
	p.Control("read the own status", func() error { return err })
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":\t")
		if !strings.HasPrefix(name, "Cap") {
			continue
		}
		p.Try("have capabilities in "+name, func() error {
			if strings.Trim(value, "0") == "" {
				return unix.EPERM
			}
			return nil
		})
	}
}

func ownFilters(p *Probe) {
	release := make(chan struct{})
	defer close(release)
	for range 3 {
		started := make(chan struct{})
		go func() {
			runtime.LockOSThread()
			close(started)
			<-release
		}()
		<-started
	}
	filtersOfChild(p)
	p.Child("a child", "filters-of-child", nil, "children=1")
}

// filtersOfChild checks every thread of this process, and of a child if the
// argument "children" asks for one.
func filtersOfChild(p *Probe) {
	tasks, err := os.ReadDir("/proc/self/task")
	p.Control("list the own threads", func() error { return err })
	for _, t := range tasks {
		p.Try("a thread without a filter", func() error {
			b, err := os.ReadFile("/proc/self/task/" + t.Name() + "/status")
			if err != nil {
				return err
			}
			if bytes.Contains(b, []byte("\nSeccomp:\t2\n")) {
				return unix.EPERM
			}
			return nil
		})
	}
	if p.Arg("children") != "" {
		p.Child("a grandchild", "filters-of-child", nil, "children=")
	}
}

// families opens a socket of each family in the argument, one NAME=NUMBER per
// line.
func families(p *Probe) {
	for line := range strings.SplitSeq(p.Arg("family"), "\n") {
		var family, kind, protocol int
		if _, err := fmt.Sscanf(line, "%d %d %d", &family, &kind, &protocol); err != nil {
			p.Control("the arguments", func() error { return err })
			continue
		}
		p.Try(fmt.Sprintf("socket of family %d, type %d, protocol %d", family, kind, protocol), func() error {
			fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, protocol)
			if err == nil {
				unix.Close(fd)
			}
			return err
		})
	}
}
