//go:build linux

package native

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// memoryWatch bounds the memory of everything inside together.
type memoryWatch struct {
	process *process
	limit   int64
	private int   // O_PATH descriptor on the private storage, whose files are memory; -1 for none
	before  int64 // MemAvailable when the run began, bytes
	shared  int64 // memory of files, when it was last measured
	ticks   int
	layer   uint64 // device of files that are on disk all the same; 0 for none
}

func newMemoryWatch(p *process, limit int64) *memoryWatch {
	w := &memoryWatch{process: p, limit: limit, private: -1, before: available()}
	if fd, err := unix.Open(fmt.Sprintf("/proc/%d/root/tmp", p.pid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err == nil {
		w.private = fd
	}
	return w
}

func (w *memoryWatch) close() {
	if w.private >= 0 {
		unix.Close(w.private)
	}
}

// over says whether more is used than may be. Resident pages are summed first,
// which counts what is shared once a process; only when that is too much do the
// exact shares decide (proc(5)). Files that only memory holds are looked for
// when the machine has lost a quarter of the limit, and now and then in any case:
// what others give back meanwhile hides what is taken here.
func (w *memoryWatch) over() bool {
	pids := descendants(w.process.first, nil)
	w.ticks++
	if w.before-available() > w.limit/4 || w.ticks%5 == 0 {
		w.shared = w.files(pids)
	}
	if residentBytes(pids)+w.shared <= w.limit {
		return false
	}
	own, mapped := proportional(pids)
	return own+max(mapped, w.shared) > w.limit
}

// files is the memory of the private storage and of files without a name.
func (w *memoryWatch) files(pids []int) int64 {
	sum := unnamedBytes(pids, func(st *unix.Stat_t) bool { return unix.Major(st.Dev) == 0 && (w.layer == 0 || st.Dev != w.layer) })
	var st unix.Statfs_t
	if w.private >= 0 && unix.Fstatfs(w.private, &st) == nil {
		sum += int64(st.Blocks-st.Bfree) * st.Bsize
	}
	return sum
}

// available is MemAvailable of proc_meminfo(5), in bytes; 0 when unknown.
func available() int64 {
	raw, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(raw)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == "MemAvailable:" {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			return n << 10
		}
	}
	return 0
}

func residentBytes(pids []int) int64 {
	var sum int64
	for _, pid := range pids {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
		if err != nil {
			continue // it has ended
		}
		if f := strings.Fields(string(raw)); len(f) > 1 {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			sum += n * pageSize
		}
	}
	return sum
}

// proportional sums the shares of memory in smaps_rollup: what processes have of
// their own, and what they map of memory that files or segments hold. A process
// that cannot be read counts with what is resident.
func proportional(pids []int) (own, mapped int64) {
	for _, pid := range pids {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if err != nil {
			own += residentBytes([]int{pid})
			continue
		}
		for line := range strings.Lines(string(raw)) {
			f := strings.Fields(line)
			if len(f) != 3 {
				continue
			}
			n, _ := strconv.ParseInt(f[1], 10, 64)
			switch f[0] {
			case "Pss:":
				own += n << 10
			case "Pss_Shmem:":
				own, mapped = own-n<<10, mapped+n<<10
			}
		}
	}
	return own, mapped
}

// descendants lists pid and everything below it. Orphans stay below the first
// process of their pid namespace, so nothing inside escapes the list.
func descendants(pid int, list []int) []int {
	list = append(list, pid)
	dir := fmt.Sprintf("/proc/%d/task", pid)
	tasks, err := os.ReadDir(dir)
	if err != nil {
		return list
	}
	for _, t := range tasks {
		raw, err := os.ReadFile(dir + "/" + t.Name() + "/children")
		if err != nil {
			continue
		}
		for f := range bytes.FieldsSeq(raw) {
			if child, err := strconv.Atoi(string(f)); err == nil {
				list = descendants(child, list)
			}
		}
	}
	return list
}

var pageSize = int64(os.Getpagesize())
