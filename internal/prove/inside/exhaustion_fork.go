//go:build linux

package inside

import (
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// pausedChildren forks idle children, all alive at a time, and ends them. It
// returns how many there were, and why there were no more.
func pausedChildren(most int) (int, error) {
	runtime.LockOSThread() // they die with the thread that forked them
	defer runtime.UnlockOSThread()
	var pids []int
	var failed error
	for len(pids) < most {
		pid, errno := forkPaused()
		if errno != 0 {
			failed = errno
			break
		}
		pids = append(pids, int(pid))
	}
	for _, pid := range pids {
		_ = unix.Kill(pid, unix.SIGKILL)
		_, _ = unix.Wait4(pid, nil, 0, nil)
	}
	return len(pids), failed
}

// forkPaused may not grow the stack, allocate or call into the runtime in the
// child, where only this thread exists.
//
//go:norace
//go:noinline
func forkPaused() (pid uintptr, errno syscall.Errno) {
	parent, _, _ := syscall.RawSyscall6(unix.SYS_GETPID, 0, 0, 0, 0, 0, 0)
	pid, _, errno = syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if pid != 0 || errno != 0 {
		return pid, errno
	}
	syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0, 0)
	if now, _, _ := syscall.RawSyscall6(unix.SYS_GETPPID, 0, 0, 0, 0, 0, 0); now != parent {
		syscall.RawSyscall6(unix.SYS_EXIT_GROUP, 0, 0, 0, 0, 0, 0) // it died before this was set
	}
	for {
		syscall.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
	}
}
