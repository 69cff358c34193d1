//go:build linux

package inside

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

// withFilter installs a filter on this thread, which must never be used for
// anything else afterwards.
func withFilter(flags uintptr, prog ...unix.SockFilter) (int, error) {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return -1, err
	}
	fprog := unix.SockFprog{Len: uint16(len(prog)), Filter: &prog[0]}
	r, err := Raw(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, Pointer(&fprog))
	return int(r), err
}

func returnAction(action uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action}
}

// listeners looks for the descriptor through which calls are reported, or makes
// another one that answers instead.
func listeners(p *Probe) {
	for fd := 0; fd < 1024; fd++ {
		if to, err := os.Readlink(procFD(fd)); err == nil && fd > 2 && strings.Contains(to, "seccomp") {
			p.Try("descriptor "+itoa(fd)+" leads to "+to, func() error { return nil })
		}
	}
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, link := range links {
		if to, err := os.Readlink(link); err == nil && strings.Contains(to, "seccomp") {
			p.Try(link+" leads to "+to, func() error { return nil })
		}
	}
	for _, pid := range []int{1, os.Getppid()} {
		for _, fd := range []int{3, 4, 5, 6, 7, 8, 9, 10, 11, 12} {
			descriptorOf(p, itoa(pid)+"/"+itoa(fd))
		}
	}
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with this function
		fd, err := withFilter(unix.SECCOMP_FILTER_FLAG_NEW_LISTENER, returnAction(unix.SECCOMP_RET_ALLOW))
		if err == nil {
			unix.Close(fd)
		}
		done <- err
	}()
	err := <-done
	p.Try("have a listener of its own", func() error { return err })
}

// ownFilter installs its own filters before it acts: one that allows everything,
// one that traces and one that logs. Its actions must be recorded all the same.
func ownFilter(p *Probe) {
	for name, action := range map[string]uint32{"allow": unix.SECCOMP_RET_ALLOW, "log": unix.SECCOMP_RET_LOG, "trace": unix.SECCOMP_RET_TRACE} {
		done := make(chan error)
		go func() {
			runtime.LockOSThread()
			// Tracing all calls without a tracer fails them all, so only mkdirat is
			// traced.
			_, err := withFilter(0,
				unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0},
				unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_MKDIRAT, Jf: 1},
				returnAction(action), returnAction(unix.SECCOMP_RET_ALLOW))
			if err == nil {
				err = unix.Mkdir(p.In("W", "under-"+name), 0o755)
			}
			done <- err
		}()
		err := <-done
		p.Note("a directory under a filter: "+name, []byte(ErrnoName(err)))
	}
	// The descriptors that might be needed are closed.
	err := unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_UNSHARE)
	p.Note("close everything", []byte(ErrnoName(err)))
	p.Try("make a directory unseen", func() error {
		return errors.Join(unix.Mkdir(p.In("W", "after-closing"), 0o755))
	})
}
