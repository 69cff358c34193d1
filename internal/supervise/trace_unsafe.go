//go:build linux

package supervise

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// traceReport is what a thread that is traced did next.
type traceReport struct {
	pid   int // its number now: a thread that executes takes its process's
	ended bool
	event int // a PTRACE_EVENT_ constant, 0 for a signal that is about to be delivered
	sig   int // the signal of the stop
}

// childInfo is the beginning of a siginfo_t about a child, on 64 bits.
type childInfo struct {
	signo, errno, code, _ int32
	pid                   int32
	uid                   uint32
	status                int32
	_                     [100]byte
}

const childTrapped = 4 // CLD_TRAPPED

// nextReport waits for the next event of the threads that this thread traces, but not
// of our children, for which others wait. The death of a traced thread is not reported
// to its parent until it is reported here.
func nextReport() (traceReport, syscall.Errno) {
	const which = unix.WEXITED | unix.WSTOPPED | unix.WCLONE | unix.WNOTHREAD
	for {
		var info childInfo
		_, _, errno := unix.Syscall6(unix.SYS_WAITID, unix.P_ALL, 0, uintptr(unsafe.Pointer(&info)), which, 0, 0)
		if errno == unix.EINTR {
			continue
		}
		return traceReport{pid: int(info.pid), ended: info.code != childTrapped, event: int(info.status >> 8), sig: int(info.status & 0x7f)}, errno
	}
}

// seize begins to trace a thread without stopping it. Its executions are reported, and
// it is killed if this thread ends before it detaches.
func seize(tid int) syscall.Errno {
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(tid), 0, unix.PTRACE_O_TRACEEXEC|unix.PTRACE_O_EXITKILL, 0, 0)
	return errno
}

// interrupt makes a thread that is traced stop before it runs its program's next
// instruction.
func interrupt(tid int) syscall.Errno {
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_INTERRUPT, uintptr(tid), 0, 0, 0, 0)
	return errno
}

// detach ends the tracing of a thread that is stopped, and delivers sig to it.
func detach(tid, sig int) syscall.Errno {
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_DETACH, uintptr(tid), 0, uintptr(sig), 0, 0)
	return errno
}

// returnValue is what the last call of a stopped thread returned: a negative number is
// an error.
func returnValue(tid int) (int64, syscall.Errno) {
	var regs [resultRegister + 1]uint64 // as many as it takes: each is copied twice
	span := unix.Iovec{Base: (*byte)(unsafe.Pointer(&regs[0])), Len: uint64(unsafe.Sizeof(regs))}
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_GETREGSET, uintptr(tid), unix.NT_PRSTATUS, uintptr(unsafe.Pointer(&span)), 0, 0)
	return int64(regs[resultRegister]), errno
}
