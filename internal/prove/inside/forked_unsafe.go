//go:build linux

package inside

import (
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Call is a raw system call.
type Call struct {
	Nr   uintptr
	Args [6]uintptr
}

// C makes a Call.
func C(nr uintptr, args ...uintptr) Call {
	c := Call{Nr: nr}
	copy(c.Args[:], args)
	return c
}

// CString returns the address of s with a NUL after it, for a Call. Keep the
// second result alive until the call is over.
func CString(s string) (uintptr, *byte) {
	b, err := unix.BytePtrFromString(s)
	if err != nil {
		panic(err) // a probe's own constant contains a NUL
	}
	return uintptr(unsafe.Pointer(b)), b
}

// Pointer returns the address of v, for a Call or Raw.
func Pointer[T any](v *T) uintptr { return uintptr(unsafe.Pointer(v)) }

// Forked makes the calls one after the other in a child with a single thread,
// which unshare(CLONE_NEWUSER) and the like demand and no Go program has. It
// returns the error of the first call that fails, and its index; for a killed
// child it returns an error with the name of the signal.
func Forked(calls []Call) (failed int, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return 0, err
	}
	defer unix.Close(pipe[0])
	pid, errno := forkAndCall(calls, pipe[1])
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

// killed is the end of a child by a signal.
type killed struct{ signal syscall.Signal }

func (k killed) Error() string { return "the child was killed by " + unix.SignalName(k.signal) }

// forkAndCall must not grow the stack, allocate or call into the runtime in
// the child, where only this thread exists.
//
//go:norace
//go:noinline
func forkAndCall(calls []Call, out int) (pid uintptr, errno syscall.Errno) {
	var answer [2]uint32
	pid, _, errno = syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if pid != 0 || errno != 0 {
		return pid, errno
	}
	for i := range calls {
		c := &calls[i]
		_, _, errno := syscall.RawSyscall6(c.Nr, c.Args[0], c.Args[1], c.Args[2], c.Args[3], c.Args[4], c.Args[5])
		if errno != 0 {
			answer[0], answer[1] = uint32(i), uint32(errno)
			break
		}
	}
	syscall.RawSyscall(unix.SYS_WRITE, uintptr(out), uintptr(unsafe.Pointer(&answer)), 8)
	for {
		syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
}
