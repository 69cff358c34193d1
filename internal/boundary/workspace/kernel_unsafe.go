//go:build linux

package workspace

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// The two calls here are made once for each directory and each regular file of a tree.
// They take names directly from a getdents64 buffer, with the NUL after them, to avoid
// making strings that would not be kept.

// openAt opens the directory named nameZ below dir, never through a link.
func openAt(dir int, nameZ []byte) (int, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC | unix.O_NONBLOCK
	for {
		fd, _, e := unix.Syscall6(unix.SYS_OPENAT, uintptr(dir), uintptr(unsafe.Pointer(&nameZ[0])), flags, 0, 0, 0)
		switch e {
		case 0:
			return int(fd), nil
		case unix.EINTR:
		default:
			return -1, e
		}
	}
}

// statAt fills st for the name itself, never for what a link names, and mounts
// nothing.
func statAt(dir int, nameZ []byte, st *unix.Statx_t) error {
	const flags = unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT | unix.AT_STATX_DONT_SYNC
	const mask = unix.STATX_BASIC_STATS | unix.STATX_BTIME
	for {
		// Raw: a status is a look into the kernel's caches, and telling the
		// scheduler of it costs a third as much as the look itself.
		_, _, e := unix.RawSyscall6(unix.SYS_STATX, uintptr(dir), uintptr(unsafe.Pointer(&nameZ[0])), flags, mask, uintptr(unsafe.Pointer(st)), 0)
		switch e {
		case 0:
			return nil
		case unix.EINTR:
		default:
			return e
		}
	}
}
