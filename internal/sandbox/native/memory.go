//go:build linux

package native

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// exceeds says whether a process and all below it use more than limit bytes.
// Resident pages are summed first, which counts what is shared once a process;
// only when that is too much do the exact shares decide (proc(5)).
func exceeds(pid int, limit int64) bool {
	pids := descendants(pid, nil)
	return residentBytes(pids) > limit && proportional(pids) > limit
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

// proportional sums the shares of memory in smaps_rollup. A process that cannot
// be read counts with what is resident.
func proportional(pids []int) int64 {
	var sum int64
	for _, pid := range pids {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
		if err != nil {
			sum += residentBytes([]int{pid})
			continue
		}
		for line := range strings.Lines(string(raw)) {
			if f := strings.Fields(line); len(f) == 3 && f[0] == "Pss:" {
				n, _ := strconv.ParseInt(f[1], 10, 64)
				sum += n << 10
			}
		}
	}
	return sum
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
