//go:build linux

package supervise

import (
	"bytes"
	"encoding/binary"
	"strings"

	"golang.org/x/sys/unix"
)

// looked is the process whose call was looked at last, opened: few programs write
// files in turn with another.
type looked struct {
	of    *proc
	exec  uint64 // number of the program that it ran
	pages int    // its page table; -1 for none
	tasks int    // its directory of threads; -1 for none
}

// Bits of an entry of /proc/PID/pagemap (Documentation/admin-guide/mm/pagemap.rst).
const (
	pagePresent = 1 << 63
	pageShared  = 1 << 61 // of a file, or of memory that is shared
)

// reachable reports whether anything but the caller can change its arguments while the
// call is under way: another thread, a process with the same memory, or one that has
// mapped or opened the page with a path.
func (s *Supervisor) reachable(c *call) bool {
	p := c.proc
	if s.sharing || c.tid != p.pid || p.pidfd < 0 {
		return true
	}
	if s.openLooked(p); s.looked.threads() != 1 {
		return true
	}
	if !p.apart {
		if p.apart = !sameMemory(p.pid, p.parent); !p.apart { // vfork(2), among others
			return true
		}
	}
	size := s.memory.page
	return !s.looked.isPrivateMemory(c.arg(c.info.path), size) || c.info.path2 >= 0 && !s.looked.isPrivateMemory(c.arg(c.info.path2), size)
}

// openLooked opens p, where that is not done yet.
func (s *Supervisor) openLooked(p *proc) {
	l := &s.looked
	if l.of == p && l.exec == p.now.exec {
		return
	}
	l.close()
	*l = looked{of: p, exec: p.now.exec, pages: openOf(p, "pagemap", unix.O_RDONLY), tasks: openOf(p, "task", unix.O_PATH)}
}

// openOf opens an entry of p in /proc, -1 where that cannot be.
func openOf(p *proc, entry string, flags int) int {
	fd, err := unix.Openat(p.base(), string(append(p.entry(nil, p.pid), entry...)), flags|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	return fd
}

// threads is how many threads the process has, 0 where that cannot be read.
func (l *looked) threads() int {
	var st unix.Stat_t
	if unix.Fstat(l.tasks, &st) != nil {
		return 0
	}
	return int(st.Nlink) - 2 // proc_task_getattr in fs/proc/base.c
}

// isPrivateMemory reports whether a path at addr is in memory that belongs to the process
// alone, in pages of that size. It may extend into the next page.
func (l *looked) isPrivateMemory(addr, size uint64) bool {
	var two [16]byte
	n, err := unix.Pread(l.pages, two[:], int64(addr/size*8))
	if err != nil || n < 8 {
		return false
	}
	first := binary.NativeEndian.Uint64(two[:])
	next := binary.NativeEndian.Uint64(two[8:])
	return first&pagePresent != 0 && (first|next)&pageShared == 0
}

func (l *looked) close() {
	if l.of == nil {
		return
	}
	for _, fd := range []int{l.pages, l.tasks} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	*l = looked{}
}

// sameMemory reports whether two processes share their memory, or that it cannot be
// found out (kcmp(2)).
func sameMemory(a, b int) bool {
	const kcmpVM = 1
	r, _, errno := unix.Syscall6(unix.SYS_KCMP, uintptr(a), uintptr(b), kcmpVM, 0, 0, 0)
	return errno != unix.ESRCH && (errno != 0 || r == 0)
}

// Flags of clone(2) that give a process memory, working directory or descriptors
// in common with another.
const commonFlags = unix.CLONE_VM | unix.CLONE_FS | unix.CLONE_FILES

// noteSharing notes that from now on processes may share what the arguments of a call
// mean, as clone(2) makes them.
func (s *Supervisor) noteSharing(c *call) {
	s.sharing = s.sharing || c.nr == unix.SYS_CLONE && c.args[0]&commonFlags != 0 && c.args[0]&unix.CLONE_THREAD == 0
}

// isMemory reports whether it is the memory of a process, which may be another's. For
// most files the name shows that it is not, and no path needs to be built.
func (s *location) isMemory() bool {
	if s.dir != nil && len(s.name) > 0 && !bytes.HasSuffix(s.name, []byte("mem")) {
		return false
	}
	at := s.absolutePath()
	return strings.HasPrefix(at, "/proc/") && strings.HasSuffix(at, "/mem")
}
