//go:build linux

package sys

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// AsTask calls f on a thread that has the ids of the task, and all capabilities of this
// process. No other process may walk through a tripwire root from outside, as by
// /proc/PID/root, not even root (Documentation/filesystems/fuse.rst, "mounting without
// allow_other"). If this process already has the ids, f is just called. What f looks up
// outside the view is no event.
func AsTask(uid, gid int, f func() error) error {
	if os.Geteuid() == uid && os.Getegid() == gid {
		return f()
	}
	done := make(chan error)
	go func() {
		// Never unlocked: the thread ends with the goroutine, and nothing else
		// ever runs on it.
		runtime.LockOSThread()
		if err := TakeIDs(uid, gid); err != nil {
			done <- fmt.Errorf("switching to the ids of the task: %w", err)
			return
		}
		done <- f()
	}()
	return <-done
}

// TakeIDs changes the ids of this thread alone, and keeps its capabilities.
func TakeIDs(uid, gid int) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var caps [2]unix.CapUserData
	if err := unix.Capget(&header, &caps[0]); err != nil {
		return err
	}
	// A change of ids makes the whole process one that cannot be dumped, which
	// is right for a supervisor, so it stays.
	if err := unix.Prctl(unix.PR_SET_KEEPCAPS, 1, 0, 0, 0); err != nil {
		return err
	}
	for _, c := range []struct {
		nr uintptr
		id int
	}{{unix.SYS_SETRESGID, gid}, {unix.SYS_SETRESUID, uid}} {
		id := uintptr(c.id)
		if _, _, errno := unix.RawSyscall(c.nr, id, id, id); errno != 0 {
			return errno
		}
	}
	return unix.Capset(&header, &caps[0])
}
