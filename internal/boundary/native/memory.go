//go:build linux

package native

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
	"holdfast.dev/holdfast/internal/floor/sys"
)

// memoryWatch bounds the memory of everything inside together. It counts what it can
// see of the run's processes and files, and attributes other losses of the machine to
// the run: socket buffers, queues, page tables, and memory files that no descriptor or
// mapping in sight holds. Only other processes' mapped memory files and other file
// systems in memory explain such a loss.
type memoryWatch struct {
	process *process
	limit   int64
	slack   int64  // how much the machine may lose otherwise, as it does all the time
	private int    // O_PATH descriptor on the private storage, whose files are memory
	device  uint64 // of the private storage
	shared  int64  // memory of files that are in sight, when it was last measured
	base    int64  // the least the machine held otherwise since the run began
	others  int64  // memory files of others at the first look: most runs have ended before it
	ticks   int
}

// minSlack is how much free memory a machine loses and gains within seconds anyway.
const minSlack = 128 << 20

// newMemoryWatch is called before the command is executed: later the command
// could keep the private storage from being opened.
func (l *launch) newMemoryWatch(p *process, limit int64) (*memoryWatch, error) {
	w := &memoryWatch{process: p, limit: limit, slack: max(limit/4, minSlack)}
	held, err := heldMemory()
	if err != nil {
		return nil, err
	}
	w.base = held
	err = sys.AsTask(l.facts.uid, l.facts.gid, func() (err error) {
		w.private, err = unix.Open(fmt.Sprintf("/proc/%d/root/dev/shm", p.pid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("opening the private storage to measure it: %w", err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(w.private, &st); err != nil {
		unix.Close(w.private)
		return nil, fmt.Errorf("measuring the private storage: %w", err)
	}
	w.device = st.Dev
	return w, nil
}

func (w *memoryWatch) close() { unix.Close(w.private) }

// isExceeded reports whether more is used than may be. Resident pages are summed first,
// which counts what is shared once a process; only when that is too much do the
// exact shares decide (proc(5)). Files are measured when the machine has lost a
// quarter of the limit, and now and then in any case: what others give back
// meanwhile hides what is taken here. What cannot be read counts as over.
func (w *memoryWatch) isExceeded() bool {
	pids := descendants(w.process.first, nil)
	held, err := heldMemory()
	if err != nil {
		return true
	}
	if w.ticks++; w.ticks == 1 {
		w.others = otherFiles(w.device, w.process.done)
	}
	if held-w.base-w.shared > w.limit/4 || w.ticks%5 == 0 {
		w.shared = w.files(pids)
		w.base = min(w.base, held-w.shared)
	}
	if residentBytes(pids)+w.shared+max(0, held-w.base-w.shared-w.slack) <= w.limit {
		return false
	}
	own, mapped := proportional(pids)
	seen := max(mapped, w.shared)
	unseen := held - w.base - seen - w.slack
	if unseen > 0 && own+seen+unseen > w.limit {
		unseen -= otherFiles(w.device, w.process.done) - w.others
	}
	return own+seen+max(0, unseen) > w.limit
}

// files is the memory of the private storage and of files without a name.
func (w *memoryWatch) files(pids []int) int64 {
	sum := unnamedBytes(pids, func(fs int64, device uint64) bool { return inMemory(fs) && device != w.device })
	var st unix.Statfs_t
	if unix.Fstatfs(w.private, &st) == nil {
		sum += int64(st.Blocks-st.Bfree) * st.Bsize
	}
	return sum
}

// inMemory reports whether files of this type of file system are memory.
func inMemory(fs int64) bool {
	return fs == unix.TMPFS_MAGIC || fs == unix.RAMFS_MAGIC || fs == unix.HUGETLBFS_MAGIC
}

// heldMemory is what the machine's memory holds that neither processes own nor
// the kernel gives back when asked: files in memory, and what the kernel needs
// for itself (proc_meminfo(5)). Pages that wait on a processor's own list are free,
// though MemFree does not have them: since Linux 6.7 these lists hold up to an eighth
// of the memory, and grow and shrink by what any process frees. The cache of ZFS gives
// back, but is not counted as one that does.
func heldMemory() (int64, error) {
	raw, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, fmt.Errorf("reading the memory use of the machine: %w", err)
	}
	n := map[string]int64{}
	for line := range strings.Lines(string(raw)) {
		if f := strings.Fields(line); len(f) >= 2 {
			kib, _ := strconv.ParseInt(f[1], 10, 64)
			n[strings.TrimSuffix(f[0], ":")] = kib << 10
		}
	}
	if n["MemTotal"] == 0 || n["MemFree"] == 0 {
		return 0, errors.New("reading the memory use of the machine: /proc/meminfo lacks MemTotal or MemFree")
	}
	cache := n["Buffers"] + n["Cached"] + n["SwapCached"] - n["Shmem"]
	return n["MemTotal"] - n["MemFree"] - cache - n["AnonPages"] - n["SReclaimable"] - waitingPages() - sumOf("/proc/spl/kstat/zfs/arcstats", "size", 2), nil
}

// waitingPages is the memory on the processors' own lists of free pages
// (pagesets in /proc/zoneinfo); 0 where that cannot be read.
func waitingPages() int64 { return sumOf("/proc/zoneinfo", "count:", 1) * int64(os.Getpagesize()) }

// residentBytes sums what processes have in memory, or had before it was
// swapped out. Their page tables are not in it; they are what the kernel holds.
func residentBytes(pids []int) int64 {
	var sum int64
	for _, pid := range pids {
		sum += statusBytes(statusOf(pid), "VmRSS", "VmSwap")
	}
	return sum
}

// statusOf is the text of /proc/PID/status; nothing for a process that has ended.
func statusOf(pid int) []byte {
	raw, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	return raw
}

// statusBytes adds up fields of a status file.
func statusBytes(status []byte, names ...string) int64 {
	var sum int64
	for _, name := range names {
		if f := sys.StatusField(status, name); len(f) > 0 {
			n, _ := strconv.ParseInt(f[0], 10, 64)
			sum += n << 10
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
			case "Pss:", "SwapPss:":
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
