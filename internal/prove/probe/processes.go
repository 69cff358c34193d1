//go:build linux

package probe

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// process is a line of /proc/N/stat (proc(5)).
type process struct {
	pid, parent, group, session int
	started                     int64 // in clock ticks of the kernel; with a reused number it is another process
	resident                    int64 // bytes
}

// processTable remembers when processes started, so that a scan reads only new ones.
// The zero value is ready.
type processTable struct {
	mu   sync.Mutex
	seen map[int]processEntry
}

// processEntry identifies a process by its directory in /proc, which has a new
// inode even if the number is reused.
type processEntry struct {
	inode   uint64
	started int64
}

// started is the table of this machine.
var started processTable

// since returns the processes that started at that tick or later.
func (t *processTable) since(tick int64) map[int]process {
	t.mu.Lock()
	defer t.mu.Unlock()
	now, all := make(map[int]processEntry, len(t.seen)), map[int]process{}
	for pid, inode := range processes() {
		was, ok := t.seen[pid]
		if ok && was.inode == inode && was.started < tick {
			now[pid] = was
			continue
		}
		p, ok := processOf(pid)
		if !ok {
			continue
		}
		now[pid] = processEntry{inode, p.started}
		if p.started >= tick {
			all[pid] = p
		}
	}
	t.seen = now
	return all
}

// processes returns all processes with the inodes of their directories.
func processes() map[int]uint64 {
	dir, err := unix.Open("/proc", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(dir)
	all, buf := map[int]uint64{}, make([]byte, 32<<10)
	for {
		n, err := unix.Getdents(dir, buf)
		if err != nil || n <= 0 {
			return all
		}
		for rest := buf[:n]; len(rest) > 19; { // struct linux_dirent64 of getdents64(2)
			name, _, _ := bytes.Cut(rest[19:], []byte{0})
			if pid, err := strconv.Atoi(string(name)); err == nil {
				all[pid] = binary.NativeEndian.Uint64(rest)
			}
			rest = rest[binary.NativeEndian.Uint16(rest[16:]):]
		}
	}
}

// statFields reads the fields after the name of a process (proc_pid_stat(5)):
// state, parent, group, session, the 19th its start time, the 21st its resident
// pages. Package sys could do it, but a probe shares no code with what it
// examines.
func statFields(pid int) ([]string, error) {
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	buf := make([]byte, 2048) // 52 numbers and a short name
	n, err := unix.Read(fd, buf)
	if err != nil {
		return nil, err
	}
	f := strings.Fields(string(buf[bytes.LastIndexByte(buf[:n], ')')+1 : n]))
	if len(f) < 22 {
		return nil, fmt.Errorf("/proc/%d/stat has %d fields behind the name: %w", pid, len(f), os.ErrInvalid)
	}
	return f, nil
}

func processOf(pid int) (process, bool) {
	f, err := statFields(pid)
	if err != nil {
		return process{}, false
	}
	number := func(i int) int { n, _ := strconv.Atoi(f[i]); return n }
	return process{pid: pid, parent: number(1), group: number(2), session: number(3),
		started: int64(number(19)), resident: int64(number(21)) * int64(os.Getpagesize())}, true
}

// hasEnded reports whether pid has ended; it may still be a zombie.
func hasEnded(pid int) bool {
	f, err := statFields(pid)
	return err != nil || f[0] == "Z" || f[0] == "X"
}

// share returns the private memory of p and its part of shared memory; all
// resident memory if the kernel does not report it.
func (p process) share() int64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", p.pid))
	for line := range bytes.Lines(text) {
		if rest, ok := bytes.CutPrefix(line, []byte("Pss:")); ok {
			kib, _ := strconv.ParseInt(string(bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(rest), []byte("kB")))), 10, 64)
			return kib << 10
		}
	}
	return p.resident
}
