//go:build linux

package supervise

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// notification is struct seccomp_notif (<linux/seccomp.h>).
type notification struct {
	id    uint64
	pid   uint32 // thread that calls, in our pid namespace; 0 when it is not in ours
	flags uint32
	nr    int32
	arch  uint32
	ip    uint64
	args  [6]uint64
}

// response is struct seccomp_notif_resp.
type response struct {
	id    uint64
	val   int64
	errno int32 // negative
	flags uint32
}

// listener is the descriptor that calls arrive on, with the buffer of its one
// receiver. The kernel may have larger structures than we know of, and writes
// as many bytes as it says.
type listener struct {
	file *os.File
	fd   uintptr
	in   []uint64
	out  int // words of an answer
	pfd  [2]unix.PollFd

	limit unix.Timespec // of a wait
}

func newListener(f *os.File) (*listener, error) {
	var sizes struct{ notif, resp, data uint16 }
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_NOTIF_SIZES, 0, uintptr(unsafe.Pointer(&sizes)))
	if errno != 0 {
		return nil, fmt.Errorf("asking for the size of notifications: %w", errno)
	}
	words := func(kernel uint16, ours uintptr) int { return int((max(uintptr(kernel), ours) + 7) / 8) }
	l := &listener{file: f, fd: f.Fd(),
		in:  make([]uint64, words(sizes.notif, unsafe.Sizeof(notification{}))),
		out: words(sizes.resp, unsafe.Sizeof(response{})),
	}
	// The caller is about to wait for us and we for it: one processor will do.
	// Kernels before 6.6 do not know the flag, and do without.
	unix.Syscall(unix.SYS_IOCTL, l.fd, unix.SECCOMP_IOCTL_NOTIF_SET_FLAGS, unix.SECCOMP_USER_NOTIF_FD_SYNC_WAKE_UP)
	return l, nil
}

// arrived is why the receiver was woken; all false if it waited in vain.
type arrived struct {
	call  bool // one may be received
	other bool // the other descriptor is readable
	over  bool // no process is left that could make a call
}

// wait returns when a call may have arrived, when the descriptor other is
// readable, which may be -1, or after as many nanoseconds, where they are not
// negative. Before Linux 6.11 a RECV does not end when no process is left.
func (l *listener) wait(other int, nanoseconds int64) (a arrived, err error) {
	l.pfd = [2]unix.PollFd{{Fd: int32(l.fd), Events: unix.POLLIN}, {Fd: int32(other), Events: unix.POLLIN}}
	var limit unsafe.Pointer
	if nanoseconds >= 0 {
		l.limit = unix.NsecToTimespec(nanoseconds)
		limit = unsafe.Pointer(&l.limit)
	}
	_, _, errno := unix.Syscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&l.pfd)), uintptr(len(l.pfd)), uintptr(limit), 0, 0, 0)
	switch {
	case errno == unix.EINTR || errno == unix.EAGAIN:
		return a, nil
	case errno != 0:
		return a, fmt.Errorf("waiting for system calls: %w", errno)
	}
	first := l.pfd[0].Revents
	a.call, a.other = first&unix.POLLIN != 0, l.pfd[1].Revents != 0
	a.over = first != 0 && !a.call
	return a, nil
}

// receive takes the next call. n is good until the one after. ENOENT means that
// the caller was killed before it was received, or that none is left.
func (l *listener) receive() (n *notification, errno syscall.Errno) {
	clear(l.in)
	_, _, errno = unix.Syscall(unix.SYS_IOCTL, l.fd, unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&l.in[0])))
	return (*notification)(unsafe.Pointer(&l.in[0])), errno
}

// answer makes the call with this id return e. If e is 0 the call proceeds in the
// kernel, which reads its arguments again.
func (l *listener) answer(id uint64, e syscall.Errno) syscall.Errno {
	r := response{id: id, errno: -int32(e)}
	if e == 0 {
		r.flags = unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE
	}
	return l.send(r)
}

// result makes the call return e, or zero, without going on.
func (l *listener) result(id uint64, e syscall.Errno) syscall.Errno {
	return l.send(response{id: id, errno: -int32(e)})
}

// addFD is struct seccomp_notif_addfd.
type addFD struct {
	id                     uint64
	flags, from, to, flag2 uint32
}

// handIn gives the caller a copy of a descriptor of ours, whose number is the result of
// its call, from any goroutine. ENOENT means that no caller waits for it any more; with
// every other error the call still waits.
//
// It takes no signal: the kernel notes the reply before it waits for the caller to
// take the descriptor (seccomp_notify_addfd in kernel/seccomp.c), and where a signal
// ends that wait the call returns 0, which is not the descriptor. The runtime sends
// signals at any time.
func (l *listener) handIn(id uint64, fd int, cloexec bool) syscall.Errno {
	a := addFD{id: id, flags: unix.SECCOMP_ADDFD_FLAG_SEND, from: uint32(fd)}
	if cloexec {
		a.flag2 = unix.O_CLOEXEC
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all, before unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^all.Val[i]
	}
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &all, &before); err != nil {
		return asErrno(err)
	}
	errno := l.control(unix.SECCOMP_IOCTL_NOTIF_ADDFD, unsafe.Pointer(&a))
	_ = unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil) // it fails for no mask that was one
	return errno
}

// control makes a request of the listener. A signal may end its wait for the lock of
// the listener (mutex_lock_interruptible in kernel/seccomp.c), and nothing was done
// then.
func (l *listener) control(request uintptr, arg unsafe.Pointer) syscall.Errno {
	for {
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, l.fd, request, uintptr(arg)); errno != unix.EINTR {
			runtime.KeepAlive(l)
			return errno
		}
	}
}

func (l *listener) send(r response) syscall.Errno {
	buf := make([]uint64, l.out)
	*(*response)(unsafe.Pointer(&buf[0])) = r
	return l.control(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&buf[0]))
}

// valid reports whether the caller still waits for its answer, so that what was
// read from it before was its own.
func (l *listener) valid(id uint64) bool {
	return l.control(unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&id)) == 0
}
