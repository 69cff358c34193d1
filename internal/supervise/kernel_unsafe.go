//go:build linux

package supervise

import (
	"bytes"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// These calls are made for every event, so they take their names from buffers
// that end in a zero byte and allocate nothing.

// fstatat looks at name below dir without following it.
func fstatat(dir int, name []byte, st *unix.Stat_t, flags int) syscall.Errno {
	_, _, errno := unix.Syscall6(unix.SYS_NEWFSTATAT, uintptr(dir), uintptr(unsafe.Pointer(unsafe.SliceData(name))),
		uintptr(unsafe.Pointer(st)), uintptr(flags), 0, 0)
	return errno
}

// readlinkat reads a link into buf.
func readlinkat(dir int, name, buf []byte) ([]byte, syscall.Errno) {
	n, _, errno := unix.Syscall6(unix.SYS_READLINKAT, uintptr(dir), uintptr(unsafe.Pointer(unsafe.SliceData(name))),
		uintptr(unsafe.Pointer(unsafe.SliceData(buf))), uintptr(len(buf)), 0, 0)
	if errno != 0 {
		return nil, errno
	}
	return buf[:n], 0
}

// openIn opens name with root as the root directory, as a process inside would
// come there, and not through links of /proc that lead out of it.
func openIn(root int, name []byte, flags uint64) (int, syscall.Errno) {
	how := unix.OpenHow{Flags: flags | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	for try := 0; ; try++ {
		fd, _, errno := unix.Syscall6(unix.SYS_OPENAT2, uintptr(root), uintptr(unsafe.Pointer(unsafe.SliceData(name))),
			uintptr(unsafe.Pointer(&how)), unix.SizeofOpenHow, 0, 0)
		// Something was renamed or mounted anywhere on the host while the kernel walked
		// past "..": the mounts of a run that ends go away in 100 µs.
		if errno != unix.EAGAIN && errno != unix.EINTR || try == 200 {
			return int(fd), errno
		}
		if try > 20 {
			time.Sleep(50 * time.Microsecond)
		}
	}
}

// pidInfo is the first version of struct pidfd_info, of Linux 6.13.
type pidInfo struct {
	mask, cgroup                                                      uint64
	pid, tgid, ppid, ruid, rgid, euid, egid, suid, sgid, fsuid, fsgid uint32
	code                                                              int32
}

const pidfdGetInfo = 0xc040ff0b // PIDFD_GET_INFO for that size

// aboutProcess asks whose process it is; ok is false when it is reaped, and on
// kernels before 6.13.
func aboutProcess(pidfd int) (info pidInfo, ok bool) {
	info.mask = unix.PIDFD_INFO_PID | unix.PIDFD_INFO_CREDS
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(pidfd), pidfdGetInfo, uintptr(unsafe.Pointer(&info)))
	return info, errno == 0 && info.mask&unix.PIDFD_INFO_CREDS != 0
}

// exitCode asks how the process ended; ok is false while it is not reaped, and
// on kernels before 6.15.
func exitCode(pidfd int) (status syscall.WaitStatus, ok bool) {
	info := pidInfo{mask: unix.PIDFD_INFO_EXIT}
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(pidfd), pidfdGetInfo, uintptr(unsafe.Pointer(&info)))
	return syscall.WaitStatus(uint32(info.code)), errno == 0 && info.mask&unix.PIDFD_INFO_EXIT != 0
}

// memory reads what processes point at. It is for one goroutine.
type memory struct {
	remote [maxSpans]unix.RemoteIovec
	local  [maxSpans]unix.Iovec
	page   uint64
}

// maxSpans bounds how many pieces one reading has.
const maxSpans = 256

func newMemory() *memory { return &memory{page: uint64(os.Getpagesize())} }

// read fills dst with the memory at addr, up to the first page that cannot be read.
// errno says why nothing could be read; an n shorter than dst means that a page ended
// it.
func (m *memory) read(tid int, addr uint64, dst []byte) (n int, errno syscall.Errno) {
	spans := 0
	m.local[0] = unix.Iovec{Base: unsafe.SliceData(dst), Len: uint64(len(dst))}
	// A piece that crosses into an unreadable page may be given up as a whole,
	// so no piece crosses one.
	for at, left := addr, uint64(len(dst)); left > 0 && spans < maxSpans; spans++ {
		size := min(left, m.page-at%m.page)
		m.remote[spans] = unix.RemoteIovec{Base: uintptr(at), Len: int(size)}
		at, left = at+size, left-size
	}
	return m.transfer(tid, 1, spans)
}

// fill fills all of dst with the memory at addr.
func (m *memory) fill(tid int, addr uint64, dst []byte) syscall.Errno {
	n, errno := m.read(tid, addr, dst)
	if errno == 0 && n < len(dst) {
		return unix.EFAULT
	}
	return errno
}

// transfer reads the pieces in m.remote into those in m.local.
func (m *memory) transfer(tid, locals, remotes int) (n int, errno syscall.Errno) {
	if remotes == 0 {
		return 0, 0
	}
	r, _, errno := unix.Syscall6(unix.SYS_PROCESS_VM_READV, uintptr(tid), uintptr(unsafe.Pointer(&m.local[0])), uintptr(locals),
		uintptr(unsafe.Pointer(&m.remote[0])), uintptr(remotes), 0)
	if errno != 0 {
		return 0, errno
	}
	return int(r), 0
}

// firstRead is how much of a string is read at first: nearly all end there.
const firstRead = 256

// text reads a string of at most len(dst) bytes. It returns the part of dst without the
// zero byte. whole is false if there was none: the string is longer, or (with errno)
// continues where nothing can be read.
func (m *memory) text(tid int, addr uint64, dst []byte) (s []byte, whole bool, errno syscall.Errno) {
	have := 0
	for have < len(dst) {
		want := dst[have:]
		if have == 0 && len(want) > firstRead {
			want = want[:firstRead]
		}
		n, errno := m.read(tid, addr+uint64(have), want)
		if errno != 0 {
			return dst[:have], false, errno
		}
		if i := bytes.IndexByte(want[:n], 0); i >= 0 {
			return dst[:have+i], true, 0
		}
		have += n
		if n < len(want) {
			return dst[:have], false, unix.EFAULT
		}
	}
	return dst, false, 0
}

// words reads numbers of eight bytes; n is how many there were.
func (m *memory) words(tid int, addr uint64, dst []uint64) (n int, errno syscall.Errno) {
	raw := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(dst))), 8*len(dst))
	got, errno := m.read(tid, addr, raw)
	return got / 8, errno
}
