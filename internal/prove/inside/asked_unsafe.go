//go:build linux

package inside

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

func ringSetup(params *[120]byte) (int, error) {
	fd, _, errno := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(params)), 0)
	runtime.KeepAlive(params)
	return int(fd), Errno(errno)
}
