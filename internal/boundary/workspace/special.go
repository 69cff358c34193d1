//go:build linux

package workspace

import "golang.org/x/sys/unix"

// specialFile says how a file of mode is listed that is neither a regular file, a
// directory nor a link; "" of those.
func specialFile(mode uint16) (Change, string) {
	switch mode & typeMask {
	case unix.S_IFSOCK:
		return Socket, "programs on the host may connect to it"
	case unix.S_IFIFO:
		return FIFO, "programs on the host that open it wait, or read what another writes"
	case unix.S_IFCHR, unix.S_IFBLK:
		return Device, "programs on the host that open it act on a device"
	}
	return "", ""
}
