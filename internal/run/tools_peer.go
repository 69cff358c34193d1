//go:build linux

package run

import (
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// peer is the process that connected, as the kernel says, in our pid namespace
// (SO_PEERCRED, unix(7)).
func peer(c *net.UnixConn) (int, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	var who *unix.Ucred
	var werr error
	if err := raw.Control(func(fd uintptr) { who, werr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return 0, err
	}
	if werr != nil {
		return 0, fmt.Errorf("asking who reports: %w", werr)
	}
	return int(who.Pid), nil
}
