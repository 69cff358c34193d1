//go:build linux

package supervise

import (
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/event"
)

const (
	argvKept    = 64 << 10 // bytes of arguments that are recorded
	argvCounted = 1 << 21  // arguments that are counted; the kernel takes fewer
)

// workingDirectory reads the caller's working directory.
func (s *Supervisor) workingDirectory(c *call, p *event.Process) {
	text, errno := s.resolver.linkOf(c.proc, c.tid, "cwd")
	if errno != 0 {
		c.noteUnreadable("cwd", errno)
		return
	}
	p.Cwd = string(text)
}

// fileName is what the kernel calls a file that is executed (alloc_bprm).
func (c *call) fileName(asked string) string {
	if c.info.dir < 0 || int32(c.args[c.info.dir]) == unix.AT_FDCWD || strings.HasPrefix(asked, "/") && !c.unnamed {
		return asked
	}
	name := "/dev/fd/" + strconv.Itoa(int(int32(c.args[c.info.dir])))
	if c.unnamed {
		return name
	}
	return name + "/" + asked
}

// texts is a list of texts in the memory of a caller, as execve(2) takes it.
type texts struct {
	list  []string      // the first argvKept bytes of it
	total int           // how many there are
	cut   bool          // list is not all
	whole bool          // its end was found
	errno syscall.Errno // that reading it got
}

// texts reads a list; a null pointer is an empty one.
func (s *Supervisor) texts(tid int, addr uint64) texts {
	if addr == 0 {
		return texts{whole: true}
	}
	var few [32]uint64
	first := few[:]
	n, errno := s.memory.words(tid, addr, first)
	if errno != 0 {
		return texts{errno: errno, cut: true}
	}
	total, whole := zeroAt(first[:n]), true
	if total < 0 {
		first, total, whole = s.pointers(tid, addr)
		n = min(len(first), total)
	}
	n = min(n, total)
	t := texts{total: total, whole: whole}
	var left bool
	t.list, left, t.errno = s.strings(tid, first[:n])
	t.cut = left || total > n || !whole
	return t
}

// arguments reads argv. If it is empty the kernel makes it one empty argument.
func (s *Supervisor) arguments(l *execCall) {
	c := &l.call
	t := s.texts(c.tid, c.arg(c.info.arg))
	l.event.Process.Argv, l.cut = t.list, t.cut && t.total > 0
	l.unread = !t.whole || t.errno != 0
	if l.cut {
		c.add("argc", strconv.Itoa(t.total))
	}
	if t.errno == 0 && !t.whole {
		c.unknown("argv: no end within " + strconv.Itoa(t.total))
	}
	if t.errno != 0 {
		c.noteUnreadable("argv", t.errno)
	}
}

func zeroAt(words []uint64) int {
	for i, w := range words {
		if w == 0 {
			return i
		}
	}
	return -1
}

// pointers counts argv, and keeps as much as may be recorded. whole is false
// when its end was not found.
func (s *Supervisor) pointers(tid int, addr uint64) (kept []uint64, total int, whole bool) {
	kept = make([]uint64, 0, 1024)
	part := make([]uint64, 4096)
	for total < argvCounted {
		n, errno := s.memory.words(tid, addr+8*uint64(total), part)
		if end := zeroAt(part[:n]); end >= 0 {
			n, whole = end, true
		}
		kept = append(kept, part[:min(n, argvKept-len(kept))]...)
		total += n
		if whole || errno != 0 || n < len(part) {
			break
		}
	}
	return kept, total, whole
}
