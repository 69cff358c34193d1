package sys

import (
	"errors"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Peer returns the credentials of the process at the other end of a Unix socket, as
// the kernel took them when it was connected: its number in the pid namespace of this
// process, 0 where it has none there (SO_PEERCRED, unix(7)).
func Peer(c syscall.Conn) (*unix.Ucred, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	var peer *unix.Ucred
	var perr error
	err = raw.Control(func(fd uintptr) { peer, perr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err = errors.Join(err, perr); err != nil {
		return nil, os.NewSyscallError("getsockopt", err)
	}
	return peer, nil
}

// WithShortName calls f with a short name of dir, which is valid until f returns: the
// address of a Unix socket has 108 bytes (unix(7)).
func WithShortName(dir string, f func(short string) error) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return f("/proc/self/fd/" + strconv.Itoa(int(d.Fd())))
}
