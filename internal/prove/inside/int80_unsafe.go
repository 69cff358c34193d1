//go:build linux

package inside

import (
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// lowPage is memory that a 32-bit pointer can reach.
type lowPage struct {
	addr uintptr
	used int
}

func newLowPage() (*lowPage, error) {
	addr, err := Raw(unix.SYS_MMAP, 0, 4096, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|map32Bit, ^uintptr(0), 0)
	if err != nil {
		return nil, err
	}
	return &lowPage{addr: addr}, nil
}

// put copies b into the page and returns its address.
func (p *lowPage) put(b []byte) uintptr {
	at := p.addr + uintptr(p.used)
	// The page was mapped above and is never unmapped.
	copy(unsafe.Slice(*(**byte)(unsafe.Pointer(&at)), len(b)), b)
	p.used += (len(b) + 8) &^ 7
	return at
}

// Forked80 is Forked through int 0x80.
func Forked80(calls []Call) (failed int, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return 0, err
	}
	defer unix.Close(pipe[0])
	pid, errno := forkAndCall80(calls, pipe[1])
	unix.Close(pipe[1])
	if errno != 0 {
		return 0, errno
	}
	var answer [2]uint32
	n, _ := unix.Read(pipe[0], unsafe.Slice((*byte)(unsafe.Pointer(&answer)), 8))
	var st unix.WaitStatus
	for {
		if _, err := unix.Wait4(int(pid), &st, 0, nil); err != unix.EINTR {
			break
		}
	}
	if n != 8 {
		return 0, killed{st.Signal()}
	}
	return int(answer[0]), Errno(syscall.Errno(answer[1]))
}

// forkAndCall80 has the same constraints as forkAndCall.
//
//go:norace
//go:noinline
func forkAndCall80(calls []Call, out int) (pid uintptr, errno syscall.Errno) {
	var answer [2]uint32
	pid, _, errno = syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if pid != 0 || errno != 0 {
		return pid, errno
	}
	for i := range calls {
		c := &calls[i]
		r := int80(uint32(c.Nr), uint32(c.Args[0]), uint32(c.Args[1]), uint32(c.Args[2]), uint32(c.Args[3]), uint32(c.Args[4]))
		if r < 0 && r >= -4095 {
			answer[0], answer[1] = uint32(i), uint32(-r)
			break
		}
	}
	syscall.RawSyscall(unix.SYS_WRITE, uintptr(out), uintptr(unsafe.Pointer(&answer)), 8)
	for {
		syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
}
