//go:build linux

package inside

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// recordCalls do what execve, connect and sendto do, or seem to, with other
// calls.
func recordCalls() map[string]Action {
	return map[string]Action{"talk-messages": talkMessages, "check-exec": checkExec, "exchange-names": exchangeNames}
}

// talkMessages sends to addresses with every call that takes one in a message.
func talkMessages(p *Probe) {
	iov := oneByte()
	noteErrno := func(name string, kind int, f func(fd uintptr) error) {
		err := withSocket(unix.AF_INET, kind, 0, func(fd int) error { return f(uintptr(fd)) })
		p.Note(name, []byte(ErrnoName(err)))
	}
	many := []mmsghdr{messageTo(portOfLoopback(47022), iov), messageTo(portOfLoopback(47023), iov)}
	one := messageTo(portOfLoopback(47021), iov)
	noteErrno("sendmsg", unix.SOCK_DGRAM, func(fd uintptr) error {
		_, err := Raw(unix.SYS_SENDMSG, fd, Pointer(&one.header), 0)
		return err
	})
	noteErrno("sendmmsg", unix.SOCK_DGRAM, func(fd uintptr) error {
		_, err := Raw(unix.SYS_SENDMMSG, fd, Pointer(&many[0]), 2, 0)
		return err
	})
	fast := messageTo(portOfLoopback(47024), iov)
	noteErrno("sendmsg with fast open", unix.SOCK_STREAM, func(fd uintptr) error {
		_, err := Raw(unix.SYS_SENDMSG, fd, Pointer(&fast.header), unix.MSG_FASTOPEN)
		return err
	})
	address := portOfLoopback(47025)
	noteErrno("sendto with fast open", unix.SOCK_STREAM, func(fd uintptr) error {
		_, err := Raw(unix.SYS_SENDTO, fd, Pointer(iov.Base), 1, unix.MSG_FASTOPEN, Pointer(address), unix.SizeofSockaddrInet4)
		return err
	})
	runtime.KeepAlive(iov)
	p.Try("talk by messages", func() error { return nil })
}

// checkExec asks whether a program could be executed, which executes nothing.
func checkExec(p *Probe) {
	const atCheck = 0x10000
	path, name := CString("/bin/true")
	arg, argument := CString("probe-never-executed")
	argv, envp := [2]uintptr{arg}, [1]uintptr{}
	here := unix.AT_FDCWD
	_, err := Raw(unix.SYS_EXECVEAT, uintptr(here), path, Pointer(&argv[0]), Pointer(&envp[0]), atCheck)
	runtime.KeepAlive(name)
	runtime.KeepAlive(argument)
	p.Note("execveat", []byte(ErrnoName(err)))
	p.Try("ask whether it could be executed", func() error { return nil })
}
