//go:build linux

package supervise

import (
	"encoding/binary"
	"strings"

	"golang.org/x/sys/unix"
)

// pages is the page table of the process that was looked at last.
type pages struct {
	of   *proc
	exec uint64 // number of the program that it ran
	fd   int    // -1 for none
}

// Bits of an entry of /proc/PID/pagemap (Documentation/admin-guide/mm/pagemap.rst).
const (
	pagePresent = 1 << 63
	pageShared  = 1 << 61 // of a file, or of memory that is shared
)

// reachable says whether another than the caller can change what its arguments
// say, while its call is under way: another thread, a process with the same
// memory, or one that has the page mapped or opened where a path stands.
func (s *Supervisor) reachable(c *call) bool {
	p := c.proc
	if s.sharing || c.tid != p.pid || p.pidfd < 0 {
		return true
	}
	if s.threads(p) != 1 {
		return true
	}
	if !p.apart {
		if p.apart = !sameMemory(p.pid, p.parent); !p.apart { // vfork(2), among others
			return true
		}
	}
	return !s.own(p, c.arg(c.info.path)) || c.info.path2 >= 0 && !s.own(p, c.arg(c.info.path2))
}

// threads is how many threads p has, 0 where that cannot be read.
func (s *Supervisor) threads(p *proc) int {
	var st unix.Stat_t
	r := s.resolver
	r.name = append(p.entry(r.name[:0], p.pid), "task\x00"...)
	if fstatat(p.base(), r.name, &st, 0) != 0 {
		return 0
	}
	return int(st.Nlink) - 2 // proc_task_getattr in fs/proc/base.c
}

// own says whether a path at addr stands in memory that is p's alone. It may go on
// in the page after.
func (s *Supervisor) own(p *proc, addr uint64) bool {
	if s.pages.of != p || s.pages.exec != p.now.exec || s.pages.fd < 0 {
		s.pages.close()
		name := append(p.entry(nil, p.pid), "pagemap"...)
		fd, err := unix.Openat(p.base(), string(name), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return false
		}
		s.pages = pages{of: p, exec: p.now.exec, fd: fd}
	}
	var two [16]byte
	n, err := unix.Pread(s.pages.fd, two[:], int64(addr/s.memory.page*8))
	if err != nil || n < 8 {
		return false
	}
	first := binary.NativeEndian.Uint64(two[:])
	next := binary.NativeEndian.Uint64(two[8:])
	return first&pagePresent != 0 && (first|next)&pageShared == 0
}

func (g *pages) close() {
	if g.of != nil && g.fd >= 0 {
		unix.Close(g.fd)
	}
	*g = pages{}
}

// sameMemory says whether two processes share their memory, or that it cannot be
// found out (kcmp(2)).
func sameMemory(a, b int) bool {
	const kcmpVM = 1
	r, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(a), uintptr(b), kcmpVM, 0, 0, 0)
	return errno != unix.ESRCH && (errno != 0 || r == 0)
}

// Flags of clone(2) that give a process memory, working directory or descriptors
// in common with another.
const commonFlags = unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES

// shares notes that from now on processes may share what the arguments of a call
// mean, as clone(2) makes them.
func (s *Supervisor) shares(c *call) {
	s.sharing = s.sharing || c.nr == unix.SYS_CLONE && c.args[0]&commonFlags != 0 && c.args[0]&unix.CLONE_THREAD == 0
}

// memoryOf says whether a path is the memory of a process, which may be another's.
func memoryOf(at string) bool {
	return strings.HasPrefix(at, "/proc/") && strings.HasSuffix(at, "/mem")
}
